"""The command as a process of its own: smg says what it has to say, and never a key."""

import os
import socket
import subprocess
import sys

import pytest

from tests.integration.control_plane import free_port
from tests.unit.images.test_versions import ROOT, argument

KEY = "sesame"


def ended(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sglang_router_launcher", *arguments],
        env={**os.environ, "SGLANG_ROUTER_API_KEY": KEY, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--no-such-argument"], "unrecognized arguments: --no-such-argument"),
        (["--port", "http"], "argument --port: invalid int value: 'http'"),
        (["--policy", "best"], "argument --policy: invalid choice: 'best'"),
        (["--api-key", KEY], "error: --api-key: a key among the arguments can be read"),
    ],
)
def test_arguments_that_cannot_be_used_end_it_with_2(arguments: list[str], message: str) -> None:
    done = ended(*arguments)

    assert done.returncode == 2
    assert message in done.stderr
    assert KEY not in done.stderr + done.stdout


def test_a_port_that_cannot_be_used_ends_it_with_2() -> None:
    done = ended(SGLANG_ROUTER_LIST_PORT="http")

    assert done.returncode == 2
    assert done.stderr.startswith('error: SGLANG_ROUTER_LIST_PORT: got "http"; ')


def test_a_start_that_smg_refuses_ends_it_with_1() -> None:
    port = str(free_port())

    done = ended("--health-check-interval-secs", "0", SGLANG_ROUTER_LIST_PORT=port)

    assert done.returncode == 1
    assert "'health_check.check_interval_secs': 0 - Must be >= 1" in done.stderr
    assert "Traceback" not in done.stderr
    assert KEY not in done.stderr + done.stdout


def test_a_list_port_that_is_taken_ends_it_with_1() -> None:
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]

        done = ended(SGLANG_ROUTER_LIST_PORT=str(port))

    assert done.returncode == 1
    assert done.stderr.startswith(f"error: cannot listen on {port}: ")


def test_the_router_is_built_on_what_the_operator_is_built_on() -> None:
    for name in ("BASE", "UV"):
        assert argument("images/router/Dockerfile", name) == argument("Dockerfile", name)


def test_one_version_of_smg_is_pinned() -> None:
    text = (ROOT / "images/router/pyproject.toml").read_text()

    assert 'dependencies = ["smg==1.13.0"]\n' in text
