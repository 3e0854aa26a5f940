"""One step of a rollout between the revisions of a role, as a pure function.

Promises, for D wanted units, whatever the order of observations:
- at most one unit above D exists at a time, and only while an older revision remains;
- units that serve never fall below D - 1 by our doing, and with D = 1 the last serving unit goes
  only when a unit of the new revision is ready or cannot be placed beside it;
- while a unit of the new revision is neither ready nor short of room, nothing else moves: a bad
  revision is held and the old one serves.

Whether an extra unit fits is asked of the scheduler itself, which alone knows affinity, quota and
custom rules: the new unit is made first, and if no node has room for it within
SURGE_PATIENCE_S an old unit makes way.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

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


def next_step(desired: int, new: Units | None, old: Sequence[Units], *, no_room: bool) -> Step:
    """One rollout step, or the same numbers to hold.

    `old` goes from the oldest to the newest. `no_room` says that a unit of the new revision has
    waited SURGE_PATIENCE_S for a node with room. `new` is None when the spec cannot be run.
    """
    older = tuple(old)
    if new is None:
        return Step(None, _resized(older, desired))
    asked_old = sum(units.wanted for units in older)
    if asked_old == 0:
        return Step(replace(new, wanted=desired), older)
    if new.wanted > desired:
        return Step(replace(new, wanted=desired), older)
    return _rolling(desired, new, older, asked_old, no_room=no_room)


def _rolling(
    desired: int, new: Units, old: tuple[Units, ...], asked_old: int, *, no_room: bool
) -> Step:
    asked = asked_old + new.wanted
    surplus = asked - desired
    new_all_ready = new.ready >= new.wanted
    idle_old = asked_old - sum(units.ready for units in old)
    if idle_old > 0 and new.wanted and new_all_ready:  # nothing that serves is lost by it
        return Step(new, _without(old, idle_old))
    if surplus > 1:  # scaled in during the rollout, or a change during a rollout
        # First what does not serve: old units, then new ones; then old ones that do.
        excess, loading = surplus - 1, max(0, new.wanted - new.ready)
        unborn = min(max(0, excess - idle_old), loading)
        fewer = replace(new, wanted=new.wanted - unborn)
        return Step(fewer, _without(old, excess - unborn))
    if surplus < 0:  # scaled out during the rollout
        # While the new revision is held, the old one has to carry the load.
        held = new.wanted > 0 and not new_all_ready
        if held and any(units.ready for units in old):
            return Step(new, _resized(old, asked_old - surplus))
        return Step(replace(new, wanted=new.wanted - surplus), old)
    if surplus == 1:
        ready = new.ready + sum(units.ready for units in old)
        if new_all_ready or (no_room and (idle_old > 0 or ready >= desired)):
            return Step(new, _without(old, 1))
        return Step(new, old)
    if new_all_ready and new.wanted < desired:
        return Step(replace(new, wanted=new.wanted + 1), old)
    return Step(new, old)


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
