"""Status follows kstatus, and is written on transitions only."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_controllers.manifest import Manifest, ObjectKey
from sglang_controllers.planner import plan
from sglang_controllers.reasons import Reason
from sglang_controllers.reports import CUT, Drain
from sglang_controllers.snapshot import Snapshot, WriteError
from tests.builders import NOW, a_cluster, a_pod, ended, unplaceable, waiting
from tests.simulation import World, a_serving_world


def kstatus(cluster: Manifest) -> str:
    """The rules of cli-utils' pkg/kstatus for a custom resource."""
    if cluster["metadata"].get("deletionTimestamp"):
        return "Terminating"
    status = cluster.get("status", {})
    if status.get("observedGeneration") != cluster["metadata"]["generation"]:
        return "InProgress"
    found = {c["type"]: c["status"] for c in status.get("conditions", [])}
    if found.get("Stalled") == "True":
        return "Failed"
    if found.get("Reconciling") == "True" or found.get("Ready") != "True":
        return "InProgress"
    return "Current"


def test_kstatus_follows_a_cluster_from_start_to_serving() -> None:
    world = World(a_cluster())
    world.reconcile()
    assert kstatus(world.cluster) == "InProgress"

    world.settle()

    assert kstatus(world.cluster) == "Current"


def test_a_changed_spec_is_in_progress_before_the_operator_has_seen_it() -> None:
    world = World(a_cluster())
    world.settle()

    world.change(replicas=2)

    assert kstatus(world.cluster) == "InProgress"


FAULTS: dict[str, dict[str, Any]] = {
    "image": waiting("ErrImagePull", "not found"),
    "crash": ended(1, "RuntimeError: boom"),
    "argument": ended(2, "sglang serve: error: unrecognized arguments: --x"),
    "memory": ended(137, reason="OOMKilled"),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_that_needs_the_user_is_failed(fault: dict[str, Any]) -> None:
    world = World(a_cluster())
    world.reconcile()
    revision = world.cluster["status"]["currentRevision"]
    world.pods = [a_pod(revision, **fault)]

    world.reconcile()

    assert kstatus(world.cluster) == "Failed"


def test_waiting_for_a_gpu_is_in_progress() -> None:
    world = World(a_cluster())
    world.reconcile()
    revision = world.cluster["status"]["currentRevision"]
    world.pods = [a_pod(revision, **unplaceable("0/3 nodes: 3 Insufficient nvidia.com/gpu."))]

    world.reconcile()

    assert kstatus(world.cluster) == "InProgress"


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_standing_fault_is_written_once(fault: dict[str, Any]) -> None:
    world = World(a_cluster())
    world.reconcile()
    revision = world.cluster["status"]["currentRevision"]
    world.pods = [a_pod(revision, **fault)]
    world.reconcile()

    world.now += timedelta(minutes=5)

    assert world.reconcile().status is None


def test_the_time_of_a_transition_is_kept_until_the_next() -> None:
    world = World(a_cluster(replicas=2))
    world.settle()
    before = world.condition("Ready")
    assert before is not None

    world.now += timedelta(hours=1)
    world.cluster["metadata"]["generation"] += 1
    world.reconcile()

    after = world.condition("Ready")
    assert after is not None
    assert after["lastTransitionTime"] == before["lastTransitionTime"]
    assert after["observedGeneration"] == before["observedGeneration"] + 1


def test_events_tell_transitions_and_nothing_at_rest() -> None:
    world = World(a_cluster())
    told = []
    for _ in range(10):
        told += [event.reason for event in world.reconcile().events]
        world.live()

    assert told == ["Starting", "Serving"]


def test_the_scale_selector_picks_one_pod_a_unit() -> None:
    world = World(a_cluster(replicas=2))
    world.settle()

    assert world.cluster["status"]["selector"] == "sglang.dev/cluster=chat,sglang.dev/role=unified"
    assert world.cluster["status"]["replicas"] == 2


def test_every_reason_is_one_searchable_word() -> None:
    assert all(reason.value.isalnum() for reason in Reason)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 70000) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
spec_fields = st.sampled_from(
    ["replicas", "model", "engine", "cache", "scheduling", "speculative", "podTemplate", "paused"]
)


@given(st.dictionaries(spec_fields, json_values))
def test_any_spec_gets_a_status_and_never_an_exception(spec: dict[str, Any]) -> None:
    cluster = a_cluster()
    cluster["spec"] = spec

    answer = plan(Snapshot(cluster, NOW))

    assert answer.status is not None
    assert {c["type"] for c in answer.status["conditions"]} >= {"Ready", "Available"}


@given(
    st.dictionaries(
        st.sampled_from(["conditions", "containerStatuses", "phase", "initContainerStatuses"]),
        st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "type": st.sampled_from(["Ready", "PodScheduled"]),
                    "status": st.sampled_from(["True", "False", "Unknown"]),
                    "reason": st.sampled_from(["Unschedulable", "X"]),
                    "message": st.text(max_size=20),
                    "name": st.just("engine"),
                    "ready": st.booleans(),
                    "state": st.sampled_from(
                        [{}, {"waiting": {}}, {"terminated": {"exitCode": 0}}, {"running": {}}]
                    ),
                    "lastState": st.sampled_from([{}, {"terminated": {"exitCode": 1}}]),
                },
            ),
            max_size=3,
        ),
    )
)
def test_any_pod_status_is_understood(status: dict[str, Any]) -> None:
    world = World(a_cluster())
    world.reconcile()
    pod = a_pod(world.cluster["status"]["currentRevision"])
    pod["status"] = status
    world.pods = [pod]

    world.reconcile()


def test_a_cluster_in_another_owners_name_is_told_apart() -> None:
    world = World(a_cluster())
    world.settle()
    stranger = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "x", "uid": "x", "labels": {"sglang.dev/revision": "zzz"}},
        "spec": {"replicas": 5},
    }
    world.children[ObjectKey("Deployment", "x")] = stranger

    world.turns(3)

    assert world.children[ObjectKey("Deployment", "x")] == stranger
    assert kstatus(world.cluster) == "Current"


def test_no_progress_without_a_fault_is_told_and_needs_the_user() -> None:
    world = World(a_cluster())
    world.reconcile()
    revision = world.cluster["status"]["currentRevision"]
    world.pods = [a_pod(revision)]
    deployment = world.children[ObjectKey("Deployment", f"chat-unified-{revision}")]
    late = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    deployment["status"] = {"conditions": [late]}

    world.reconcile()

    ready = next(c for c in world.cluster["status"]["conditions"] if c["type"] == "Ready")
    assert ready["reason"] == "ProgressDeadlineExceeded"
    assert "for 2400 s" in ready["message"]
    assert kstatus(world.cluster) == "Failed"


def test_a_fault_explains_more_than_the_missed_deadline() -> None:
    world = World(a_cluster())
    world.reconcile()
    revision = world.cluster["status"]["currentRevision"]
    world.pods = [a_pod(revision, **ended(1, "RuntimeError: boom"))]
    deployment = world.children[ObjectKey("Deployment", f"chat-unified-{revision}")]
    late = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    deployment["status"] = {"conditions": [late]}

    world.reconcile()

    ready = next(c for c in world.cluster["status"]["conditions"] if c["type"] == "Ready")
    assert ready["reason"] == "EngineCrash"


WEBHOOKS = {
    (
        'admission webhook "policy.example.com" denied the request: GPU pods need a team label'
    ): "Satisfy that admission webhook in spec.podTemplate, or exempt the namespace",
    (
        'Internal error occurred: failed calling webhook "policy.example.com": failed to call '
        'webhook: Post "https://policy.policies.svc:443/?timeout=10s": service "policy" not found'
    ): "Repair that admission webhook, or remove it: it does not answer",
}


@pytest.mark.parametrize("said", WEBHOOKS)
def test_a_webhook_that_refuses_our_object_or_its_pods_is_named(said: str) -> None:
    world = World(a_cluster())
    key = ObjectKey("Deployment", "chat-unified-x")
    ours = plan(replace(world.snapshot(), errors={key: WriteError("create", 500, "", said)}))
    world.reconcile()
    revision = world.cluster["status"]["currentRevision"]
    failure = {"type": "ReplicaFailure", "status": "True", "message": said}
    deployment = world.children[ObjectKey("Deployment", f"chat-unified-{revision}")]
    deployment["status"] = {"conditions": [failure]}
    pods = plan(world.snapshot())

    for answer in (ours, pods):
        assert answer.status is not None
        ready = next(c for c in answer.status["conditions"] if c["type"] == "Ready")
        assert ready["reason"] == "Rejected"
        assert "policy.example.com" in ready["message"]
        assert ready["message"].endswith(WEBHOOKS[said])


def test_a_download_is_told_from_loading() -> None:
    world = World(a_cluster())
    world.reconcile()
    revision = world.cluster["status"]["currentRevision"]
    download = {"name": "download", "ready": False, "state": {"running": {}}}
    world.pods = [a_pod(revision, initContainerStatuses=[download])]

    world.reconcile()

    ready = next(c for c in world.cluster["status"]["conditions"] if c["type"] == "Ready")
    assert ready["reason"] == "Starting"
    assert ready["message"] == "0 of 1 replica ready, a model is being downloaded"


def test_a_cut_drain_is_told_with_the_same_name_every_time() -> None:
    world = a_serving_world()
    cut = Drain("uid-9", "chat-unified-x", CUT, 8.2, 3)
    snapshot = replace(world.snapshot(), drains=(cut, replace(cut, outcome="drained")))

    (first,), (second,) = plan(snapshot).events, plan(snapshot).events

    assert first == second
    assert (first.type, first.reason, first.once) == ("Warning", "DrainCut", "uid-9")
    assert "in flight: 3" in first.message
