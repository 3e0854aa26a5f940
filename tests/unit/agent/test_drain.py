"""The course of a drain, for any order of events."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_agent.drain import (
    QUIET_LOOKS,
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

LIMITS = Limits(reaction_s=5, drain_timeout_s=20)
COUNTS = st.none() | st.integers(0, 3)


@dataclass(frozen=True, slots=True)
class Event:
    """A look that took some time, or, without one, only time that has passed."""

    after_s: float
    look_s: float | None = None
    in_flight: int | None = None


EVENTS = st.lists(
    st.builds(Event, st.floats(0, 4), st.none() | st.floats(0, 6), COUNTS | st.just(0)),
    max_size=60,
)
SOME_LIMITS = st.builds(Limits, st.floats(0, 30), st.floats(0, 60))


@dataclass(frozen=True, slots=True)
class Step:
    state: State
    now_s: float
    looks: tuple[Look, ...]
    """All until then."""


def course(limits: Limits, events: list[Event]) -> list[Step]:
    """The state after each event of a drain that was requested at 100."""
    now_s = 100.0
    state = requested(Serving(), now_s, limits, "first")
    looks: tuple[Look, ...] = ()
    steps = [Step(state, now_s, looks)]
    for event in events:
        now_s += event.after_s
        if event.look_s is None:
            state = ticked(state, now_s)
        else:
            look = Look(now_s, event.in_flight)
            now_s += event.look_s
            state = looked(state, look, now_s)
            looks = (*looks, look)
        steps.append(Step(state, now_s, looks))
    return steps


def ends(steps: list[Step]) -> list[Step]:
    """The step in which the drain has ended, if it has."""
    return [step for step in steps if isinstance(step.state, Ended)][:1]


@given(SOME_LIMITS, EVENTS)
def test_drained_means_that_the_last_looks_saw_nothing_in_flight(
    limits: Limits, events: list[Event]
) -> None:
    for end in ends(course(limits, events)):
        assert isinstance(end.state, Ended)
        if end.state.outcome is Outcome.DRAINED:
            last = end.looks[-QUIET_LOOKS:]
            assert [look.in_flight for look in last] == [0] * QUIET_LOOKS
            assert all(look.began_s >= 100 + limits.reaction_s for look in last)


@given(SOME_LIMITS, EVENTS)
def test_no_drain_ends_before_the_reaction_time(limits: Limits, events: list[Event]) -> None:
    for end in ends(course(limits, events)):
        assert end.now_s >= 100 + limits.reaction_s


@given(SOME_LIMITS, EVENTS)
def test_every_drain_has_ended_at_its_deadline(limits: Limits, events: list[Event]) -> None:
    deadline_s = 100 + max(limits.reaction_s, limits.drain_timeout_s)

    for step in course(limits, events)[1:]:  # the first is the request itself
        assert isinstance(step.state, Ended) or step.now_s < deadline_s


@given(SOME_LIMITS, EVENTS)
def test_another_engine_ends_any_drain(limits: Limits, events: list[Event]) -> None:
    last = course(limits, events)[-1].state

    assert incarnated(last, "second") == Serving()
    assert incarnated(last, "first") == last


@given(SOME_LIMITS, EVENTS)
def test_a_second_request_joins_the_first(limits: Limits, events: list[Event]) -> None:
    for step in course(limits, events):
        assert requested(step.state, step.now_s, limits, "first") == step.state


def draining(*looks: Look) -> State:
    state = requested(Serving(), 100, LIMITS, "first")
    for look in looks:
        state = looked(state, look, look.began_s + 0.1)
    return state


def test_two_looks_at_nothing_in_flight_after_the_reaction_time_end_a_drain() -> None:
    state = draining(Look(105, 0), Look(106, 0))

    assert isinstance(state, Ended)
    assert (state.outcome, state.in_flight) == (Outcome.DRAINED, 0)
    assert state.took_s == pytest.approx(6.1)


@pytest.mark.parametrize(
    "looks",
    [
        pytest.param([Look(103, 0), Look(104, 0), Look(105, 0)], id="two of them were too early"),
        pytest.param([Look(105, 0)], id="there was one"),
        pytest.param([Look(105, 0), Look(106, 1), Look(107, 0)], id="a request came between"),
        pytest.param([Look(105, 0), Look(106, None), Look(107, 0)], id="one saw nothing"),
        pytest.param([Look(105, 2), Look(106, 1)], id="something is in flight"),
        pytest.param([Look(98, 0), Look(99, 0)], id="they were before the drain"),
    ],
)
def test_a_drain_goes_on_when(looks: list[Look]) -> None:
    assert isinstance(draining(*looks), Draining)


@pytest.mark.parametrize(("last", "cut"), [(3, 3), (None, None), (0, 0)])
def test_a_cut_tells_what_the_last_look_saw(last: int | None, cut: int | None) -> None:
    state = ticked(draining(Look(105, 5), Look(119, last)), 120)

    assert state == Ended(Outcome.CUT, 20, cut, "first")


def test_a_time_out_below_the_reaction_time_is_stretched_to_it() -> None:
    state = requested(Serving(), 100, Limits(reaction_s=5, drain_timeout_s=0), "first")

    assert isinstance(ticked(state, 104.9), Draining)
    assert isinstance(ticked(state, 105), Ended)


def test_a_drain_that_began_before_an_engine_was_seen_is_the_first_ones() -> None:
    state = incarnated(requested(Serving(), 100, LIMITS, None), "first")

    assert isinstance(state, Draining)
    assert incarnated(state, "second") == Serving()
