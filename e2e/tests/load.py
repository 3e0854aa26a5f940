"""A steady load on a cluster, and what every event under it cost.

The client (e2e/load/client.py) runs in a pod on the control plane's node, away from the engines. Its
clock is the node's, which in kind is ours.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from e2e.tests.kube import ENGINE_IMAGE, Manifest, Namespace, restricted_pod, wait_for

CLIENT = Path(__file__).parents[1] / "load" / "client.py"
POD = "load"

REPEATS = int(os.environ.get("SGLANG_E2E_REPEATS", "1"))
"""Rounds of all events."""

SHARE = 0.2
"""Of the engines' measured capacity: one of two goes, and the next takes the CPU to start."""

STARTED_S = 90
SETTLED_S = 150
"""From an event's end until every request that began before has ended."""

SHOWN = 12
"""Lost requests in a message."""


@dataclass(frozen=True, slots=True)
class Request:
    """One that has ended. Times are Unix times; `error` is empty when all of it came."""

    request: int
    client: str
    stream: bool
    tokens: int
    start: float
    end: float
    outcome: str
    error: str
    got: int | None
    retries: int

    def told(self, begin: float) -> str:
        how = "stream" if self.stream else "plain"
        return (
            f"  {self.start - begin:+7.2f} s to {self.end - begin:+7.2f} s, {self.client}, {how}, "
            f"{self.tokens} tokens: {self.outcome}: {self.error}"
        )


@dataclass(slots=True)
class Event:
    """What was done, when, and every request that was under way at any moment of it."""

    name: str
    begin: float
    end: float = 0.0
    requests: list[Request] = field(default_factory=list)

    def lost(self, client: str | None = None) -> list[Request]:
        return [
            r for r in self.requests if r.outcome != "ok" and (client is None or r.client == client)
        ]

    def explain(self) -> str:
        """The lost requests, with times from the beginning of the event."""
        lost = self.lost()
        shown = "\n".join(request.told(self.begin) for request in lost[:SHOWN])
        return (
            f"{self.name}: {len(lost)} of {len(self.requests)} requests lost within "
            f"{self.end - self.begin:.0f} s\n{shown}"
        )

    def row(self) -> Manifest:
        """A line of the table."""
        took = sorted(request.end - request.start for request in self.requests)
        return {
            "event": self.name,
            "seconds": round(self.end - self.begin, 1),
            "requests": len(self.requests),
            "failed_sdk": sum(r.outcome == "failed" for r in self.lost("sdk")),
            "failed_raw": sum(r.outcome == "failed" for r in self.lost("raw")),
            "truncated": sum(r.outcome == "truncated" for r in self.lost()),
            "sdk_retries": sum(r.retries for r in self.requests),
            "p50_s": round(took[len(took) // 2], 2),
            "max_s": round(took[-1], 2),
            "errors": sorted({r.error for r in self.lost()}),
        }


class Load:
    """A client pod in the namespace, and the events of its time."""

    def __init__(self, namespace: Namespace, url: str, model: str, **settings: Any) -> None:
        self._namespace = namespace
        self._settings = {"url": url, "model": model, "share": SHARE} | settings
        self.events: list[Event] = []
        self.capacity = 0.0
        self.rate = 0.0

    def start(self) -> None:
        text = CLIENT.read_text()
        pod = restricted_pod(
            POD,
            {
                "name": "client",
                "image": ENGINE_IMAGE,
                "command": ["python3", "-c", text, json.dumps(self._settings)],
            },
        )
        pod["spec"]["nodeSelector"] = {"node-role.kubernetes.io/control-plane": ""}
        self._namespace.apply(pod)
        wait_for(lambda: bool(self._said("rate")), STARTED_S, self._log)
        (measured,) = self._said("rate")
        self.capacity, self.rate = measured["capacity"], measured["rate"]
        before = [r for r in self._requests() if r.outcome != "ok"]
        assert not before, Event(
            "nothing yet", measured["since"], measured["since"], before
        ).explain()

    @contextmanager
    def event(self, name: str) -> Iterator[Event]:
        """Complete when the block has ended and every request that began before its end has."""
        event = Event(name, time.time())
        self.events.append(event)
        yield event
        event.end = time.time()
        wait_for(lambda: self._settled(event.end), SETTLED_S, lambda: self._waiting(event))
        event.requests = [
            r for r in self._requests() if r.end >= event.begin and r.start <= event.end
        ]
        assert event.requests, f"{name}: no request was under way"

    def stop(self) -> list[Request]:
        """End the load; every request of it."""
        self._namespace.kubectl("exec", POD, "--", "python3", "-c", "import os; os.kill(1, 15)")
        wait_for(lambda: bool(self._said("over")), SETTLED_S, self._log)
        return self._requests()

    def between_events(self) -> Event:
        """The requests that no event accounts for."""
        of_events = {request.request for event in self.events for request in event.requests}
        left = [r for r in self._requests() if r.request not in of_events]
        return Event("between events", left[0].start, left[-1].end, left)

    def _settled(self, moment: float) -> bool:
        beats = self._said("now")
        last = beats[-1] if beats else {"now": 0.0}
        return bool(last["now"] > moment and (last["oldest"] or last["now"]) > moment)

    def _waiting(self, event: Event) -> str:
        beat = self._said("now")[-1]
        return f"{event.name}: {beat['waiting']} requests still wait, the oldest for {beat['now'] - (beat['oldest'] or beat['now']):.0f} s"

    def _requests(self) -> list[Request]:
        return [Request(**line) for line in self._said("request")]

    def _said(self, key: str) -> list[dict[str, Any]]:
        lines = [line for line in self._log().splitlines() if line.startswith("{")]
        return [said for said in map(json.loads, lines) if key in said]

    def _log(self) -> str:
        return self._namespace.kubectl("logs", POD, check=False)


def report(config: pytest.Config, load: Load, name: str) -> None:
    """Print the table of a load's events, and keep it as JSON beside what else tests leave."""
    whole = load.between_events()
    rows = [event.row() for event in (*load.events, whole) if event.requests]
    kept = Path(os.environ.get("SGLANG_OPERATOR_CACHE") or Path.home() / ".cache/sglang-operator")
    (kept / f"{name}.json").write_text(
        json.dumps({"capacity": load.capacity, "rate": load.rate, "events": rows}, indent=1)
    )
    head = f"{name}: capacity {load.capacity:.1f} requests/s, load {load.rate:.1f} requests/s"
    columns = [key for key in rows[0] if key != "errors"]
    table = [columns, *([str(row[c]) for c in columns] for row in rows)]
    widths = [max(len(line[i]) for line in table) for i in range(len(columns))]
    text = "\n".join(["", head, *("  ".join(map(str.ljust, line, widths)) for line in table)])
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    assert terminal, "pytest has no terminal to print to"
    terminal.write_line(text)
