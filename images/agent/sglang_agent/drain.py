"""The course of a drain, as values: serving -> draining -> drained | cut -> serving.

No I/O and no clock: times are arguments, in seconds of one clock that never goes back.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

QUIET_LOOKS = 2
"""In a row. A request that is just being accepted is in none of the engine's counts, and a single
look can fall into that moment."""


class Outcome(StrEnum):
    """How a drain ended."""

    DRAINED = "drained"
    """Nothing was in flight any more."""
    CUT = "cut"
    """Its time was over before."""
    RESTARTED = "restarted"
    """Another engine process took over, to which the drain does not apply."""


@dataclass(frozen=True, slots=True)
class Limits:
    """`reaction_s`: until routers and proxies have stopped sending new requests."""

    reaction_s: float
    drain_timeout_s: float


@dataclass(frozen=True, slots=True)
class Look:
    """What was in flight, None where that could not be learned, and when it was asked."""

    began_s: float
    in_flight: int | None


@dataclass(frozen=True, slots=True)
class Serving:
    pass


@dataclass(frozen=True, slots=True)
class Draining:
    """`incarnation` None: no engine has been seen yet."""

    since_s: float
    reacted_s: float
    deadline_s: float
    incarnation: str | None
    quiet_looks: int = 0
    in_flight: int | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """The engine is about to be stopped. `in_flight`: what was cut, None where that is unknown."""

    outcome: Outcome
    took_s: float
    in_flight: int | None
    incarnation: str | None


State = Serving | Draining | Ended


def requested(state: State, now_s: float, limits: Limits, incarnation: str | None) -> State:
    """A drain was asked for. One that runs, or has ended, is the same one."""
    if not isinstance(state, Serving):
        return state
    reacted_s = now_s + limits.reaction_s
    deadline_s = max(reacted_s, now_s + limits.drain_timeout_s)
    return Draining(now_s, reacted_s, deadline_s, incarnation)


def looked(state: State, look: Look, now_s: float) -> State:
    """The engine was looked at. Only looks that began after the reaction time count."""
    if not isinstance(state, Draining) or look.began_s < state.since_s:
        return state
    state = replace(state, in_flight=look.in_flight)
    if now_s >= state.deadline_s:
        return _cut(state, now_s)
    if look.in_flight != 0:
        return replace(state, quiet_looks=0)
    if look.began_s < state.reacted_s:
        return state
    if state.quiet_looks + 1 < QUIET_LOOKS:
        return replace(state, quiet_looks=state.quiet_looks + 1)
    return Ended(Outcome.DRAINED, now_s - state.since_s, 0, state.incarnation)


def ticked(state: State, now_s: float) -> State:
    """Time has passed."""
    if isinstance(state, Draining) and now_s >= state.deadline_s:
        return _cut(state, now_s)
    return state


def incarnated(state: State, incarnation: str) -> State:
    """The engine process is this one. A drain of another one is over.

    A kill by a probe runs the same preStop, and the engine that comes back has to serve.
    """
    if isinstance(state, Serving) or state.incarnation == incarnation:
        return state
    if state.incarnation is None:
        return replace(state, incarnation=incarnation)
    return Serving()


def _cut(state: Draining, now_s: float) -> Ended:
    return Ended(Outcome.CUT, now_s - state.since_s, state.in_flight, state.incarnation)
