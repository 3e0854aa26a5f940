"""What is read from the answers of agents and routers, and what is refused."""

import json
from typing import Any

import pytest

from sglang_agent.metrics import Figures, Metrics
from sglang_operator.answers import AgentAnswer, MalformedError, agent_answer, router_answer

ENGINE = "http://10.0.0.1:30000"
NOT_A_WORKER: list[Any] = [None, [], ENGINE, {}, {"url": ENGINE}]


def exposed(in_flight: int | None, *, token: bool) -> bytes:
    """What the agent itself says."""
    metrics = Metrics(lambda: Figures(engine_ready=True, draining=False, in_flight=in_flight))
    metrics.token_present.set(token)
    return metrics.exposition()


@pytest.mark.parametrize("in_flight", [0, 3, 12345, None])
@pytest.mark.parametrize("token", [True, False])
def test_an_agents_own_words_are_understood(in_flight: int | None, token: bool) -> None:
    assert agent_answer(exposed(in_flight, token=token)) == AgentAnswer(in_flight, token)


def test_an_agent_that_does_not_speak_of_a_token_has_one() -> None:
    body = b"sglang_agent_draining 0.0\nsglang_agent_in_flight 2.0\n"

    assert agent_answer(body) == AgentAnswer(2, has_token=True)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "there is no sglang_agent_draining"),
        (b"<html>hello</html>", "there is no sglang_agent_draining"),
        (b"# sglang_agent_draining 0.0", "there is no sglang_agent_draining"),
        (b"\xff\xfe", "it is not UTF-8"),
        *(
            (b"sglang_agent_draining 0\nsglang_agent_in_flight " + value, "in_flight is ")
            for value in (b"many", b"NaN", b"-1", b"+Inf", b"1e308", b"1e400", b"9" * 5000)
        ),
    ],
)
def test_what_no_agent_says_is_refused(body: bytes, problem: str) -> None:
    with pytest.raises(MalformedError, match=problem) as raised:
        agent_answer(body)

    assert len(str(raised.value)) < 100


def test_healthy_workers_are_those_that_count() -> None:
    workers = [{"url": ENGINE, "healthy": True}, {"url": "http://other:30000", "healthy": False}]

    assert router_answer(json.dumps({"workers": workers}).encode()) == {ENGINE}


def test_a_router_without_workers_sees_none() -> None:
    assert router_answer(b'{"workers": []}') == frozenset()


@pytest.mark.parametrize(
    "answer",
    [
        *(None, 1, [], "workers", {}, {"workers": None}, {"workers": {}}, {"workers": "no"}),
        *({"workers": [worker]} for worker in NOT_A_WORKER),
        {"workers": [{"url": ENGINE, "healthy": "yes"}]},
        {"workers": [{"url": ENGINE, "healthy": 1}]},
        {"workers": [{"url": None, "healthy": True}]},
        {"workers": [{"healthy": True}]},
        {"workers": [{"url": [ENGINE], "healthy": True}]},
        {"workers": [{"url": ENGINE, "healthy": True}, {"url": ENGINE}]},
    ],
)
def test_what_no_router_says_is_refused(answer: Any) -> None:
    with pytest.raises(MalformedError):
        router_answer(json.dumps(answer).encode())


@pytest.mark.parametrize("body", [b"", b"ok", b"\xff", b"[" * 200_000, b"1" * 5000, b'{"workers":'])
def test_what_is_not_json_is_refused(body: bytes) -> None:
    with pytest.raises(MalformedError):
        router_answer(body)
