"""The story of one cluster on real nodes with a real engine, told in order."""

import threading
import time
from collections.abc import Iterator

import pytest

from e2e.tests.kube import Namespace, a_cluster, get, kubectl, wait_for

ENGINES = "sglang.dev/role=unified"
NAME = "story"


@pytest.fixture(scope="module")
def story(namespace: Namespace) -> Namespace:
    """A cluster with the three settings that the first test looks for, serving."""
    namespace.apply(
        a_cluster(
            NAME,
            router={},
            cache={"eviction": {"policy": "lfu"}},
            scheduling={
                "policy": "lpm",
                "overlap": {"mode": "disabled"},
                "maxRunningRequests": 8,
            },
            speculative={"ngram": {"numDraftTokens": 8, "capacity": 100000}},
        )
    )
    namespace.wait_ready(NAME)
    return namespace


@pytest.fixture
def availability(story: Namespace) -> Iterator[list[str]]:
    """Every status of Available during a test, watched from beside it."""
    seen: list[str] = []
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            cluster = story.cluster(NAME)
            found = cluster.get("status", {}).get("conditions", [])
            seen.extend(c["status"] for c in found if c["type"] == "Available")
            time.sleep(1)

    thread = threading.Thread(target=watch)
    thread.start()
    yield seen
    over.set()
    thread.join()


def test_the_settings_of_the_manifest_are_in_the_real_engine(story: Namespace) -> None:
    info = story.server_info(NAME)

    assert info["radix_eviction_policy"] == "lfu"
    assert info["schedule_policy"] == "lpm"
    assert info["disable_overlap_schedule"] is True
    assert info["max_running_requests"] == 8
    assert info["attention_backend"] == "intel_amx"
    assert info["dtype"] == "float32"
    assert info["speculative_algorithm"] == "NGRAM"
    assert info["speculative_num_draft_tokens"] == 8
    assert info["speculative_ngram_capacity"] == 100000


def test_the_engine_runs_on_a_gpu_worker_with_its_accelerator(story: Namespace) -> None:
    (pod,) = story.pods(NAME)
    node = get("node", pod["spec"]["nodeName"])

    assert node["metadata"]["labels"]["sglang.dev/pool"] == "gpu"
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"


def test_kubectl_get_shows_what_matters(story: Namespace) -> None:
    header, row = story.kubectl("get", "sglc", NAME).splitlines()

    assert header.split()[:3] == ["NAME", "READY", "REASON"]
    assert row.split()[:3] == [NAME, "True", "Serving"]


def test_kubectl_explain_reads_well() -> None:
    said = kubectl("explain", "sglc.spec.cache.eviction")

    assert "policy" in said
    assert "lfu" in said


def test_the_resolved_arguments_can_be_read(story: Namespace) -> None:
    revision = story.cluster(NAME)["status"]["currentRevision"]
    shown = get("-n", story.name, "configmap", f"{NAME}-unified-{revision}")

    assert "--radix-eviction-policy=lfu" in shown["data"]["arguments"].splitlines()


def test_a_changed_field_rolls_to_a_new_revision(story: Namespace, availability: list[str]) -> None:
    before = story.cluster(NAME)["status"]["currentRevision"]

    story.kubectl(
        "patch",
        "sglc",
        NAME,
        "--type=merge",
        '-p={"spec":{"cache":{"eviction":{"policy":"slru"}}}}',
    )
    story.wait_ready(NAME)

    after = story.cluster(NAME)["status"]["currentRevision"]
    assert after != before
    assert story.server_info(NAME)["radix_eviction_policy"] == "slru"
    assert set(availability) == {"True"}
    wait_for(
        lambda: len(get("-n", story.name, "deployments", "-l", ENGINES)["items"]) == 1,
        60,
        lambda: "the old revision's Deployment is still there",
    )


def test_a_bad_change_is_held_and_the_good_revision_serves(
    story: Namespace, availability: list[str]
) -> None:
    (good,) = story.pods(NAME)

    story.kubectl(
        "patch",
        "sglc",
        NAME,
        "--type=merge",
        '-p={"spec":{"engine":{"image":"docker.io/sglang-operator/missing:dev"}}}',
    )
    message = story.wait_reason(NAME, "ImagePull")
    assert "docker.io/sglang-operator/missing:dev" in message
    time.sleep(15)  # held, not only slow

    kept = [p for p in story.pods(NAME) if p["metadata"]["uid"] == good["metadata"]["uid"]]
    assert len(kept) == 1
    assert kept[0]["status"]["containerStatuses"][0]["ready"]
    assert kept[0]["status"]["containerStatuses"][0]["restartCount"] == 0
    assert story.server_info(NAME)["radix_eviction_policy"] == "slru"
    assert set(availability) == {"True"}


def test_reverting_the_bad_change_is_ready_at_once(story: Namespace) -> None:
    (before,) = [p for p in story.pods(NAME) if p["status"]["phase"] == "Running"]

    story.kubectl(
        "patch",
        "sglc",
        NAME,
        "--type=merge",
        '-p={"spec":{"engine":{"image":"docker.io/sglang-operator/engine-cpu:dev"}}}',
    )
    story.wait_ready(NAME, 60)

    (after,) = story.pods(NAME)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


def test_kubectl_scale_adds_and_removes_a_replica(story: Namespace) -> None:
    (first,) = story.pods(NAME)

    story.kubectl("scale", "sglc", NAME, "--replicas=2")
    story.wait_ready(NAME)
    assert len(story.pods(NAME)) == 2
    assert story.cluster(NAME)["status"]["replicas"] == 2
    story.kubectl("scale", "sglc", NAME, "--replicas=1")
    story.wait_ready(NAME, 120)

    assert len(story.pods(NAME)) == 1
    assert first["metadata"]["uid"]


def test_a_restarted_operator_restarts_no_engine(story: Namespace) -> None:
    before = [(p["metadata"]["uid"], p["status"]["containerStatuses"]) for p in story.pods(NAME)]
    generation = story.cluster(NAME)["metadata"]["resourceVersion"]

    kubectl("-n", "sglang-system", "rollout", "restart", "deployment/sglang-operator")
    kubectl("-n", "sglang-system", "rollout", "status", "deployment/sglang-operator")
    time.sleep(20)

    after = [(p["metadata"]["uid"], p["status"]["containerStatuses"]) for p in story.pods(NAME)]
    assert after == before
    assert story.cluster(NAME)["metadata"]["resourceVersion"] == generation


def test_deleting_the_cluster_removes_everything(story: Namespace) -> None:
    story.kubectl("delete", "sglc", NAME, "--timeout=60s")

    wait_for(
        lambda: not get("-n", story.name, "deployments,services,pdb,pods")["items"],
        150,
        lambda: kubectl("-n", story.name, "get", "all,pdb"),
    )
