"""Fixtures of the end-to-end tests: they need the cluster of `make quickstart`, and say so."""

import subprocess
from collections.abc import Iterator

import pytest

from e2e.tests.kube import Namespace, kubectl

RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"

LAST = ("test_nodes", "test_rights")
"""Files that run after all others: nodes go away in one, and the other looks back at everything."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: LAST.index(item.path.stem) if item.path.stem in LAST else -1)


@pytest.fixture(scope="session", autouse=True)
def _cluster_is_there() -> None:
    there = subprocess.run(["kubectl", "get", "crd", "sglangclusters.sglang.dev"], check=False)
    assert there.returncode == 0, "no cluster with the operator: run `make e2e`, which makes one"


@pytest.fixture(scope="module")
def namespace(request: pytest.FixtureRequest) -> Iterator[Namespace]:
    """A namespace under restricted Pod Security, removed afterwards with all that is in it.

    Nobody waits for that: engines on their way out take little but time.
    """
    name = request.module.__name__.rpartition(".")[2].replace("_", "-")
    kubectl("delete", "namespace", name, "--ignore-not-found", "--timeout=120s")
    kubectl("create", "namespace", name)
    kubectl("label", "namespace", name, RESTRICTED)
    yield Namespace(name)
    kubectl("-n", name, "delete", "sglangclusters", "--all")
    kubectl("delete", "namespace", name, "--wait=false")
