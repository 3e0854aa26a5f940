"""GitOps tools see no drift: what is in Git is what is live, to the letter."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from sglang_controllers.manifest import Manifest
from sglang_controllers.names import API_VERSION, KIND
from sglang_operator.kube import APPLY_PATCH, MERGE_PATCH
from sglang_operator.resources import CLUSTERS
from tests.integration.kubectl import Kubectl
from tests.integration.world import World
from tests.unit.docs.blocks import ROOT, example_files

GITOPS_TOOL = "argocd-controller"
EVERY_FIELD = ROOT / "tests/golden/new-cluster-with-every-field/snapshot.yaml"
REST_S = 1.5

SERVING = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "serving"},
    "value": 1000,
}


def sources(namespace: str) -> dict[str, Manifest]:
    """What a repository may hold, by name: next to nothing, the examples, and every field."""
    specs = {
        "minimal": {"model": {"source": "image:///models/m"}},
        "every-field": yaml.safe_load(EVERY_FIELD.read_text())["cluster"]["spec"],
    }
    for file in example_files():
        for document in file.documents:
            if document["kind"] == KIND:
                specs[document["metadata"]["name"]] = document["spec"]
    return {
        name: {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": name, "namespace": namespace, "labels": {"team": "a"}},
            "spec": spec,
        }
        for name, spec in specs.items()
    }


def by_kubectl(world: World, manifest: Manifest) -> None:
    """Client-side: it leaves the manifest in an annotation."""
    Kubectl(world.kubeconfig).must("apply", "-f", "-", given=yaml.safe_dump(manifest))


def by_server(world: World, manifest: Manifest) -> None:
    """Server-side, as Argo CD does it with ServerSideApply=true."""
    Kubectl(world.kubeconfig).must(
        "apply",
        "--server-side",
        "--force-conflicts",
        f"--field-manager={GITOPS_TOOL}",
        "-f",
        "-",
        given=yaml.safe_dump(manifest),
    )


Applied = Callable[[World, Manifest], None]
BOTH = pytest.mark.parametrize("apply", [by_kubectl, by_server])


@BOTH
async def test_an_applied_manifest_does_not_differ_from_what_is_live(
    world: World, apply: Applied
) -> None:
    wanted = sources(world.namespace)
    # Named by examples/sglangcluster-gpu.yaml.
    Kubectl(world.kubeconfig).must("apply", "-f", "-", given=yaml.safe_dump(SERVING))
    async with world.operator() as operator:
        for manifest in wanted.values():
            apply(world, manifest)
        for name in wanted:
            await world.until_serving(name)
        await at_rest(world)
        before, writes = await world.versions(), len(world.writes)

        drifts = {name: await drift(world, manifest) for name, manifest in wanted.items()}
        for manifest in wanted.values():
            apply(world, manifest)
        for key, _ in operator.cache.clusters():
            operator.queue.add(key)
        await asyncio.sleep(REST_S)

        assert [name for name, found in drifts.items() if found] == [], drifts
        assert Kubectl(world.kubeconfig).run("diff", "-f", "-", given=text(wanted)).stdout == ""
        # A second sync and a second reconcile write nothing.
        assert world.writes[writes:] == []
        assert await world.versions() == before


@BOTH
async def test_replicas_that_an_autoscaler_owns_are_no_drift_and_are_not_undone(
    world: World, apply: Applied
) -> None:
    manifest = sources(world.namespace)["minimal"]
    async with world.operator():
        apply(world, manifest)
        await world.until_serving("minimal")
        await scale(world, "minimal", 3)
        await world.until_serving("minimal")

        assert await drift(world, manifest) == {}
        apply(world, manifest)

        live = await world.kube.get(CLUSTERS, world.namespace, "minimal")
        assert live["spec"]["replicas"] == 3


async def test_replicas_in_the_manifest_and_an_autoscaler_are_a_drift(world: World) -> None:
    manifest = sources(world.namespace)["minimal"]
    manifest["spec"]["replicas"] = 1
    by_server(world, manifest)
    await scale(world, "minimal", 3)

    after, now = (await drift(world, manifest))["spec"]
    assert (after["replicas"], now["replicas"]) == (1, 3)


async def scale(world: World, name: str, replicas: int) -> None:
    """What a HorizontalPodAutoscaler writes."""
    await world.kube.request(
        "PATCH",
        CLUSTERS.path(world.namespace, name, "scale"),
        query={"fieldManager": "kube-controller-manager"},
        body={"spec": {"replicas": replicas}},
        content_type=MERGE_PATCH,
    )


async def drift(world: World, manifest: Manifest) -> dict[str, Any]:
    """What a server-side apply of the manifest would change: (after, now), by part."""
    name = manifest["metadata"]["name"]
    after = await world.kube.request(
        "PATCH",
        CLUSTERS.path(world.namespace, name),
        query={"fieldManager": GITOPS_TOOL, "force": "true", "dryRun": "All"},
        body=manifest,
        content_type=APPLY_PATCH,
    )
    now = await world.kube.get(CLUSTERS, world.namespace, name)
    for item in (after, now):
        for bookkeeping in ("managedFields", "resourceVersion"):
            item["metadata"].pop(bookkeeping, None)
    parts = {*after, *now}
    return {p: (after.get(p), now.get(p)) for p in parts if after.get(p) != now.get(p)}


async def at_rest(world: World) -> None:
    """Until nothing has changed for a while: ReplicaSets write their status late."""
    last: dict[str, str] = {}
    while (now := await world.versions()) != last:
        last = now
        await asyncio.sleep(REST_S)


def text(manifests: dict[str, Manifest]) -> str:
    return yaml.safe_dump_all(manifests.values())
