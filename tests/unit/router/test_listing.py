"""The worker list's HTTP."""

import http.client
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from sglang_router_launcher import listing
from sglang_router_launcher.workers import UnknownWorkersError, Worker, workers_of
from tests.unit.router.smg import smg


@contextmanager
def served(workers: Callable[[], list[Worker]]) -> Iterator[int]:
    """The port."""
    server = listing.start(0, workers)
    try:
        yield int(server.socket.getsockname()[1])
    finally:
        server.shutdown()
        server.server_close()


def asked(port: int, method: str = "GET", path: str = "/workers") -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        body = answer.read()
        return answer.status, json.loads(body) if answer.status != 501 else None
    finally:
        connection.close()


def unknown() -> list[Worker]:
    raise UnknownWorkersError("smg answers 500")


def test_smgs_workers_are_listed_without_a_key() -> None:
    with smg() as router, served(partial(workers_of, router)) as port:
        status, body = asked(port)

    assert status == 200
    assert body == {
        "workers": [
            {"url": "http://10.0.0.1:30000", "healthy": True},
            {"url": "http://10.0.0.2:30000", "healthy": False},
        ]
    }


def test_a_list_that_is_unknown_is_not_an_empty_one() -> None:
    with served(unknown) as port:
        assert asked(port) == (503, {"error": "smg answers 500"})


@pytest.mark.parametrize("path", ["/", "/workers/", "/workers?a=b", "/v1/models", "/metrics"])
def test_nothing_else_is_there(path: str) -> None:
    with served(list) as port:
        assert asked(port, path=path)[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_changed(method: str) -> None:
    with served(list) as port:
        assert asked(port, method)[0] == 501


def test_a_client_that_says_nothing_keeps_no_other_from_its_answer() -> None:
    with served(list) as port, socket.create_connection(("127.0.0.1", port)):
        assert asked(port) == (200, {"workers": []})


def test_the_list_is_there_by_ipv6_where_there_is_any() -> None:
    here = "::1" if socket.has_dualstack_ipv6() else "127.0.0.1"
    with served(list) as port, socket.create_connection((here, port), timeout=10) as connection:
        connection.sendall(b"GET /workers HTTP/1.0\r\n\r\n")

        assert connection.recv(100).startswith(b"HTTP/1.0 200 ")


def test_a_port_that_is_taken_is_an_error() -> None:
    with served(list) as port, pytest.raises(OSError, match="in use"):
        listing.start(port, list)
