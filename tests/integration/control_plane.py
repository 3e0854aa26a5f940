"""A real API server with its controllers, and no nodes."""

import asyncio
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


@dataclass(frozen=True, slots=True)
class OwnControlPlane(ControlPlane):
    """One whose processes (etcd, kube-apiserver, kube-controller-manager) can be taken away."""

    folder: Path

    async def stop(self, process: str) -> None:
        """Kill it. Its data stays."""
        await asyncio.to_thread(_run, "stop", self.folder, process)

    async def start(self, process: str) -> None:
        """Start it again as it was, and wait until the API server is ready."""
        await asyncio.to_thread(_run, "start", self.folder, process)


@contextmanager
def control_plane(folder: Path) -> Iterator[ControlPlane]:
    """An API server, its etcd and its controller manager, for as long as the block runs."""
    given = os.environ.get(GIVEN)
    if given:
        yield ControlPlane(Path(given))
        return
    with own_control_plane(folder) as own:
        yield own


@contextmanager
def own_control_plane(folder: Path) -> Iterator[OwnControlPlane]:
    """The same, never a given one."""
    try:
        _run("up", folder)
        yield OwnControlPlane(folder / "kubeconfig", folder)
    finally:
        _run("down", folder)


def _run(verb: str, folder: Path, *process: str) -> None:
    done = subprocess.run(
        [str(SCRIPT), verb, str(folder), *process],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        # Tests that are killed take nothing down; it goes down by itself then.
        env={**os.environ, "ENDS_WITH": str(os.getpid())},
    )
    if done.returncode:
        raise RuntimeError(f"{SCRIPT.name} {verb} failed:\n{done.stdout}\n{done.stderr}")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
