"""What somebody else does to a cluster's objects, by hand or by another controller."""

from copy import deepcopy
from datetime import timedelta

import pytest

from sglang_controllers import names
from sglang_controllers.manifest import ObjectKey, key_of
from sglang_controllers.plan import Plan
from tests.simulation import a_serving_world, engines_key, reason


def test_pods_of_a_deleted_deployment_do_not_count_for_its_successor() -> None:
    world = a_serving_world()
    key = engines_key(world)
    del world.children[key]
    world.now += timedelta(seconds=5)

    world.reconcile()
    world.reconcile()

    assert reason(world) == "Starting"
    assert world.cluster["status"]["roles"][0]["ready"] == 0


def test_orphaned_pods_that_were_adopted_count_after_a_while() -> None:
    world = a_serving_world()
    key = engines_key(world)
    del world.children[key]
    world.now += timedelta(seconds=5)
    world.reconcile()

    world.now += timedelta(seconds=90)
    world.reconcile()

    assert reason(world) == "Serving"


def test_a_service_that_is_being_deleted_is_not_called_serving() -> None:
    world = a_serving_world()
    world.children[ObjectKey("Service", "chat")]["metadata"]["deletionTimestamp"] = "now"

    world.reconcile()

    assert reason(world) == "Starting"


def test_a_removed_hash_annotation_restarts_nothing_and_is_put_back() -> None:
    world = a_serving_world()
    before = {pod["metadata"]["uid"] for pod in world.pods}
    live = world.children[engines_key(world)]
    del live["metadata"]["annotations"][names.SPEC_HASH_ANNOTATION]

    world.settle()

    assert {pod["metadata"]["uid"] for pod in world.pods} == before
    assert names.SPEC_HASH_ANNOTATION in live["metadata"]["annotations"]


@pytest.mark.parametrize("edited", ["other", None], ids=["changed", "removed"])
@pytest.mark.parametrize("kind", ["Deployment", "ConfigMap"])
def test_an_edited_revision_label_is_put_right_in_part_only(kind: str, edited: str | None) -> None:
    world = a_serving_world()
    live = world.children[ObjectKey(kind, engines_key(world).name)]
    right = live["metadata"]["labels"].pop(names.REVISION_LABEL)
    if edited:
        live["metadata"]["labels"][names.REVISION_LABEL] = edited

    answer = world.reconcile()

    assert not answer.create
    assert not answer.delete
    assert [apply.complete for apply in answer.apply] == [False]
    assert live["metadata"]["labels"][names.REVISION_LABEL] == right
    assert world.reconcile() == Plan()


def test_a_port_that_somebody_adds_to_the_service_stays_and_costs_no_writes() -> None:
    world = a_serving_world()
    world.children[ObjectKey("Service", "chat")]["spec"]["ports"].append({"port": 9, "name": "x"})

    assert world.reconcile() == Plan()


def test_a_condition_that_somebody_adds_costs_no_writes() -> None:
    world = a_serving_world()
    world.cluster["status"]["conditions"].insert(0, {"type": "Theirs", "status": "True"})

    assert world.reconcile() == Plan()


def test_an_evicted_pod_does_not_keep_its_old_revision() -> None:
    world = a_serving_world(replicas=2)
    (before,) = world.revisions()
    evicted = deepcopy(world.pods[0])
    evicted["metadata"] |= {"name": "evicted", "uid": "evicted"}
    evicted["status"] = {"phase": "Failed", "reason": "Evicted"}

    world.change(cache={"pageSize": 16})
    for _ in range(60):
        world.reconcile()
        world.live()
        world.pods.append(deepcopy(evicted))
        world.reconcile()
        world.pods.pop()

    assert not [key for key in world.children if before in key.name]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("Service", "chat"),
        ("Service", "chat-engines"),
        ("PodDisruptionBudget", "chat-unified"),
        ("PodDisruptionBudget", "chat-router"),
    ],
)
def test_a_key_that_somebody_adds_to_a_selector_is_taken_out(kind: str, name: str) -> None:
    world = a_serving_world()
    selector = world.children[ObjectKey(kind, name)]["spec"]["selector"]
    selector.get("matchLabels", selector)["app"] = "theirs"

    answer = world.reconcile()

    assert [key_of(apply.manifest) for apply in answer.apply] == [ObjectKey(kind, name)]


def test_a_pod_template_that_somebody_changed_is_told_and_left_alone() -> None:
    world = a_serving_world()
    live = world.children[engines_key(world)]
    live["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = "2"

    answer = world.reconcile()

    assert (answer.create, answer.apply, answer.delete) == ((), (), ())
    ready = next(c for c in world.cluster["status"]["conditions"] if c["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("True", "Serving")
    assert f"somebody else has changed in Deployment {live['metadata']['name']}" in ready["message"]
