"""A real API server with its controllers, and no nodes."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "e2e" / "kind" / "control-plane.sh"

GIVEN = "SGLANG_OPERATOR_TEST_KUBECONFIG"
"""Names a kubeconfig of a server to test on; without it, one is started and stopped."""


@dataclass(frozen=True, slots=True)
class ControlPlane:
    kubeconfig: Path


@contextmanager
def control_plane(folder: Path) -> Iterator[ControlPlane]:
    """An API server, its etcd and its controller manager, for as long as the block runs."""
    given = os.environ.get(GIVEN)
    if given:
        yield ControlPlane(Path(given))
        return
    try:
        _run("up", folder)
        yield ControlPlane(folder / "kubeconfig")
    finally:
        _run("down", folder)


def _run(verb: str, folder: Path) -> None:
    done = subprocess.run(
        [str(SCRIPT), verb, str(folder)], capture_output=True, text=True, check=False, timeout=600
    )
    if done.returncode:
        raise RuntimeError(f"{SCRIPT.name} {verb} failed:\n{done.stdout}\n{done.stderr}")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
