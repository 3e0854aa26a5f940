"""Steps of a rollout: whole sequences, then promises that hold for every sequence."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sglang_controllers.api.operation import Rollout
from sglang_controllers.rollout import Goal, Step, Units, goal_of, next_step


def steps(goal: Goal, slots: int) -> str:
    """Wanted pods, old+new, of a rollout in which everything becomes ready, if there is room."""
    new, old = Units("new", 0, 0), Units("old", goal.desired, goal.desired)
    seen: list[str] = []
    for _ in range(50):
        if f"{old.wanted}+{new.wanted}" not in seen:
            seen.append(f"{old.wanted}+{new.wanted}")
        no_room = old.wanted + new.wanted > slots
        step = next_step(goal, new, (old,), no_room=no_room)
        assert step.new is not None
        placed = min(step.new.wanted, slots - step.old[0].wanted)
        now = (replace(step.new, ready=placed), replace(step.old[0], ready=step.old[0].wanted))
        if now == (new, old):
            return " ".join(seen)
        new, old = now
    raise AssertionError(seen)


@pytest.mark.parametrize(
    ("goal", "slots", "expected"),
    [
        pytest.param(Goal(1), 2, "1+0 1+1 0+1", id="one replica, one spare GPU: the new is first"),
        pytest.param(Goal(1), 1, "1+0 1+1 0+1", id="one replica, no spare GPU: the old makes way"),
        pytest.param(Goal(2), 3, "2+0 2+1 1+1 1+2 0+2", id="one spare GPU: surge first"),
        pytest.param(Goal(2), 2, "2+0 2+1 1+1 1+2 0+2", id="no spare GPU: one at a time"),
        pytest.param(Goal(0), 2, "0+0", id="nothing wanted"),
        pytest.param(Goal(4, surge=2), 6, "4+0 4+2 2+2 2+4 0+4", id="two at a time where two fit"),
        pytest.param(
            Goal(4, surge=2, unavailable=2), 4, "4+0 4+2 2+2 2+4 0+4", id="two make way for two"
        ),
        pytest.param(
            Goal(3, surge=2),
            3,
            "3+0 3+2 2+2 1+2 1+3 0+3",
            id="two wait, and one makes way at a time",
        ),
        pytest.param(Goal(2, surge=0), 3, "2+0 1+0 1+1 0+1 0+2", id="no surge: the old goes first"),
        pytest.param(
            Goal(3, surge=0, unavailable=2), 3, "3+0 1+0 1+2 0+2 0+3", id="no surge, two at a time"
        ),
        pytest.param(
            Goal(2, unavailable=0), 2, "2+0 2+1", id="no room and none to spare: it waits"
        ),
        pytest.param(
            Goal(2, unavailable=0), 3, "2+0 2+1 1+1 1+2 0+2", id="none to spare, but room"
        ),
    ],
)
def test_a_rollout_takes_these_steps(goal: Goal, slots: int, expected: str) -> None:
    assert steps(goal, slots) == expected


@pytest.mark.parametrize(
    ("rollout", "desired", "surge", "unavailable"),
    [
        ({}, 4, 1, 1),
        ({"maxSurge": 3, "maxUnavailable": 2}, 4, 3, 2),
        ({"maxSurge": "25%", "maxUnavailable": "25%"}, 6, 2, 1),
        ({"maxSurge": "0%", "maxUnavailable": "10%"}, 3, 0, 1),
        ({"maxSurge": "100%"}, 0, 0, 1),
        ({"maxUnavailable": 0}, 4, 1, 0),
    ],
)
def test_limits_are_read_as_in_a_deployment(
    rollout: dict[str, int | str], desired: int, surge: int, unavailable: int
) -> None:
    goal = goal_of(Rollout.model_validate(rollout), desired)

    assert (goal.surge, goal.unavailable) == (surge, unavailable)


def test_old_units_that_never_served_do_not_block_a_rollout_without_surge() -> None:
    step = next_step(Goal(2, surge=0), Units("new", 0, 0), (Units("old", 2, 0),), no_room=False)

    assert step.old == (Units("old", 0, 0),)


def test_a_rollout_holds_while_a_new_unit_is_not_ready() -> None:
    step = next_step(Goal(2), Units("new", 1, 0), (Units("old", 2, 2),), no_room=False)

    assert step == Step(Units("new", 1, 0), (Units("old", 2, 2),))


def test_units_that_do_not_serve_leave_first() -> None:
    old = (Units("a", 1, 1), Units("b", 1, 0))

    step = next_step(Goal(2), Units("new", 1, 1), old, no_room=False)

    assert step.old == (Units("a", 1, 1), Units("b", 0, 0))


def test_scaling_out_while_a_bad_revision_is_held_adds_to_the_old_one() -> None:
    step = next_step(Goal(4), Units("new", 1, 0), (Units("old", 2, 2),), no_room=False)

    assert step == Step(Units("new", 1, 0), (Units("old", 3, 2),))


def test_without_a_usable_spec_only_the_number_follows() -> None:
    step = next_step(Goal(1), None, (Units("a", 1, 0), Units("b", 2, 2)), no_room=False)

    assert step == Step(None, (Units("a", 0, 0), Units("b", 1, 2)))


@dataclass(frozen=True)
class Fleet:
    goal: Goal
    new: Units
    old: tuple[Units, ...]
    no_room: bool


def units(name: str) -> st.SearchStrategy[Units]:
    return st.integers(0, 6).flatmap(
        lambda wanted: st.integers(0, wanted).map(lambda ready: Units(name, wanted, ready))
    )


fleets = st.builds(
    Fleet,
    goal=st.builds(Goal, st.integers(0, 6), st.integers(0, 3), st.integers(0, 3)),
    new=units("new"),
    old=st.lists(units("old"), max_size=3).map(
        lambda found: tuple(replace(u, revision=f"old{i}") for i, u in enumerate(found))
    ),
    no_room=st.booleans(),
)


@given(fleets)
@settings(max_examples=500)
def test_serving_units_never_fall_below_the_floor_by_our_doing(fleet: Fleet) -> None:
    step = next_step(fleet.goal, fleet.new, fleet.old, no_room=fleet.no_room)

    assert step.new is not None
    now = fleet.new.ready + sum(u.ready for u in fleet.old)
    kept = min(fleet.new.ready, step.new.wanted) + sum(
        min(before.ready, after.wanted) for before, after in zip(fleet.old, step.old, strict=True)
    )
    assert kept >= min(now, fleet.goal.desired - fleet.goal.unavailable)
    if fleet.goal.surge and not fleet.no_room:
        assert kept >= min(now, fleet.goal.desired)


@given(fleets)
@settings(max_examples=500)
def test_more_units_above_the_wanted_number_than_the_surge_are_never_asked_for(
    fleet: Fleet,
) -> None:
    step = next_step(fleet.goal, fleet.new, fleet.old, no_room=fleet.no_room)

    assert step.new is not None
    before = fleet.new.wanted + sum(u.wanted for u in fleet.old)
    after = step.new.wanted + sum(u.wanted for u in step.old)
    assert after <= max(before, fleet.goal.desired + fleet.goal.surge)
