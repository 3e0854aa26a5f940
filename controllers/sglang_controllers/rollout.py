"""One step of a rollout between the revisions of a role, as a pure function.

Promises, for D wanted units, at most S in surge and U unavailable, whatever the order of
observations:
- at most S units above D exist at a time, and only while an older revision remains;
- units that serve never fall below D - U by our doing, and below D only when S is 0 or units of the
  new revision cannot be placed beside the old ones;
- while a unit of the new revision is neither ready nor short of room, nothing else moves: a bad
  revision is held and the old one serves.

Whether an extra unit fits is asked of the scheduler itself, which alone knows affinity, quota and
custom rules: the new unit is made first, and if no node has room for it within
SURGE_PATIENCE_S old units make way, as many as U allows.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sglang_controllers.api.operation import Rollout

SURGE_PATIENCE_S = 30
"""How long a new unit may wait for room beside the old ones before one of them makes way."""


@dataclass(frozen=True, slots=True)
class Units:
    """Serving units of one revision: how many are asked for, and how many are ready."""

    revision: str
    wanted: int
    ready: int


@dataclass(frozen=True, slots=True)
class Step:
    """Wanted units after one step: of the new revision (None: it has no units) and of older ones."""

    new: Units | None
    old: tuple[Units, ...]


@dataclass(frozen=True, slots=True)
class Goal:
    """Units that are wanted, and how far a rollout may stray from that, up and down."""

    desired: int
    surge: int = 1
    unavailable: int = 1

    @property
    def floor(self) -> int:
        """Ready units that are enough to be called available: at least one, if any is wanted."""
        return min(self.desired, max(1, self.desired - self.unavailable))


def goal_of(wanted: Rollout, desired: int) -> Goal:
    """Percentages are of `desired`, the surge rounded up and the other down, as in Deployments."""
    surge = _units_of(wanted.max_surge, desired, math.ceil)
    unavailable = _units_of(wanted.max_unavailable, desired, math.floor)
    # Two small percentages may both come to nothing, and then nothing could ever move.
    return Goal(desired, surge, unavailable if surge or unavailable else 1)


def _units_of(amount: int | str | None, desired: int, rounded: Callable[[float], int]) -> int:
    if amount is None:
        return 1
    if isinstance(amount, str) and amount.endswith("%"):
        return rounded(int(amount[:-1]) * desired / 100)
    return int(amount)


def next_step(goal: Goal, new: Units | None, old: Sequence[Units], *, no_room: bool) -> Step:
    """One rollout step, or the same numbers to hold.

    `old` goes from the oldest to the newest. `no_room` says that a unit of the new revision has
    waited SURGE_PATIENCE_S for a node with room. `new` is None when the spec cannot be run.
    """
    older = tuple(old)
    if new is None:
        return Step(None, _resized(older, goal.desired))
    asked_old = sum(units.wanted for units in older)
    if asked_old == 0:
        return Step(replace(new, wanted=goal.desired), older)
    if new.wanted > goal.desired:
        return Step(replace(new, wanted=goal.desired), older)
    return _rolling(goal, new, older, no_room=no_room)


def _rolling(goal: Goal, new: Units, old: tuple[Units, ...], *, no_room: bool) -> Step:
    asked_old = sum(units.wanted for units in old)
    surplus = asked_old + new.wanted - goal.desired
    new_all_ready = new.ready >= new.wanted
    idle_old = asked_old - sum(units.ready for units in old)
    if idle_old > 0 and new.wanted and new_all_ready:  # nothing that serves is lost by it
        return Step(new, _without(old, idle_old))
    if surplus > goal.surge:  # scaled in during the rollout, or a change during a rollout
        # First what does not serve: old units, then new ones; then old ones that do.
        excess, loading = surplus - goal.surge, max(0, new.wanted - new.ready)
        unborn = min(max(0, excess - idle_old), loading)
        fewer = replace(new, wanted=new.wanted - unborn)
        return Step(fewer, _without(old, excess - unborn))
    if surplus < 0:  # scaled out during the rollout
        # While the new revision is held, the old one has to carry the load.
        held = new.wanted > 0 and not new_all_ready
        if held and any(units.ready for units in old):
            return Step(new, _resized(old, asked_old - surplus))
        return Step(replace(new, wanted=new.wanted - surplus), old)
    ready = new.ready + sum(units.ready for units in old)
    spare = max(0, ready - (goal.desired - goal.unavailable))
    if surplus > 0:
        if new_all_ready:
            return Step(new, _without(old, surplus))
        return Step(new, _without(old, min(surplus, idle_old + spare) if no_room else 0))
    if not new_all_ready or new.wanted >= goal.desired:
        return Step(new, old)
    if goal.surge:
        more = min(goal.surge, goal.desired - new.wanted)
        return Step(replace(new, wanted=new.wanted + more), old)
    return Step(new, _without(old, idle_old + spare))  # the next step makes new ones instead


def _without(old: tuple[Units, ...], count: int) -> tuple[Units, ...]:
    """Take `count` units away: units that do not serve first, then of the oldest revision."""
    left = list(old)
    for only_idle in (True, False):
        for i, units in enumerate(left):
            spare = units.wanted - units.ready if only_idle else units.wanted
            take = max(0, min(count, spare))
            left[i] = replace(units, wanted=units.wanted - take)
            count -= take
    return tuple(left)


def _resized(old: tuple[Units, ...], total: int) -> tuple[Units, ...]:
    """Bring the sum of wanted units to `total`; additions go to the revision that serves best."""
    now = sum(units.wanted for units in old)
    if total <= now:
        return _without(old, now - total)
    if not old:
        return old
    best = max(range(len(old)), key=lambda i: (old[i].ready, i))
    return tuple(
        replace(units, wanted=units.wanted + total - now) if i == best else units
        for i, units in enumerate(old)
    )
