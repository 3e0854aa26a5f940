"""The story of a cluster, as a user sees it: apply, serve, change, break, revert, scale, pause."""

import pytest

from sglang_controllers import names
from sglang_controllers.manifest import ObjectKey
from sglang_controllers.plan import Plan
from sglang_controllers.planner import plan
from sglang_controllers.snapshot import Snapshot, WriteError
from tests.builders import NOW, a_cluster
from tests.simulation import BROKEN, GOOD, World, a_serving_world, engines_key, reason


def test_an_applied_cluster_becomes_ready() -> None:
    world = a_serving_world(replicas=2)

    assert world.ready() == 2
    assert world.condition("Ready")["status"] == "True"  # type: ignore[index]
    assert {key.kind for key in world.children} == {
        "ServiceAccount",
        "Service",
        "PodDisruptionBudget",
        "ConfigMap",
        "Deployment",
        "Secret",
        "Role",
        "RoleBinding",
    }


def test_a_second_reconcile_at_rest_plans_nothing() -> None:
    world = a_serving_world(replicas=2)

    assert world.reconcile() == Plan()


def test_nothing_is_done_for_a_cluster_that_is_being_deleted() -> None:
    cluster = a_cluster()
    cluster["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z"

    assert plan(Snapshot(cluster, NOW)) == Plan()


def test_a_changed_field_rolls_to_a_new_revision_and_removes_the_old() -> None:
    world = a_serving_world(replicas=2)
    (before,) = world.revisions()

    world.change(cache={"eviction": {"policy": "lfu"}})
    world.settle()

    (after,) = world.revisions()
    assert after != before
    assert engines_key(world).name == f"chat-unified-{after}"
    assert len([key for key in world.children if key.kind == "ConfigMap"]) == 1


def test_changing_back_gives_the_first_names_again() -> None:
    world = a_serving_world()
    before = set(world.children)

    world.change(cache={"eviction": {"policy": "lfu"}})
    world.settle()
    del world.cluster["spec"]["cache"]
    world.settle()

    assert set(world.children) == before


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_with_a_free_gpu_every_replica_keeps_serving(replicas: int) -> None:
    world = a_serving_world(slots=replicas + 1, replicas=replicas)

    world.change(cache={"pageSize": 16})
    for _ in range(100):
        world.reconcile()
        world.live()
        assert world.ready() >= replicas
    assert reason(world) == "Serving"


@pytest.mark.parametrize("replicas", [2, 3])
def test_without_a_free_gpu_a_rollout_takes_one_replica_at_a_time(replicas: int) -> None:
    world = a_serving_world(slots=replicas, replicas=replicas)

    world.change(cache={"pageSize": 16})
    for _ in range(100):
        world.reconcile()
        world.live()
        assert world.ready() >= replicas - 1
    assert reason(world) == "Serving"


def test_a_single_replica_without_a_free_gpu_is_replaced() -> None:
    world = a_serving_world(slots=1)

    world.change(cache={"pageSize": 16})
    world.settle()

    assert reason(world) == "Serving"


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_a_bad_revision_is_held_and_the_old_one_serves(replicas: int) -> None:
    world = a_serving_world(slots=replicas + 1, replicas=replicas)
    (before,) = world.revisions()
    world.behaviour = lambda revision: GOOD if revision == before else BROKEN

    world.change(engine={"image": "registry.example/missing:1"})
    for _ in range(60):
        world.reconcile()
        world.live()
        assert world.ready(before) == replicas

    assert reason(world) == "ImagePull"
    assert world.condition("Stalled") is not None
    assert world.condition("Available")["status"] == "True"  # type: ignore[index]


def test_a_revert_returns_to_the_old_revision() -> None:
    world = a_serving_world(slots=2, replicas=2)
    (before,) = world.revisions()
    world.behaviour = lambda revision: GOOD if revision == before else BROKEN
    world.change(engine={"image": "registry.example/missing:1"})
    world.turns(20)
    assert world.ready(before) == 1

    del world.cluster["spec"]["engine"]
    world.settle()

    assert world.revisions() == {before: 2}
    assert reason(world) == "Serving"


def test_a_change_during_a_rollout_goes_straight_to_the_newest() -> None:
    world = a_serving_world(slots=4, replicas=3)
    (first,) = world.revisions()
    world.behaviour = lambda revision: GOOD if revision == first else BROKEN
    world.change(engine={"image": "registry.example/missing:1"})
    world.turns(10)

    world.behaviour = lambda _revision: GOOD
    world.change(engine={"image": "registry.example/engine:2"})
    world.settle(100)

    assert len(world.revisions()) == 1
    assert reason(world) == "Serving"


def test_scaling_changes_no_revision() -> None:
    world = a_serving_world(replicas=1)
    (before,) = world.revisions()

    world.change(replicas=3)
    world.settle()
    assert world.revisions() == {before: 3}
    world.change(replicas=0)
    world.settle()

    assert world.revisions() == {}
    assert reason(world) == "ScaledToZero"


def test_one_replica_too_many_waits_for_a_gpu() -> None:
    world = a_serving_world(slots=2, replicas=2)

    world.change(replicas=3)
    world.settle(10)

    assert reason(world) == "WaitingForGPU"
    assert "needs 1 nvidia.com/gpu" in world.condition("Ready")["message"]  # type: ignore[index]
    assert world.condition("Available")["status"] == "True"  # type: ignore[index]
    assert world.condition("Reconciling") is not None
    assert world.ready() == 2


def test_a_paused_cluster_is_not_changed() -> None:
    world = a_serving_world()
    world.change(paused=True, replicas=3, cache={"pageSize": 16})
    before = dict(world.children)

    world.settle(5)

    assert world.children == before
    assert reason(world) == "Paused"


def test_a_paused_cluster_that_needs_no_change_is_ready() -> None:
    world = a_serving_world()

    world.change(paused=True)
    world.settle(5)

    assert reason(world) == "Serving"


def test_bad_arguments_are_told_before_any_pod_is_made() -> None:
    world = World(a_cluster(engine={"extraArgs": {"tp-size": 2}}))

    world.settle(5)

    assert reason(world) == "BadEngineArgs"
    assert not world.pods


def test_bad_arguments_leave_the_serving_revision_and_its_scaling_alone() -> None:
    world = a_serving_world(replicas=2)
    (before,) = world.revisions()

    world.change(engine={"extraArgs": {"tp-size": 2}}, replicas=3)
    world.settle(10)

    assert world.revisions() == {before: 3}
    assert reason(world) == "BadEngineArgs"


def test_a_foreign_object_is_a_conflict_and_stays_as_it_is() -> None:
    world = World(a_cluster())
    foreign = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "chat", "uid": "theirs"},
        "spec": {"ports": [{"port": 1}]},
    }
    world.children[ObjectKey("Service", "chat")] = foreign

    world.settle(5)

    assert reason(world) == "Conflict"
    assert "Service chat belongs to nobody" in world.condition("Ready")["message"]  # type: ignore[index]
    assert world.children[ObjectKey("Service", "chat")] == foreign


def test_an_object_of_a_deleted_cluster_of_that_name_is_waited_for() -> None:
    old = World(a_cluster(uid="uid-old"))
    old.settle()
    world = World(a_cluster(uid="uid-new"))
    world.children = dict(old.children)

    world.settle(5)
    assert reason(world) == "Starting"
    assert "deleted SGLangCluster of this name" in world.condition("Ready")["message"]  # type: ignore[index]
    world.children.clear()
    world.pods.clear()
    world.settle()

    assert reason(world) == "Serving"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (WriteError("create", 409, "AlreadyExists", "exists"), "Conflict"),
        (WriteError("create", 403, "Forbidden", 'exceeded quota: "gpus"'), "QuotaExceeded"),
        (WriteError("create", 422, "Invalid", "spec.template: Invalid value"), "Rejected"),
        (
            WriteError(
                "create",
                422,
                "Invalid",
                "spec.template.spec.volumes[3]: Required value: must specify a volume type",
            ),
            "UnsupportedByCluster",
        ),
    ],
)
def test_a_refused_write_reaches_status(error: WriteError, expected: str) -> None:
    key = ObjectKey("Deployment", "chat-unified-r1")

    answer = plan(Snapshot(a_cluster(), NOW, errors={key: error}))

    assert answer.status is not None
    assert answer.status["conditions"][0]["reason"] == expected


def test_of_two_refusals_the_one_to_mend_first_is_told() -> None:
    errors = {
        ObjectKey("Deployment", "a"): WriteError("create", 422, "Invalid", "spec: bad"),
        ObjectKey("Service", "b"): WriteError("create", 409, "AlreadyExists", "exists"),
    }

    answer = plan(Snapshot(a_cluster(), NOW, errors=errors))

    assert answer.status is not None
    assert answer.status["conditions"][0]["reason"] == "Conflict"


def test_a_hash_collision_gets_a_name_of_its_own() -> None:
    first = plan(Snapshot(a_cluster(), NOW)).create
    theirs = next(m for m in first if m["kind"] == "Deployment")
    theirs["metadata"]["uid"] = "child-1"
    theirs["metadata"]["annotations"][names.SPEC_HASH_ANNOTATION] = "of another spec"
    key = ObjectKey("Deployment", theirs["metadata"]["name"])

    second = plan(Snapshot(a_cluster(), NOW, children={key: theirs})).create

    made = next(m for m in second if m["kind"] == "Deployment")
    assert made["metadata"]["name"] != theirs["metadata"]["name"]


def test_a_new_builder_leaves_existing_revisions_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_serving_world(replicas=2)
    before = {pod["metadata"]["uid"] for pod in world.pods}

    monkeypatch.setattr("sglang_controllers.revision.TEMPLATE_VERSION", 2)
    monkeypatch.setattr("sglang_controllers.resources.agent.EXIT_S", 999)
    world.settle()

    assert {pod["metadata"]["uid"] for pod in world.pods} == before
    assert world.reconcile() == Plan()


@pytest.mark.parametrize(
    "message",
    [
        "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules.",
        "0/2 nodes are available: 2 Too many pods.",
        "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports.",
        "0/2 nodes are available: 2 cannot allocate all claims.",
    ],
)
def test_an_extra_replica_that_nothing_but_leaving_helps_makes_an_old_one_leave(
    message: str,
) -> None:
    world = a_serving_world(slots=2, replicas=2)
    world.unplaced = message

    world.change(cache={"pageSize": 16})
    world.turns(60)

    assert reason(world) == "Serving"
    assert len(world.revisions()) == 1


def test_an_extra_replica_that_no_node_may_take_holds_the_rollout() -> None:
    world = a_serving_world(slots=2, replicas=2)
    (before,) = world.revisions()
    world.unplaced = "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."

    world.change(podTemplate={"spec": {"nodeSelector": {"no": "such"}}})
    world.turns(60)

    assert world.ready(before) == 2
    assert reason(world) == "Unschedulable"


def test_a_quota_without_room_for_an_extra_replica_does_not_stop_a_rollout() -> None:
    world = a_serving_world(replicas=2)
    world.quota = 2

    world.change(cache={"pageSize": 16})
    world.turns(60)

    assert reason(world) == "Serving"
    assert len(world.revisions()) == 1


def test_a_setting_and_more_replicas_in_one_change_start_no_old_engine() -> None:
    world = a_serving_world(replicas=2)
    (before,) = world.revisions()
    most = 2

    world.change(replicas=4, cache={"pageSize": 16})
    for _ in range(60):
        world.reconcile()
        world.live()
        most = max(most, world.revisions().get(before, 0))

    assert most == 2
    assert reason(world) == "Serving"
