"""Reading what agents and routers answer. A pod may answer anything: it is checked as a whole."""

import json
import re
from dataclasses import dataclass
from typing import Any

MAX_AGENT_BYTES = 64 * 1024
"""An agent answers with 3 KB."""

MAX_ROUTER_BYTES = 512 * 1024
"""Some 7,000 engines."""

MAX_IN_FLIGHT = 1_000_000
"""More than any engine can hold. A float may say 1e308, and two of these have no sum."""

# The parser of prometheus_client takes 280 µs for an agent's text, this takes 10 µs.
GAUGE = re.compile(r"^sglang_agent_(draining|in_flight|token_present) (\S+)$", re.MULTILINE)


class MalformedError(Exception):
    """An answer that nobody of ours gives; the text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """`in_flight` None: the agent cannot tell. An agent that says nothing of a token has one."""

    in_flight: int | None
    has_token: bool


def agent_answer(body: bytes) -> AgentAnswer:
    """From the agent's metrics."""
    values = {name: _number(name, value) for name, value in GAUGE.findall(text_of(body))}
    if "draining" not in values:
        raise MalformedError("there is no sglang_agent_draining")
    in_flight = values.get("in_flight")
    return AgentAnswer(
        in_flight=None if in_flight is None else round(in_flight),
        has_token=values.get("token_present") != 0,
    )


def router_answer(body: bytes) -> frozenset[str]:
    """URLs of healthy engines, from the router's list."""
    try:
        answer = json.loads(text_of(body))
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"it is not JSON: {error}") from error
    workers = answer.get("workers") if isinstance(answer, dict) else None
    if not isinstance(workers, list):
        raise MalformedError("there is no list of workers")
    return frozenset(_url(worker) for worker in workers if _is_healthy(worker))


def _is_healthy(worker: Any) -> bool:
    healthy = worker.get("healthy") if isinstance(worker, dict) else None
    if not isinstance(healthy, bool):
        raise MalformedError("a worker does not say whether it is healthy")
    return healthy


def _url(worker: dict[str, Any]) -> str:
    url = worker.get("url")
    if not isinstance(url, str):
        raise MalformedError("a worker has no URL")
    return url


def _number(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1
    if not 0 <= number <= MAX_IN_FLIGHT:  # not true of NaN either
        raise MalformedError(f"sglang_agent_{name} is {value[:40]}")
    return number


def text_of(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise MalformedError("it is not UTF-8") from error
