"""The least loaded pod goes first, and reports are fresh when it is chosen."""

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sglang_controllers.manifest import Manifest
from sglang_controllers.names import DELETION_COST
from sglang_controllers.reports import EngineReport
from sglang_controllers.scale_in import deletion_costs, must_ask
from tests.builders import NOW, a_pod
from tests.simulation import World, a_serving_world, reason

READY: dict[str, Any] = {"conditions": [{"type": "Ready", "status": "True"}]}

Loads = dict[str, int | None]


def pods(*names: str) -> list[Manifest]:
    return [a_pod(name=name, **READY) for name in names]


def reports(loads: Loads) -> dict[str, EngineReport]:
    return {f"uid-{name}": EngineReport(NOW, load, True) for name, load in loads.items()}


def survivors(made: list[Manifest], costs: dict[str, int], wanted: int) -> set[str]:
    """What a ReplicaSet keeps of ready pods."""
    marked = {p["metadata"]["name"]: costs.get(p["metadata"]["name"], 0) for p in made}
    return set(sorted(marked, key=lambda name: marked[name])[len(made) - wanted :])


@given(st.lists(st.none() | st.integers(0, 5), min_size=2, max_size=6), st.data())
def test_no_pod_that_stays_has_less_to_finish_than_one_that_goes(
    loads: list[int | None], data: st.DataObject
) -> None:
    names = [f"p{i}" for i in range(len(loads))]
    wanted = data.draw(st.integers(1, len(loads) - 1))
    by_name = dict(zip(names, loads, strict=True))

    costs = deletion_costs(pods(*names), reports(by_name), wanted)

    stay = survivors(pods(*names), costs, wanted)
    weight = {n: float("inf") if by_name[n] is None else by_name[n] for n in names}
    assert min(weight[n] or 0 for n in stay) >= max(weight[n] or 0 for n in set(names) - stay)


def test_equal_loads_need_no_marks_and_old_marks_are_taken_off() -> None:
    made = pods("a", "b")

    assert deletion_costs(made, reports({"a": 3, "b": 3}), 1) == {}
    made[0]["metadata"]["annotations"] = {DELETION_COST: "7"}
    assert deletion_costs(made, reports({"a": 3, "b": 3}), 1) == {"a": 0}


def test_a_mark_that_is_no_number_counts_as_none() -> None:
    made = pods("a", "b")
    made[0]["metadata"]["annotations"] = {DELETION_COST: "much"}

    assert deletion_costs(made, reports({"a": 0, "b": 2}), 1) == {"b": 1}


def test_where_there_is_no_choice_nothing_is_asked_or_marked() -> None:
    made = [*pods("a"), a_pod(name="b")]

    assert not must_ask(made, {}, 1, NOW)  # the one that is not ready goes
    assert not must_ask(made, {}, 0, NOW)  # all go
    assert deletion_costs(made, reports({"a": 5}), 1) == {}


def test_old_reports_are_asked_for_anew_and_silence_holds_nothing_up() -> None:
    made = pods("a", "b")
    known = reports({"a": 1, "b": None})

    assert must_ask(made, {}, 1, NOW)
    assert not must_ask(made, known, 1, NOW + timedelta(seconds=2))
    assert must_ask(made, known, 1, NOW + timedelta(seconds=3))
    many = [f"p{i}" for i in range(40)]
    silent_ones = reports(dict.fromkeys(many[:30], None))
    assert not must_ask(pods(*many), silent_ones, 1, NOW)  # the others are never heard
    silent = reports({"a": None, "b": None})
    assert not must_ask(made, silent, 1, NOW + timedelta(hours=1))


def test_the_least_loaded_engine_leaves_first() -> None:
    world = a_serving_world(replicas=3)
    names = [pod["metadata"]["name"] for pod in world.engines]
    world.loads = dict(zip(names, [4, 0, 2], strict=True))

    world.change(replicas=1)
    world.settle()

    assert [pod["metadata"]["name"] for pod in world.engines] == [names[0]]
    assert reason(world) == "Serving"


def test_pods_are_marked_before_a_scale_in_and_not_at_rest() -> None:
    world = a_serving_world(replicas=2)
    first, second = (pod["metadata"]["name"] for pod in world.engines)
    world.loads = {first: 5, second: 1}

    at_rest = world.reconcile()
    world.change(replicas=1)
    planned = world.reconcile()

    assert at_rest.apply == ()
    assert [apply.manifest["kind"] for apply in planned.apply] == ["Pod", "Deployment"]


def test_a_scale_in_waits_for_reports_once() -> None:
    world: World = a_serving_world(replicas=2)
    world.change(replicas=1)
    world.report_age = timedelta(seconds=20)

    held = world.reconcile()

    assert held.ask
    assert held.again_after_s == 0
    assert [apply.manifest["kind"] for apply in held.apply] == []
