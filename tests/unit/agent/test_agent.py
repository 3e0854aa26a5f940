"""What the agent says while things happen to its engine."""

import asyncio
import json
import logging
from collections.abc import Iterator

import pytest

from sglang_agent.agent import Agent
from sglang_agent.drain import Limits
from sglang_agent.engine import Load
from sglang_agent.logs import JsonFormatter

HANGS = "/v1/loads?include=core did not answer within 5 s"


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture(name="clock")
def _clock() -> Clock:
    return Clock()


@pytest.fixture(name="agent")
def _agent(clock: Clock) -> Agent:
    """It has seen an idle engine."""
    agent = Agent(Limits(reaction_s=5, drain_timeout_s=60), clock)
    agent.saw_process("first")
    agent.saw_ready("")
    agent.saw_load(100, Load(0))
    return agent


@pytest.fixture(name="lines", autouse=True)
def _lines(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO, "sglang_agent"):
        yield caplog


def test_an_engine_that_was_not_asked_yet_is_not_ready(clock: Clock) -> None:
    assert Agent(Limits(5, 60), clock).unready() == "the engine has not answered yet"


def test_what_is_repeated_is_logged_once(agent: Agent, lines: pytest.LogCaptureFixture) -> None:
    lines.clear()

    for number in range(3):
        agent.saw_process("first")
        agent.saw_load(101 + number, Load(None, f"{HANGS}, look {number}"))
    for number in range(3):
        agent.saw_ready(f"/ready did not answer, look {number}")

    assert [record.message for record in lines.records] == [
        "what is in flight is unknown",
        "the engine is not ready any more",
    ]


def test_another_engine_has_to_become_ready_anew(agent: Agent) -> None:
    agent.saw_process("second")

    assert agent.unready() == "the engine has not answered yet"
    assert agent.figures().in_flight is None


async def test_each_step_of_a_drain_is_a_line(
    agent: Agent, clock: Clock, lines: pytest.LogCaptureFixture
) -> None:
    lines.clear()

    drain = asyncio.create_task(agent.drain())
    await asyncio.wait_for(agent.hurry.wait(), 10)
    for began_s, in_flight in ((103, 2), (105, 1), (106, 0), (107, 0)):
        clock.now_s = began_s
        agent.saw_load(began_s, Load(in_flight))
    await drain
    agent.saw_process("second")

    said = [json.loads(JsonFormatter().format(record)) for record in lines.records]
    assert [line["message"] for line in said] == [
        "draining",
        "the drain has ended",
        "another engine process has taken over",
        "the drain is over: another engine serves",
    ]
    assert (said[1]["outcome"], said[1]["seconds"], said[1]["in_flight"]) == ("drained", 7, 0)


async def test_readiness_tells_of_the_drain(agent: Agent, clock: Clock) -> None:
    drain = asyncio.create_task(agent.drain())
    await asyncio.wait_for(agent.hurry.wait(), 10)
    clock.now_s = 102
    agent.saw_load(101, Load(None, HANGS))

    assert agent.unready() == "draining for 2.0 s, in flight: unknown"

    for began_s in (106, 107):
        clock.now_s = began_s
        agent.saw_load(began_s, Load(0))
    await drain
    assert agent.unready() == (
        "the engine is about to stop: its drain has ended after 7.0 s: drained"
    )


async def test_an_unknown_number_of_cut_requests_counts_as_none(agent: Agent, clock: Clock) -> None:
    drain = asyncio.create_task(agent.drain())
    await asyncio.wait_for(agent.hurry.wait(), 10)
    clock.now_s = 161
    agent.saw_load(159, Load(None, HANGS))

    report = await drain

    assert (report.outcome, report.in_flight) == ("cut", None)
    assert "sglang_agent_requests_cut_total 0.0" in agent.metrics.exposition().decode()
