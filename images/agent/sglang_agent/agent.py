"""The agent's state, and all that changes it: what was seen of the engine, and drains."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, assert_never

from sglang_agent.drain import (
    Draining,
    Ended,
    Limits,
    Look,
    Outcome,
    Serving,
    State,
    incarnated,
    looked,
    requested,
    ticked,
)
from sglang_agent.engine import Load
from sglang_agent.incarnation import Sighting, with_process, with_reachable
from sglang_agent.metrics import Figures, Metrics
from sglang_agent.warming.metrics import WarmingCollector
from sglang_agent.warming.warming import Warming

LOG = logging.getLogger("sglang_agent")

NOT_ASKED = "the engine has not answered yet"


@dataclass(frozen=True, slots=True)
class Report:
    """How a drain ended. `in_flight`: requests that were cut, None where that is unknown."""

    outcome: Outcome
    seconds: float
    in_flight: int | None


class Agent:
    """`now` is a clock that never goes back. Everything runs in one event loop.

    `drained` is told each end of a drain. `warming` None: nothing is to be warmed.
    """

    def __init__(
        self,
        limits: Limits,
        now: Callable[[], float],
        drained: Callable[[Report], None] = lambda _: None,
        warming: Warming | None = None,
    ) -> None:
        self.metrics = Metrics(self.figures)
        if warming:
            self.metrics.register(WarmingCollector(warming))
        self.hurry = asyncio.Event()
        """Set when a drain begins: the next look is due now."""
        self._limits = limits
        self._now = now
        self._drained = drained
        self._warming = warming
        self._state: State = Serving()
        self._sighting = Sighting()
        self._not_ready: str = NOT_ASKED
        self._load = Load(None, NOT_ASKED)
        self._ended: asyncio.Future[Report] | None = None
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def draining(self) -> bool:
        """True from the request of a drain on, until another engine takes over."""
        return not isinstance(self._state, Serving)

    @property
    def engine_ready(self) -> bool:
        """It says so itself, whatever else readiness waits for."""
        return not self._not_ready

    @property
    def incarnation(self) -> str | None:
        return self._sighting.incarnation

    def unready(self) -> str:
        """Why no new request should come here. Empty: they may."""
        match self._state:
            case Serving():
                return self._not_ready or self._not_warm()
            case Draining(since_s=since_s, in_flight=in_flight):
                took_s = self._now() - since_s
                return f"draining for {took_s:.1f} s, in flight: {_count(in_flight)}"
            case Ended(outcome=outcome, took_s=took_s):
                return f"the engine is about to stop: its drain has ended after {took_s:.1f} s: {outcome}"
            case _:
                assert_never(self._state)

    def _not_warm(self) -> str:
        return self._warming.unready(self.incarnation) if self._warming else ""

    def figures(self) -> Figures:
        return Figures(self.engine_ready, self.draining, self._load.in_flight)

    def status(self) -> dict[str, Any]:
        """What GET /v1/status answers."""
        return {
            "incarnation": self._sighting.incarnation,
            "ready": not self.unready(),
            "reason": self.unready() or None,
            "in_flight": self._load.in_flight,
            "draining": self.draining,
            "drain": self._drain(),
            "warming": self._warming.status() if self._warming else None,
        }

    def _drain(self) -> dict[str, Any] | None:
        match self._state:
            case Serving():
                return None
            case Draining() as drain:
                now_s = self._now()
                return {
                    "outcome": None,
                    "seconds": round(now_s - drain.since_s, 3),
                    "seconds_left": round(max(0.0, drain.deadline_s - now_s), 3),
                }
            case Ended() as end:
                return {"outcome": end.outcome, "seconds": round(end.took_s, 3), "seconds_left": 0}
            case _:
                assert_never(self._state)

    async def drain(self) -> Report:
        """Begin a drain, or join the one there is, and wait for its end."""
        now_s = self._now()
        self._become(requested(self._state, now_s, self._limits, self._sighting.incarnation))
        if isinstance(self._state, Ended):
            return Report(self._state.outcome, self._state.took_s, self._state.in_flight)
        assert self._ended  # noqa: S101  _become has set it
        # Shielded: a caller that goes away must not cancel what others wait for.
        return await asyncio.shield(self._ended)

    def saw_ready(self, problem: str) -> None:
        """The engine was asked whether it is ready. No problem: it is."""
        if problem == self._not_ready:
            return
        was_ready, self._not_ready = not self._not_ready, problem
        if not problem:
            LOG.info("the engine is ready")
        elif was_ready:
            LOG.warning("the engine is not ready any more", extra={"reason": problem})

    def saw_load(self, began_s: float, load: Load) -> None:
        if load.problem and not self._load.problem and not self._not_ready:
            LOG.warning("what is in flight is unknown", extra={"reason": load.problem})
        self._load = load
        self._become(looked(self._state, Look(began_s, load.in_flight), self._now()))

    def saw_process(self, process: str) -> None:
        self._saw(with_process(self._sighting, process))

    def saw_reachable(self, reachable: bool) -> None:
        self._saw(with_reachable(self._sighting, reachable))

    def _saw(self, sighting: Sighting) -> None:
        before, self._sighting = self._sighting, sighting
        if sighting.incarnation is None or sighting.incarnation == before.incarnation:
            return
        what = {"incarnation": sighting.incarnation}
        if before.incarnation is None:
            LOG.info("an engine was found", extra=what)
        else:
            LOG.info("another engine process has taken over", extra=what)
            self.metrics.incarnation_changes.inc()
            # What was seen of the other one says nothing about this one.
            self._not_ready, self._load = NOT_ASKED, Load(None, NOT_ASKED)
        self._become(incarnated(self._state, sighting.incarnation))

    def _become(self, state: State) -> None:
        before, self._state = self._state, state
        match before, state:
            case Serving(), Draining(deadline_s=deadline_s):
                self._begin(deadline_s)
            case Draining(), Ended(outcome=outcome, took_s=took_s, in_flight=in_flight):
                self._end(Report(outcome, took_s, in_flight))
            case Draining(since_s=since_s), Serving():
                self._end(Report(Outcome.RESTARTED, self._now() - since_s, None))
            case Ended(), Serving():
                LOG.info("the drain is over: another engine serves")

    def _begin(self, deadline_s: float) -> None:
        LOG.info("draining", extra={"in_flight": self._load.in_flight})
        loop = asyncio.get_running_loop()
        self._ended = loop.create_future()
        self._deadline = loop.call_later(deadline_s - self._now(), self._tick)
        self.hurry.set()

    def _tick(self) -> None:
        self._become(ticked(self._state, self._now()))
        if isinstance(self._state, Draining):  # the timer was a moment early
            left_s = self._state.deadline_s - self._now()
            self._deadline = asyncio.get_running_loop().call_later(left_s, self._tick)

    def _end(self, report: Report) -> None:
        level = logging.WARNING if report.outcome is Outcome.CUT else logging.INFO
        LOG.log(
            level,
            "the drain has ended",
            extra={
                "outcome": report.outcome,
                "seconds": round(report.seconds, 3),
                "in_flight": report.in_flight,
            },
        )
        cut = (report.in_flight or 0) if report.outcome is Outcome.CUT else 0
        self.metrics.drained(report.outcome, report.seconds, cut)
        self._drained(report)
        if self._deadline:
            self._deadline.cancel()
        if self._ended:
            self._ended.set_result(report)


def _count(in_flight: int | None) -> str:
    return "unknown" if in_flight is None else str(in_flight)
