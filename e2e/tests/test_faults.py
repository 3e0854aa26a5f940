"""Each fault shows its reason within a minute of its evidence, and disturbs nobody else."""

import time

import pytest

from e2e.tests.kube import (
    NO_ACCELERATOR,
    Namespace,
    a_cluster,
    get,
    kubectl,
    on_gpu_nodes,
    wait_for,
    with_arguments,
)

START_S = 90
"""An engine that ends by itself has imported SGLang first: seconds on a quiet machine."""


FOREIGN = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "taken"},
    "spec": {"ports": [{"port": 80}], "selector": {"app": "somebody-elses"}},
}


@pytest.fixture(scope="module")
def faults(namespace: Namespace) -> Namespace:
    """A healthy cluster, and one cluster a fault, all at once."""
    namespace.apply(a_cluster("healthy"))
    namespace.wait_ready("healthy")
    namespace.apply(FOREIGN)
    namespace.apply(
        on_gpu_nodes(
            a_cluster("no-image", NO_ACCELERATOR | {"image": "docker.io/sglang-operator/no:1"})
        ),
        on_gpu_nodes(
            a_cluster("no-model", NO_ACCELERATOR, model={"source": "oci://docker.io/no/model:1"})
        ),
        a_cluster("no-claim", model={"source": "pvc://missing/model"}),
        on_gpu_nodes(
            a_cluster("no-path", NO_ACCELERATOR, model={"source": "image:///no/such/model"})
        ),
        on_gpu_nodes(
            a_cluster(
                "no-flag",
                NO_ACCELERATOR
                | with_arguments(radix_eviction_polcy="lfu")
                | {"allowUnknownVersion": True},
            )
        ),
        on_gpu_nodes(
            a_cluster(
                "no-memory",
                NO_ACCELERATOR | {"resources": {"limits": {"memory": "150Mi"}}},
            )
        ),
        on_gpu_nodes(
            a_cluster(
                "small-memory",
                NO_ACCELERATOR | {"resources": {"limits": {"memory": "900Mi"}}},
            )
        ),
        on_gpu_nodes(
            a_cluster(
                "no-room",
                NO_ACCELERATOR | {"resources": {"requests": {"cpu": "900"}}},
            )
        ),
        a_cluster("no-gpu", {"accelerator": {"count": 64}}),
        a_cluster("owned-flag", with_arguments(tp_size=2)),
        a_cluster("typing-error", with_arguments(radix_eviction_polcy="lfu")),
        a_cluster("taken", replicas=0),
    )
    return namespace


def test_a_missing_engine_image(faults: Namespace) -> None:
    assert "docker.io/sglang-operator/no:1" in faults.wait_reason("no-image", "ImagePull")


def test_a_missing_model_image(faults: Namespace) -> None:
    assert "docker.io/no/model:1" in faults.wait_reason("no-model", "ImagePull", 120)


def test_a_missing_claim(faults: Namespace) -> None:
    assert '"missing"' in faults.wait_reason("no-claim", "Volume")


def test_too_few_gpus(faults: Namespace) -> None:
    assert "needs 64 nvidia.com/gpu" in faults.wait_reason("no-gpu", "WaitingForGPU")


def test_too_little_cpu(faults: Namespace) -> None:
    assert "Insufficient cpu" in faults.wait_reason("no-room", "Unschedulable")


def test_an_argument_that_a_field_owns(faults: Namespace) -> None:
    message = faults.wait_reason("owned-flag", "BadEngineArgs")

    assert "spec.engine.parallelism.tensor" in message
    assert not faults.pods("owned-flag")


def test_a_typing_error_is_found_before_a_pod_is_made(faults: Namespace) -> None:
    message = faults.wait_reason("typing-error", "BadEngineArgs")

    assert "radix-eviction-policy is meant" in message
    assert not faults.pods("typing-error")


def test_a_foreign_object_under_our_name(faults: Namespace) -> None:
    assert "Service taken" in faults.wait_reason("taken", "Conflict")
    theirs = get("-n", faults.name, "service", "taken")
    assert theirs["spec"]["selector"] == {"app": "somebody-elses"}
    assert "ownerReferences" not in theirs["metadata"]


def test_too_little_memory(faults: Namespace) -> None:
    message = faults.wait_reason("no-memory", "OutOfMemory", START_S * 2)

    assert "spec.engine.resources.limits.memory" in message


def test_too_little_memory_for_the_model(faults: Namespace) -> None:
    """The kernel ends one of the engine's processes, not the one that Kubernetes watches."""
    message = faults.wait_reason("small-memory", "OutOfMemory", START_S * 2)

    assert "spec.engine.resources.limits.memory" in message


def test_an_argument_that_sglang_refuses(faults: Namespace) -> None:
    message = faults.wait_reason("no-flag", "BadEngineArgs", START_S * 2)

    assert "--radix-eviction-polcy" in message


def test_a_missing_model_folder(faults: Namespace) -> None:
    faults.wait_reason("no-path", "ModelNotFound", START_S * 2)


def test_the_healthy_cluster_noticed_nothing(faults: Namespace) -> None:
    (pod,) = faults.pods("healthy")

    assert faults.condition("healthy", "Ready")["status"] == "True"
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0


def test_a_standing_fault_is_not_written_again_and_again(faults: Namespace) -> None:
    names = ("no-image", "no-claim", "no-gpu", "owned-flag", "taken")
    before = [faults.cluster(name)["metadata"]["resourceVersion"] for name in names]

    time.sleep(45)

    after = [faults.cluster(name)["metadata"]["resourceVersion"] for name in names]
    assert after == before


def test_a_namespace_goes_while_the_operator_is_down(faults: Namespace) -> None:
    """Last in this file: it takes the namespace, and every fault, away."""
    operator = ("-n", "sglang-system", "deployment/sglang-operator")
    kubectl("scale", *operator, "--replicas=0")
    try:
        kubectl("-n", "sglang-system", "wait", "--for=delete", "pod", "--all", "--timeout=60s")
        kubectl("delete", "namespace", faults.name, "--timeout=180s")
    finally:
        kubectl("scale", *operator, "--replicas=1")
        kubectl("-n", "sglang-system", "rollout", "status", "deployment/sglang-operator")
    kubectl("create", "namespace", faults.name)
    wait_for(lambda: get("namespace", faults.name)["status"]["phase"] == "Active", 30)
