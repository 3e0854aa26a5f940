"""Routers in the story of a cluster: what clients reach, and what status says of it."""

from typing import Any

import pytest

from sglang_controllers.manifest import ObjectKey
from sglang_controllers.plan import Plan
from sglang_controllers.planner import plan
from sglang_controllers.pods import is_ready, revision_of, worker_url
from sglang_controllers.reports import RouterReport
from sglang_controllers.snapshot import Snapshot
from tests.builders import a_cluster
from tests.simulation import (
    BROKEN,
    GOOD,
    World,
    a_serving_world,
    engines_key,
    reason,
)

SERVICE = ObjectKey("Service", "chat")


def behind(world: World) -> str:
    """The role that the cluster's Service points to."""
    return str(world.children[SERVICE]["spec"]["selector"]["sglang.dev/role"])


def router_deployments(world: World) -> list[str]:
    return [
        key.name for key in world.children if key.kind == "Deployment" and "-router-" in key.name
    ]


def ready_condition(answer: Plan) -> dict[str, Any]:
    assert answer.status is not None
    return next(c for c in answer.status["conditions"] if c["type"] == "Ready")


def seeing(snapshot: Snapshot, *workers: frozenset[str] | None) -> Snapshot:
    """The snapshot with other answers of its routers, in the order of their names."""
    reports = {
        uid: RouterReport(snapshot.now, seen)
        for uid, seen in zip(sorted(snapshot.router_reports), workers, strict=True)
    }
    return Snapshot(
        snapshot.cluster,
        snapshot.now,
        snapshot.children,
        snapshot.pods,
        engine_reports=snapshot.engine_reports,
        router_reports=reports,
    )


def urls(world: World) -> frozenset[str]:
    return frozenset(str(worker_url(pod)) for pod in world.engines)


def test_two_routers_stand_before_the_engines_and_engines_have_a_service_of_their_own() -> None:
    world = a_serving_world()

    assert len(world.routers) == 2
    assert behind(world) == "router"
    own = world.children[ObjectKey("Service", "chat-engines")]["spec"]["selector"]
    assert own["sglang.dev/role"] == "unified"


def test_a_changed_engine_restarts_no_router() -> None:
    world = a_serving_world()
    before = {pod["metadata"]["uid"] for pod in world.routers}

    world.change(cache={"pageSize": 16})
    world.settle()

    assert {pod["metadata"]["uid"] for pod in world.routers} == before


def test_a_changed_router_restarts_no_engine_and_is_ready_before_the_old_one_goes() -> None:
    world = a_serving_world()
    engines = {pod["metadata"]["uid"] for pod in world.engines}
    (old,) = router_deployments(world)

    world.change(router={"policy": "round_robin"})
    for _ in range(30):
        world.reconcile()
        world.live()
        assert sum(map(is_ready, world.routers)) >= 2

    (new,) = router_deployments(world)
    assert new != old
    assert reason(world) == "Serving"
    assert {pod["metadata"]["uid"] for pod in world.engines} == engines


def test_a_router_that_cannot_start_takes_nothing_away() -> None:
    world = a_serving_world()
    good = {revision_of(pod) for pod in world.pods}
    world.behaviour = lambda revision: GOOD if revision in good else BROKEN

    world.change(router={"policy": "round_robin"})
    world.turns(30)

    assert sum(map(is_ready, world.routers)) == 2
    assert len(router_deployments(world)) == 2
    assert reason(world) == "ImagePull"
    assert "routers' image" in world.condition("Ready")["message"]  # type: ignore[index]
    assert world.condition("Available")["status"] == "True"  # type: ignore[index]


def test_settings_that_never_served_go_with_the_next_ones() -> None:
    world = a_serving_world()
    good = {revision_of(pod) for pod in world.pods}
    world.behaviour = lambda revision: GOOD if revision in good else BROKEN

    for policy in ("round_robin", "power_of_two"):
        world.change(router={"policy": policy})
        world.turns(5)

    assert len(router_deployments(world)) == 2, "the one that serves, and the newest"
    assert sum(map(is_ready, world.routers)) == 2


@pytest.mark.parametrize("field", [{"replicas": 3}, {"replicas": 1}])
def test_the_number_of_routers_changes_without_new_ones(field: dict[str, int]) -> None:
    world = a_serving_world()
    before = router_deployments(world)

    world.change(router=field)
    world.settle()

    assert router_deployments(world) == before
    assert len(world.routers) == field["replicas"]


def test_routers_that_are_switched_off_leave_nothing_behind() -> None:
    world = a_serving_world()

    world.change(router={"enabled": False})
    world.settle()

    assert behind(world) == "unified"
    assert not [key for key in world.children if "router" in key.name]
    assert reason(world) == "Serving"
    assert world.reconcile() == Plan()


def test_a_service_at_engines_waits_for_the_first_router() -> None:
    world = a_serving_world(router={"enabled": False})
    engines = {pod["metadata"]["uid"] for pod in world.engines}

    world.change(router={})
    world.reconcile()

    assert behind(world) == "unified"
    world.settle()
    assert behind(world) == "router"
    assert {pod["metadata"]["uid"] for pod in world.engines} == engines


def test_with_an_api_key_the_service_never_points_to_engines() -> None:
    world = a_serving_world(router={"enabled": False})

    world.change(router={"apiKeySecretRef": {"name": "keys", "key": "k"}})
    world.reconcile()

    assert behind(world) == "router"


def test_without_engines_routers_are_not_waited_for() -> None:
    world = a_serving_world(replicas=0)

    world.change(router={"policy": "random"})
    world.settle()

    assert reason(world) == "ScaledToZero"
    assert len(router_deployments(world)) == 1


def test_ready_means_that_every_router_sees_every_engine() -> None:
    world = a_serving_world(replicas=2)
    all_, snapshot = urls(world), world.snapshot()
    (first, *_) = sorted(all_)

    answer = plan(seeing(snapshot, all_, all_ - {first}))

    assert ready_condition(answer)["reason"] == "RouterNotReady"
    assert "not every router has found engine" in ready_condition(answer)["message"]
    assert answer.ask
    assert answer.again_after_s


def test_ready_is_not_said_before_routers_have_answered() -> None:
    world = World(a_cluster())
    world.talk = False
    world.turns(20)

    assert reason(world) == "RouterNotReady"
    assert "port 29001" in world.condition("Ready")["message"]  # type: ignore[index]


def test_a_router_that_stops_answering_takes_nothing_back() -> None:
    world = a_serving_world()
    world.talk = False

    assert world.reconcile() == Plan()


def test_an_engine_that_a_router_has_not_found_takes_nobodys_place() -> None:
    world = a_serving_world()
    (old,) = world.revisions()
    before = urls(world)
    world.change(cache={"pageSize": 16})
    world.reconcile()
    world.live(3)
    assert world.ready() == 2

    answer = plan(seeing(world.snapshot(), before, before))

    scaled = [apply.manifest for apply in answer.apply]
    assert [m for m in scaled if old in m["metadata"]["name"]] == []
    found = plan(world.snapshot())
    assert any(old in a.manifest["metadata"]["name"] for a in found.apply)


def test_neither_ready_nor_available_is_said_while_the_routers_are_dead() -> None:
    world = a_serving_world()
    for router in world.routers:
        router["status"]["conditions"] = [{"type": "Ready", "status": "False"}]

    answer = plan(world.snapshot())

    assert answer.status is not None
    conditions = {c["type"]: c["status"] for c in answer.status["conditions"]}
    assert (conditions["Ready"], conditions["Available"]) == ("False", "False")


def test_a_spec_that_is_not_understood_leaves_the_routers_alone() -> None:
    world = a_serving_world()

    world.change(router={"policy": "no such policy"})
    answer = world.reconcile()

    assert (answer.create, answer.apply, answer.delete) == ((), (), ())
    assert reason(world) == "InvalidSpec"
    assert world.condition("Available")["status"] == "True"  # type: ignore[index]


def test_a_router_template_that_cannot_be_taken_over_is_told() -> None:
    container = {"name": "router", "args": ["--x"]}
    world = World(a_cluster(router={"podTemplate": {"spec": {"containers": [container]}}}))

    world.reconcile()

    assert reason(world) == "InvalidSpec"
    message = world.condition("Ready")["message"]  # type: ignore[index]
    assert "spec.router.podTemplate.spec.containers" in message


def test_an_upgraded_operator_keeps_routers_with_their_image() -> None:
    world = a_serving_world()
    (name,) = router_deployments(world)
    world.children[ObjectKey("Deployment", name)]["spec"]["template"] = {"older": "builder"}

    assert world.reconcile() == Plan()


def test_the_api_key_is_in_no_argument() -> None:
    world = a_serving_world(router={"apiKeySecretRef": {"name": "keys", "key": "k"}})
    (name,) = router_deployments(world)
    spec = world.children[ObjectKey("Deployment", name)]["spec"]["template"]["spec"]
    (container,) = spec["containers"]

    assert not [argument for argument in container["args"] if "key" in argument]
    (variable,) = container["env"]
    assert variable["valueFrom"] == {"secretKeyRef": {"name": "keys", "key": "k"}}


def test_a_missing_token_is_made_again() -> None:
    world = a_serving_world()
    secret = ObjectKey("Secret", "chat-agent")
    assert secret in world.children

    def kinds(answer: Plan) -> list[str]:
        return [manifest["kind"] for manifest in answer.create]

    assert kinds(plan(world.snapshot())) == []
    world.tokens = False
    assert kinds(plan(world.snapshot())) == ["Secret"]


def test_an_old_engine_that_one_router_does_not_list_is_not_taken_away() -> None:
    world = a_serving_world(replicas=4)
    (old,) = world.revisions()
    world.change(cache={"pageSize": 16})
    world.turns(1)
    world.live(2)
    (new,) = (pod for pod in world.engines if revision_of(pod) != old)
    only_new = frozenset({str(worker_url(new))})

    answer = plan(seeing(world.snapshot(), urls(world), only_new))

    (scaled,) = (a.manifest for a in answer.apply if old in a.manifest["metadata"]["name"])
    assert scaled["spec"]["replicas"] == 3


def test_routers_that_cannot_start_replace_none_while_engines_are_away_for_a_moment() -> None:
    world = a_serving_world()
    good = {revision_of(pod) for pod in world.pods}
    world.behaviour = lambda revision: GOOD if revision in good else BROKEN
    world.change(router={"policy": "round_robin"})
    world.turns(5)
    (engine,) = world.engines
    engine["status"]["conditions"] = [{"type": "Ready", "status": "False"}]

    answer = world.reconcile()

    assert answer.delete == ()
    assert len(router_deployments(world)) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"engine": {"extraArgs": {"tp-size": 2}}},
        {"podTemplate": {"spec": {"containers": [{"name": "engine", "image": "x"}]}}},
    ],
)
def test_the_service_is_not_turned_to_routers_that_are_not_made(wrong: dict[str, Any]) -> None:
    world = a_serving_world(router={"enabled": False})

    world.change(router={"apiKeySecretRef": {"name": "keys", "key": "k"}}, **wrong)
    world.turns(20)

    assert behind(world) == "unified" or sum(map(is_ready, world.routers)) == 2


def test_a_router_deployment_that_is_gone_is_made_again_while_engine_arguments_are_bad() -> None:
    world = a_serving_world()
    (name,) = router_deployments(world)
    del world.children[ObjectKey("Deployment", name)]

    world.change(engine={"extraArgs": {"tp-size": 2}})
    world.turns(10)

    assert router_deployments(world) == [name]
    assert reason(world) == "BadEngineArgs"


def test_a_blind_router_that_holds_a_rollout_is_told_and_asked_again() -> None:
    world = a_serving_world()
    before = urls(world)
    world.change(cache={"pageSize": 16})
    world.reconcile()
    world.live(3)

    answer = plan(seeing(world.snapshot(), before, before))

    assert ready_condition(answer)["reason"] == "RollingOut"
    assert "not every router has found engine" in ready_condition(answer)["message"]
    assert (answer.ask, answer.again_after_s) == (True, 2)


def test_clients_of_engines_need_no_router_to_be_served() -> None:
    world = a_serving_world(router={"enabled": False})
    good = {revision_of(pod) for pod in world.pods}
    world.behaviour = lambda revision: GOOD if revision in good else BROKEN

    world.change(router={})
    world.turns(10)

    assert behind(world) == "unified"
    assert world.condition("Available")["status"] == "True"  # type: ignore[index]


def test_a_partial_list_of_one_router_does_not_make_a_cluster_unavailable() -> None:
    world = a_serving_world(replicas=4)
    (first, *_) = sorted(urls(world))

    answer = plan(seeing(world.snapshot(), urls(world), frozenset({first})))

    assert answer.status is not None
    available = next(c for c in answer.status["conditions"] if c["type"] == "Available")
    assert available["status"] == "True"


@pytest.mark.parametrize("change", [{"replicas": 3}, {"policy": "random"}, {"enabled": False}])
def test_a_paused_cluster_says_so_of_its_routers_too(change: dict[str, Any]) -> None:
    world = a_serving_world()

    world.change(router=change, paused=True)
    answer = world.reconcile()

    assert reason(world) == "Paused"
    assert not answer.ask


def test_a_key_that_somebody_adds_to_a_selector_does_not_turn_the_service_to_routers() -> None:
    world = a_serving_world(router={"enabled": False})
    good = {revision_of(pod) for pod in world.pods}
    world.behaviour = lambda revision: GOOD if revision in good else BROKEN
    world.change(router={})
    world.turns(3)
    world.children[SERVICE]["spec"]["selector"]["app"] = "theirs"

    world.reconcile()

    assert behind(world) == "unified"


def test_nothing_runs_as_an_account_that_is_somebody_elses() -> None:
    world = World(a_cluster())
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "chat-router", "uid": "theirs"},
    }
    world.children[ObjectKey("ServiceAccount", "chat-router")] = account

    world.turns(5)

    assert router_deployments(world) == []
    assert ObjectKey("RoleBinding", "chat-router") not in world.children
    assert reason(world) == "Conflict"


def test_a_deployment_whose_labels_say_router_is_still_the_engines() -> None:
    world = a_serving_world()
    live = world.children[engines_key(world)]
    live["metadata"]["labels"]["sglang.dev/role"] = "router"

    answer = world.reconcile()

    assert (answer.create, answer.delete) == ((), ())
    assert live["metadata"]["labels"]["sglang.dev/role"] == "unified"
