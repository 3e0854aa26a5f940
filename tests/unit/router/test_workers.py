import socket
from dataclasses import replace

import pytest

from sglang_router_launcher.arguments import parsed
from sglang_router_launcher.workers import (
    Router,
    UnknownWorkersError,
    Worker,
    listed,
    router_of,
    workers_of,
)
from tests.unit.router.smg import KEY, smg


@pytest.mark.parametrize(
    ("host", "asked"),
    [
        ("0.0.0.0", "127.0.0.1"),
        ("::", "::1"),
        ("[::]", "::1"),
        ("127.0.0.1", "127.0.0.1"),
        ("10.1.2.3", "10.1.2.3"),
    ],
)
def test_smg_is_asked_where_it_listens(host: str, asked: str) -> None:
    args = parsed(["--host", host, "--port", "8000"])

    assert router_of(args, KEY) == Router(asked, 8000, KEY)


def test_workers_are_told_with_their_health_and_nothing_else() -> None:
    with smg() as router:
        assert workers_of(router) == [
            Worker("http://10.0.0.1:30000", True),
            Worker("http://10.0.0.2:30000", False),
        ]


def test_a_wrong_key_leaves_the_list_unknown() -> None:
    with smg() as router, pytest.raises(UnknownWorkersError, match="answers 401"):
        workers_of(replace(router, key="other"))


def test_an_smg_that_does_not_listen_leaves_the_list_unknown() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening
        router = Router("127.0.0.1", taken.getsockname()[1], KEY)

        with pytest.raises(UnknownWorkersError, match="does not answer"):
            workers_of(router)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b'{"workers": null}',
        b'{"workers": [null]}',
        b'{"workers": [{"url": "http://10.0.0.1:30000"}]}',
        b'{"workers": [{"is_healthy": true}]}',
    ],
)
def test_a_list_that_is_not_understood_is_unknown(body: bytes) -> None:
    with pytest.raises(UnknownWorkersError, match="not understood"):
        listed(body)


def test_only_true_is_healthy() -> None:
    assert listed(b'{"workers": [{"url": "http://a", "is_healthy": 1}]}') == [
        Worker("http://a", False)
    ]


def test_what_asks_smg_does_not_show_its_key() -> None:
    assert KEY not in repr(Router("127.0.0.1", 8000, KEY))
