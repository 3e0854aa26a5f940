"""Prompts on their way into pods, planned and carried out step by step."""

from dataclasses import replace

from sglang_controllers.manifest import Manifest, ObjectKey
from sglang_controllers.names import DELETION_COST, WARMING_ANNOTATION
from sglang_controllers.plan import Plan
from sglang_controllers.planner import LOOK_AGAIN_S, SOON_S, plan
from sglang_controllers.reports import EngineReport, WarmingReport
from sglang_controllers.snapshot import WriteError
from sglang_controllers.warming.sources import Source
from tests.builders import a_cluster
from tests.simulation import World, a_serving_world, reason
from tests.unit.controllers.warming.prompts import a_source, named

SLOT = ObjectKey("ConfigMap", "chat-warming-0")
NO_ROUTER = {"enabled": False}


def a_warm_world(replicas: int = 1, **sources: Source | None) -> World:
    """A cluster that serves, all of whose agents show and have warmed what is to be seen."""
    world = World(warming_cluster(replicas, *sources))
    world.sources.update(sources)
    world.warming = lambda pod: WarmingReport("warmed", mark(world, pod), warmed=1)
    world.settle()
    assert reason(world) == "Serving"
    return world


def warming_cluster(replicas: int, *names: str) -> Manifest:
    cache = {"warming": {"promptsFrom": [named(name) for name in names]}}
    return a_cluster(replicas=replicas, cache=cache, router=NO_ROUTER)


def mark(world: World, pod: str = "") -> str:
    """The hash that a pod is marked with."""
    (found,) = [p for p in world.engines if p["metadata"]["name"] == pod] or world.engines[:1]
    return str(found["metadata"].get("annotations", {}).get(WARMING_ANNOTATION, "")).split(".")[0]


def kinds(answer: Plan) -> list[str]:
    return [apply.manifest["kind"] for apply in answer.apply]


def warmed(world: World) -> tuple[str, str]:
    found = world.condition("Warmed")
    assert found is not None
    return str(found["status"]), str(found["reason"])


def test_prompts_are_there_before_the_first_pod() -> None:
    world = World(warming_cluster(1, "prompts"))
    world.sources["prompts"] = a_source(a="Hello")

    created = [manifest["kind"] for manifest in world.reconcile().create]

    assert created.index("ConfigMap") < created.index("Deployment")


def test_a_warm_cluster_at_rest_is_left_alone() -> None:
    world = a_warm_world(prompts=a_source(a="Hello"))
    before = world.writes

    world.turns(5)

    assert world.writes == before
    assert warmed(world) == ("True", "Warmed")


def test_an_edit_reaches_its_slot_and_every_pod_in_one_run() -> None:
    world = a_warm_world(2, prompts=a_source(a="Hello"))
    world.sources["prompts"] = a_source(a="Bye")

    assert kinds(world.reconcile()) == ["ConfigMap", "Pod", "Pod"]
    assert world.reconcile().apply == ()


def test_a_new_name_of_a_config_map_restarts_nothing() -> None:
    world = a_warm_world(prompts=a_source(a="Hello"))
    pods, deployments = [p["metadata"]["uid"] for p in world.pods], world.revisions()
    world.sources["prompts-2"] = a_source(a="Bye")
    world.change(cache={"warming": {"promptsFrom": [named("prompts-2")]}})

    world.settle()

    assert [p["metadata"]["uid"] for p in world.pods] == pods
    assert world.revisions() == deployments
    assert warmed(world) == ("True", "Warmed")


def test_prompts_that_come_while_engines_serve_leave_them_ready() -> None:
    world = a_warm_world(prompts=None)
    assert warmed(world) == ("False", "WarmingSourceMissing")
    world.sources["prompts"] = a_source(a="Hello")

    answer = world.reconcile()

    assert [manifest["metadata"]["name"] for manifest in answer.create] == ["chat-warming-0"]
    assert reason(world) == "Serving"


def test_a_missing_config_map_leaves_the_cluster_ready() -> None:
    world = a_warm_world(prompts=None)

    assert reason(world) == "Serving"
    assert world.condition("Stalled") is None


def test_prompts_that_go_leave_their_pods_too_and_the_slot_goes_first() -> None:
    world = a_warm_world(prompts=a_source(a="Hello"))
    world.sources["prompts"] = None

    first, second = world.reconcile(), world.reconcile()

    assert [delete.name for delete in first.delete] == ["chat-warming-0"]
    assert (kinds(first), kinds(second)) == ([], ["Pod"])
    assert SLOT not in world.children
    assert mark(world) == ""


def test_what_is_not_read_yet_is_left_as_it_is() -> None:
    world = a_warm_world(prompts=a_source(a="Hello"))
    world.sources.clear()

    answer = world.reconcile()

    assert (answer.create, answer.apply, answer.delete) == ((), (), ())
    assert answer.again_after_s == LOOK_AGAIN_S
    assert SLOT in world.children


def test_a_spec_that_is_not_understood_leaves_prompts_as_they_are() -> None:
    world = a_warm_world(prompts=a_source(a="Hello"))
    world.change(cache={"warming": {"promptsFrom": 7}})

    world.reconcile()

    assert reason(world) == "InvalidSpec"
    assert SLOT in world.children


def test_warming_that_is_switched_off_takes_slots_and_status_along() -> None:
    world = a_warm_world(prompts=a_source(a="Hello"))
    world.change(cache={})

    world.settle()

    assert SLOT not in world.children
    assert world.condition("Warmed") is None
    assert "warming" not in world.cluster["status"]


def test_a_slot_that_somebody_edits_is_put_right() -> None:
    world = a_warm_world(prompts=a_source(a="Hello"))
    world.children[SLOT]["digests"]["s0-0"] = "edited"

    assert kinds(world.reconcile()) == ["ConfigMap"]


def test_a_foreign_config_map_under_our_name_is_left_alone() -> None:
    world = World(warming_cluster(1, "prompts"))
    world.sources["prompts"] = a_source(a="Hello")
    world.children[SLOT] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "chat-warming-0", "namespace": "team", "uid": "foreign"},
    }

    world.settle()

    assert reason(world) == "Serving"
    assert warmed(world) == ("False", "Conflict")
    assert world.children[SLOT]["metadata"]["uid"] == "foreign"


def test_a_copy_that_is_refused_leaves_the_cluster_ready_and_holds_nothing_up() -> None:
    world = World(warming_cluster(1, "prompts"))
    world.sources["prompts"] = a_source(a="Hello")
    world.reconcile()
    del world.children[SLOT]
    error = WriteError("create", 403, "Forbidden", "exceeded quota: count/configmaps")
    snapshot = replace(world.snapshot(), errors={SLOT: error})

    answer = plan(snapshot)

    assert answer.aside == ("chat-warming-0",)
    assert answer.status is not None
    said = {each["type"]: each["reason"] for each in answer.status["conditions"]}
    assert said["Warmed"] == "QuotaExceeded"
    assert said["Ready"] != "QuotaExceeded"
    assert "Stalled" not in said


def test_a_copy_that_somebody_made_immutable_is_made_anew() -> None:
    world = a_warm_world(prompts=a_source(a="Hello"))
    world.children[SLOT]["immutable"] = True
    uid = world.children[SLOT]["metadata"]["uid"]

    first = world.reconcile()
    world.settle()

    assert [delete.name for delete in first.delete] == ["chat-warming-0"]
    assert first.apply == ()
    assert world.children[SLOT]["metadata"]["uid"] != uid
    assert warmed(world) == ("True", "Warmed")


def test_a_pod_that_gets_a_cost_is_marked_in_the_next_run() -> None:
    world = a_warm_world(3, prompts=a_source(a="Hello"))
    world.loads = {pod["metadata"]["name"]: load for load, pod in enumerate(world.engines)}
    before = mark(world)
    world.sources["prompts"] = a_source(a="Bye")
    world.change(replicas=2)

    applied = [apply.manifest["metadata"]["name"] for apply in world.reconcile().apply]
    marks = {mark(world, pod["metadata"]["name"]) for pod in world.engines}
    world.reconcile()
    now = {mark(world, pod["metadata"]["name"]) for pod in world.engines}

    assert len(applied) == len(set(applied))
    assert len(marks) == 2
    assert now == marks - {before}


def test_a_pod_that_does_not_show_its_prompts_is_asked_and_marked_again() -> None:
    world = a_warm_world(prompts=a_source(a="Hello"))
    world.sources["prompts"] = a_source(a="Bye")
    world.warming = lambda _: WarmingReport("warmed", "stale")
    world.reconcile()

    waits = world.reconcile()
    world.live()
    again = world.reconcile()

    assert (waits.ask, waits.again_after_s, kinds(waits)) == (True, SOON_S, [])
    assert kinds(again) == ["Pod"]


def test_a_paused_cluster_gets_no_prompts() -> None:
    world = a_warm_world(prompts=a_source(a="Hello"))
    world.change(paused=True)
    world.sources["prompts"] = a_source(a="Bye")

    answer = world.reconcile()

    assert (answer.create, answer.apply, answer.delete) == ((), (), ())


def test_a_mark_keeps_the_cost_of_a_deletion() -> None:
    world = a_warm_world(prompts=a_source(a="Hello"))
    world.pods[0]["metadata"]["annotations"][DELETION_COST] = "3"
    world.sources["prompts"] = a_source(a="Bye")

    _, pod = world.reconcile().apply

    assert pod.manifest["metadata"]["annotations"][DELETION_COST] == "3"


def test_arrival_and_loss_of_a_source_are_told_once() -> None:
    world = a_warm_world(prompts=a_source(a="Hello"))
    world.sources["prompts"] = None

    told = [[event.reason for event in world.reconcile().events] for _ in range(3)]

    assert told == [["WarmingSourceMissing"], [], []]


def test_tokens_of_prompts_that_are_repeated_change_no_status() -> None:
    world = a_warm_world(prompts=a_source(a="Hello"))
    tokens = iter(range(100, 10_000, 100))
    world.warming = lambda pod: WarmingReport(
        "warmed", mark(world, pod), warmed=2, tokens=next(tokens)
    )
    world.reconcile()
    first = world.cluster["status"]["warming"]["tokens"]

    assert world.reconcile().status is None
    assert world.cluster["status"]["warming"]["tokens"] == first == 100


def test_pods_at_the_gate_make_the_cluster_say_warming() -> None:
    cluster = warming_cluster(1, "prompts")
    cluster["spec"]["cache"]["warming"]["gate"] = {"timeout": "10m"}
    world = World(cluster)
    world.sources["prompts"] = a_source(a="Hello")
    world.behaviour = lambda _: "gated"
    world.reconcile()
    world.live(3)
    world.pods[0]["status"] = {
        "phase": "Running",
        "containerStatuses": [{"name": "engine", "ready": True}],
    }
    report = EngineReport(world.now, 0, True, WarmingReport("warming", ""))
    snapshot = replace(world.snapshot(), engine_reports={world.pods[0]["metadata"]["uid"]: report})

    world.execute(plan(snapshot))

    ready = world.condition("Ready")
    assert ready is not None
    assert ready["reason"] == "Warming"
    assert ready["message"].endswith("1 waits until its prompts are warmed, at most 10m")
    assert world.condition("Reconciling") is not None


def test_clusters_without_warming_have_none_of_it() -> None:
    world = a_serving_world(router=NO_ROUTER)

    assert world.condition("Warmed") is None
    assert not any(key.name.startswith("chat-warming") for key in world.children)
