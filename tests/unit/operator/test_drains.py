"""What is read from the last words of agents."""

import json
from typing import Any

import pytest

from sglang_agent.agent import Report
from sglang_agent.drain import Outcome
from sglang_agent.termination_log import TerminationLog
from sglang_controllers.manifest import Manifest
from sglang_controllers.reports import Drain
from sglang_operator.drains import REMEMBERED, Drains, drain_of
from tests.builders import a_pod


def with_last_words(message: str | None, name: str = "pod-1", container: str = "agent") -> Manifest:
    """A pod one of whose init containers has ended with this message."""
    ended = {"exitCode": 0} | ({} if message is None else {"message": message})
    download = {"name": "download", "state": {"terminated": {"exitCode": 0}}}
    said = {"name": container, "state": {"terminated": ended}}
    return a_pod(name=name, phase="Running", initContainerStatuses=[download, said])


def drained(**changes: Any) -> str:
    return json.dumps({"drain": {"outcome": "cut", "seconds": 8.0, "in_flight": 3} | changes})


@pytest.mark.parametrize("outcome", list(Outcome))
def test_what_the_agent_writes_is_understood(tmp_path: Any, outcome: Outcome) -> None:
    log = tmp_path / "log"
    log.touch()
    TerminationLog(log).drained(Report(outcome, 8.25, None))

    drain = drain_of(with_last_words(log.read_text()))

    assert drain == Drain("uid-pod-1", "pod-1", outcome.value, 8.25, None)


def test_requests_that_were_cut_are_told() -> None:
    assert drain_of(with_last_words(drained())) == Drain("uid-pod-1", "pod-1", "cut", 8.0, 3)


@pytest.mark.parametrize(
    "pod",
    [
        a_pod(),
        a_pod(phase="Running", initContainerStatuses=[{"name": "agent", "state": {"running": {}}}]),
        with_last_words(None),
        with_last_words(drained(), container="download"),
        with_last_words(""),
        with_last_words('{"time": "now", "message": "stopping"}\n{"message": "stopped"}'),
        *(with_last_words(words) for words in ("null", "[]", "3", '"drain"', '{"drain": []}')),
        *(with_last_words(words) for words in ('{"drain": {}}', "[" * 4096, "{", "9" * 4096)),
        with_last_words(drained(outcome="lost")),
        with_last_words(drained(outcome=["cut"])),
        with_last_words(drained(seconds="8")),
        with_last_words(drained(seconds=True)),
        with_last_words(drained(seconds=float("nan"))),
        with_last_words(drained(seconds=1e300)),
        with_last_words(drained(seconds=-1)),
    ],
)
def test_anything_else_is_no_drain(pod: Manifest) -> None:
    assert drain_of(pod) is None


@pytest.mark.parametrize("count", [-1, 1.5, "3", True, 10**30, [3]])
def test_a_count_that_cannot_be_is_unknown(count: Any) -> None:
    drain = drain_of(with_last_words(drained(in_flight=count)))

    assert drain
    assert drain.in_flight is None


def test_a_drain_is_news_once_per_pod() -> None:
    drains = Drains()
    assert drains.news(a_pod()) is None

    news = [drains.news(with_last_words(drained())) for _ in range(3)]
    other = drains.news(with_last_words(drained(), name="pod-2"))

    assert news == [Drain("uid-pod-1", "pod-1", "cut", 8.0, 3), None, None]
    assert other


def test_what_was_seen_is_remembered_within_bounds() -> None:
    drains = Drains()

    for number in range(REMEMBERED + 100):
        assert drains.news(with_last_words(drained(), name=f"pod-{number}"))

    assert len(drains._seen) == REMEMBERED
    assert drains.news(with_last_words(drained(), name=f"pod-{REMEMBERED}")) is None
