from pathlib import Path

import pytest

from sglang_agent.incarnation import (
    Process,
    Sighting,
    engine_process,
    process_id,
    with_process,
    with_reachable,
)

ENGINE = ["python3", "-m", "sglang.launch_server", "--model-path=/model", "--port=30000"]


class Proc:
    """A /proc with some processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "sys/kernel/random").mkdir(parents=True)
        (folder / "sys/kernel/random/boot_id").write_text("a-boot\n")
        (folder / "meminfo").write_text("")

    def put(self, pid: int, start: int, *arguments: str, state: str = "S") -> None:
        folder = self.folder / str(pid)
        folder.mkdir(exist_ok=True)
        (folder / "cmdline").write_text("".join(f"{argument}\0" for argument in arguments))
        fields = [state, *(["0"] * 18), str(start), "0", "0"]
        (folder / "stat").write_text(f"{pid} (a) strange (name) {' '.join(fields)}\n")

    def found(self, port: int = 30000, known: Process | None = None) -> Process | None:
        return engine_process(port, known, self.folder)


@pytest.fixture(name="proc")
def _proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path)


def test_the_engine_is_found_by_its_module(proc: Proc) -> None:
    proc.put(1, 5, "/pause")
    proc.put(7, 100, *ENGINE)
    proc.put(8, 101, "python3", "-c", "from multiprocessing.spawn import spawn_main")
    proc.put(9, 102, "sh", "-c", "python3 -m sglang.launch_server")

    assert proc.found() == Process(7, 100)


@pytest.mark.parametrize(
    ("arguments", "port"),
    [
        (["--port=8001"], 8001),
        (["--port", "8001"], 8001),
        (["--port=1", "--port", "8001"], 8001),
        ([], 30000),
        (["--port"], 30000),
    ],
)
def test_an_engine_is_known_by_its_port(proc: Proc, arguments: list[str], port: int) -> None:
    proc.put(7, 100, "python3", "-m", "sglang.launch_server", *arguments)

    assert proc.found(port) == Process(7, 100)
    assert proc.found(port + 1) is None


def test_of_two_the_older_one_is_the_engine(proc: Proc) -> None:
    proc.put(50, 900, *ENGINE)
    proc.put(70, 100, *ENGINE)

    assert proc.found() == Process(70, 100)


def test_an_ended_engine_that_nobody_has_waited_for_is_gone(proc: Proc) -> None:
    proc.put(7, 100, *ENGINE, state="Z")

    assert proc.found() is None
    assert proc.found(known=Process(7, 100)) is None


def test_a_new_process_with_the_old_number_is_another_one(proc: Proc) -> None:
    proc.put(7, 900, *ENGINE)

    found = proc.found(known=Process(7, 100))

    assert found == Process(7, 900)
    assert process_id(found, proc.folder) != process_id(Process(7, 100), proc.folder)


def test_a_process_has_one_id_for_every_agent(proc: Proc) -> None:
    assert process_id(Process(7, 100), proc.folder) == "6b4f48ebcca18944"


def test_a_process_that_is_seen_replaces_a_guess() -> None:
    guess = with_reachable(Sighting(), True)

    assert with_process(guess, "first").incarnation == "first"


def test_an_engine_that_can_be_seen_is_not_guessed_at() -> None:
    seen = with_process(Sighting(), "first")

    lost = with_reachable(seen, False)

    assert with_reachable(lost, True).incarnation == "first"


def test_an_engine_that_cannot_be_seen_is_another_one_when_it_comes_back() -> None:
    starting = with_reachable(Sighting(), False)
    first = with_reachable(starting, True)
    still = with_reachable(first, True)
    lost = with_reachable(still, False)
    second = with_reachable(lost, True)

    assert starting.incarnation is None
    assert first == still
    assert lost.incarnation == first.incarnation
    assert second.incarnation not in (None, first.incarnation)
