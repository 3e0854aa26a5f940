"""Replicas spread over nodes, and a node that dies takes one engine with it, no more."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from e2e.tests.kube import ENGINE, Manifest, Namespace, a_cluster, paused, wait_for

NAME = "nodes"

NOTICED_S = 90
"""Kubernetes believes in a silent node for 50 s, and tells its pods apart from then on."""

PATIENCE_S = 10
REPLACED_S = 120

LEAVES_SOON: Manifest = {
    "spec": {
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{cause}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": PATIENCE_S,
            }
            for cause in ("unreachable", "not-ready")
        ]
    }
}
"""Kubernetes waits five minutes for a lost node by default."""


@pytest.fixture(scope="module")
def nodes(namespace: Namespace) -> Namespace:
    """A cluster of two replicas, serving."""
    namespace.apply(a_cluster(NAME, replicas=2, podTemplate=LEAVES_SOON))
    namespace.wait_ready(NAME)
    return namespace


@contextmanager
def pods_seen(namespace: Namespace) -> Iterator[set[str]]:
    """Complete at the end: the uid of every engine that there was meanwhile, however shortly."""
    uids = "-o=jsonpath={.metadata.uid}{'\\n'}"
    selector = f"-l=sglang.dev/cluster={NAME},sglang.dev/role={ENGINE}"
    seen: set[str] = set()
    command = ["kubectl", "-n", namespace.name, "get", "pods", selector, uids, "--watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watch:
        try:
            yield seen
        finally:
            watch.terminate()
            assert watch.stdout
            seen |= set(watch.stdout.read().split())


def test_two_replicas_land_on_two_nodes(nodes: Namespace) -> None:
    assert len({pod["spec"]["nodeName"] for pod in nodes.pods(NAME)}) == 2


def test_a_lost_node_costs_one_engine_that_starts_once_elsewhere(nodes: Namespace) -> None:
    nodes.kubectl("scale", "sglc", NAME, "--replicas=1")
    nodes.wait_ready(NAME)
    wait_for(lambda: len(nodes.all_pods(NAME)) == 1, 120, lambda: str(nodes.all_pods(NAME)))
    (first,) = nodes.all_pods(NAME)
    node = first["spec"]["nodeName"]

    with pods_seen(nodes) as seen:
        with paused(node):
            message = nodes.wait_reason(NAME, "NodeLost", NOTICED_S)
            nodes.wait_ready(NAME, REPLACED_S)
            (second,) = nodes.pods(NAME)
        wait_for(lambda: len(nodes.all_pods(NAME)) == 1, 120, lambda: str(nodes.all_pods(NAME)))

    assert node in message
    assert second["spec"]["nodeName"] != node
    assert seen == {first["metadata"]["uid"], second["metadata"]["uid"]}
    (left,) = nodes.all_pods(NAME)
    assert left["metadata"]["uid"] == second["metadata"]["uid"]
    assert left["status"]["containerStatuses"][0]["restartCount"] == 0
    assert nodes.condition(NAME, "Ready")["reason"] == "Serving"
