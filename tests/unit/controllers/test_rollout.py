"""Steps of a rollout: whole sequences, then promises that hold for every sequence."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sglang_controllers.rollout import Step, Units, next_step


def steps(desired: int, slots: int) -> str:
    """Wanted pods, old+new, of a rollout in which everything becomes ready, if there is room."""
    new, old = Units("new", 0, 0), Units("old", desired, desired)
    seen: list[str] = []
    for _ in range(50):
        if f"{old.wanted}+{new.wanted}" not in seen:
            seen.append(f"{old.wanted}+{new.wanted}")
        no_room = old.wanted + new.wanted > slots
        step = next_step(desired, new, (old,), no_room=no_room)
        assert step.new is not None
        placed = min(step.new.wanted, slots - step.old[0].wanted)
        now = (replace(step.new, ready=placed), replace(step.old[0], ready=step.old[0].wanted))
        if now == (new, old):
            return " ".join(seen)
        new, old = now
    raise AssertionError(seen)


@pytest.mark.parametrize(
    ("desired", "slots", "expected"),
    [
        pytest.param(1, 2, "1+0 1+1 0+1", id="one replica, one spare GPU: the new comes first"),
        pytest.param(1, 1, "1+0 1+1 0+1", id="one replica, no spare GPU: the old makes way"),
        pytest.param(2, 3, "2+0 2+1 1+1 1+2 0+2", id="one spare GPU: surge first"),
        pytest.param(2, 2, "2+0 2+1 1+1 1+2 0+2", id="no spare GPU: one at a time"),
        pytest.param(0, 2, "0+0", id="nothing wanted"),
    ],
)
def test_a_rollout_takes_these_steps(desired: int, slots: int, expected: str) -> None:
    assert steps(desired, slots) == expected


def test_a_rollout_holds_while_a_new_unit_is_not_ready() -> None:
    step = next_step(2, Units("new", 1, 0), (Units("old", 2, 2),), no_room=False)

    assert step == Step(Units("new", 1, 0), (Units("old", 2, 2),))


def test_units_that_do_not_serve_leave_first() -> None:
    old = (Units("a", 1, 1), Units("b", 1, 0))

    step = next_step(2, Units("new", 1, 1), old, no_room=False)

    assert step.old == (Units("a", 1, 1), Units("b", 0, 0))


def test_scaling_out_while_a_bad_revision_is_held_adds_to_the_old_one() -> None:
    step = next_step(4, Units("new", 1, 0), (Units("old", 2, 2),), no_room=False)

    assert step == Step(Units("new", 1, 0), (Units("old", 3, 2),))


def test_without_a_usable_spec_only_the_number_follows() -> None:
    step = next_step(1, None, (Units("a", 1, 0), Units("b", 2, 2)), no_room=False)

    assert step == Step(None, (Units("a", 0, 0), Units("b", 1, 2)))


@dataclass(frozen=True)
class Fleet:
    desired: int
    new: Units
    old: tuple[Units, ...]
    no_room: bool


def units(name: str) -> st.SearchStrategy[Units]:
    return st.integers(0, 6).flatmap(
        lambda wanted: st.integers(0, wanted).map(lambda ready: Units(name, wanted, ready))
    )


fleets = st.builds(
    Fleet,
    desired=st.integers(0, 6),
    new=units("new"),
    old=st.lists(units("old"), max_size=3).map(
        lambda found: tuple(replace(u, revision=f"old{i}") for i, u in enumerate(found))
    ),
    no_room=st.booleans(),
)


@given(fleets)
@settings(max_examples=500)
def test_serving_units_never_fall_below_the_floor_by_our_doing(fleet: Fleet) -> None:
    step = next_step(fleet.desired, fleet.new, fleet.old, no_room=fleet.no_room)

    assert step.new is not None
    now = fleet.new.ready + sum(u.ready for u in fleet.old)
    kept = min(fleet.new.ready, step.new.wanted) + sum(
        min(before.ready, after.wanted) for before, after in zip(fleet.old, step.old, strict=True)
    )
    floor = fleet.desired - 1 if fleet.desired > 1 or fleet.no_room else fleet.desired
    assert kept >= min(now, floor)


@given(fleets)
@settings(max_examples=500)
def test_more_than_one_unit_above_the_wanted_number_is_never_asked_for(fleet: Fleet) -> None:
    step = next_step(fleet.desired, fleet.new, fleet.old, no_room=fleet.no_room)

    assert step.new is not None
    before = fleet.new.wanted + sum(u.wanted for u in fleet.old)
    after = step.new.wanted + sum(u.wanted for u in step.old)
    assert after <= max(before, fleet.desired + 1)
