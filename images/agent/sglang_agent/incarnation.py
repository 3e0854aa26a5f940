"""Which engine process it is: an id that changes exactly when it is another one.

The containers of a pod share their processes, so /proc shows the engine's: its number and start
time, with the boot they belong to, are unique, and the same to an agent that was restarted. Where
/proc does not show it, an engine that was reachable, was not, and is again counts as another one.
That misses a restart between two looks.
"""

import hashlib
import secrets
from dataclasses import dataclass
from pathlib import Path

MODULE = b"sglang.launch_server"
DEFAULT_PORT = 30000
PROC = Path("/proc")
GONE = (b"Z", b"X")


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    start_ticks: int


def engine_process(port: int, known: Process | None = None, proc: Path = PROC) -> Process | None:
    """The engine that was started for this port. A known one is looked at first: it is cheaper."""
    if known and _alive(proc, known.pid) == known:
        return known
    found = [
        process
        for folder in proc.iterdir()
        if folder.name.isdigit() and _serves(_arguments(folder), port)
        if (process := _alive(proc, int(folder.name)))
    ]
    # A second one is somebody's, in a shell; it could not have the port.
    return min(found, key=lambda process: process.start_ticks, default=None)


def process_id(process: Process, proc: Path = PROC) -> str:
    boot = (proc / "sys/kernel/random/boot_id").read_text().strip()
    name = f"{boot}/{process.pid}/{process.start_ticks}"
    return hashlib.sha256(name.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Sighting:
    """`incarnation` None: no engine has been seen yet. `lost`: it has become unreachable since."""

    incarnation: str | None = None
    from_proc: bool = False
    lost: bool = False


def with_process(before: Sighting, process: str) -> Sighting:
    """/proc shows the engine."""
    if before.from_proc and before.incarnation == process:
        return before
    return Sighting(process, from_proc=True)


def with_reachable(before: Sighting, reachable: bool) -> Sighting:
    """The engine was asked; not answering in time is not being unreachable."""
    if before.from_proc:
        return before
    if not reachable:
        return Sighting(before.incarnation, lost=before.incarnation is not None)
    if before.incarnation is None or before.lost:
        return Sighting(secrets.token_hex(8))
    return before


def _alive(proc: Path, pid: int) -> Process | None:
    try:
        stat = (proc / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    # The name, in parentheses, may hold anything; the state is the first field after it.
    fields = stat.rpartition(b")")[2].split()
    return None if fields[0] in GONE else Process(pid, int(fields[19]))


def _arguments(folder: Path) -> list[bytes]:
    try:
        return (folder / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return []  # it has ended meanwhile, or is hidden from us


def _serves(arguments: list[bytes], port: int) -> bool:
    if MODULE not in arguments:
        return False
    chosen = DEFAULT_PORT
    for argument, following in zip(arguments, [*arguments[1:], b""], strict=True):
        value = following if argument == b"--port" else argument.removeprefix(b"--port=")
        if (argument == b"--port" or value != argument) and value.isdigit():
            chosen = int(value)
    return chosen == port
