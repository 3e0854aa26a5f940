"""What the agent leaves in its termination log."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from sglang_agent.agent import Agent, Report
from sglang_agent.drain import Limits, Outcome
from sglang_agent.engine import Load
from sglang_agent.termination_log import TerminationLog


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    """As kubelet makes it: empty."""
    path = tmp_path / "termination-log"
    path.touch()
    return path


def size(path: Path) -> int:
    return path.stat().st_size


def told(path: Path) -> Any:
    return json.loads(path.read_text())["drain"]


def test_the_end_of_a_drain_is_one_line_of_json(path: Path) -> None:
    TerminationLog(path).drained(Report(Outcome.CUT, 8.00049, 3))

    assert path.read_text() == '{"drain": {"outcome": "cut", "seconds": 8.0, "in_flight": 3}}\n'


def test_the_last_drain_replaces_the_one_before(path: Path) -> None:
    log = TerminationLog(path)
    log.drained(Report(Outcome.RESTARTED, 1234.5678, None))

    log.drained(Report(Outcome.DRAINED, 5, 0))

    assert told(path) == {"outcome": "drained", "seconds": 5, "in_flight": 0}


@pytest.mark.parametrize("name", ["missing", "missing/log", "folder"])
def test_what_cannot_be_written_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    (tmp_path / "folder").mkdir()
    log = TerminationLog(tmp_path / name)

    for _ in range(3):
        log.drained(Report(Outcome.DRAINED, 5, 0))

    assert [record.message for record in caplog.records] == ["the end of a drain is not left"]
    assert not (tmp_path / "missing").exists()


def test_a_log_that_fails_while_it_is_written_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = TerminationLog(Path("/dev/full"))

    for _ in range(3):
        log.drained(Report(Outcome.DRAINED, 5, 0))

    assert len(caplog.records) == 1


async def test_it_is_written_when_the_drain_ends(path: Path) -> None:
    now_s = 100.0
    agent = Agent(Limits(5, 60), lambda: now_s, TerminationLog(path).drained)
    drain = asyncio.create_task(agent.drain())
    await asyncio.wait_for(agent.hurry.wait(), 10)
    agent.saw_load(101, Load(2))
    assert size(path) == 0

    now_s = 160.0
    agent.saw_load(159, Load(2))

    await drain
    assert told(path) == {"outcome": "cut", "seconds": 60, "in_flight": 2}
