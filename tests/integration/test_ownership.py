"""Server-side apply shares objects with others: their fields stay, contested ones become ours."""

from dataclasses import replace
from typing import Any

import pytest

from sglang_controllers.manifest import Manifest
from sglang_controllers.names import CLUSTER_LABEL, KIND
from sglang_controllers.plan import Plan
from sglang_controllers.planner import plan
from sglang_controllers.resources.metadata import stamped
from sglang_controllers.snapshot import Snapshot
from sglang_operator.kube import APPLY_PATCH, ApiError
from sglang_operator.resources import BY_KIND
from tests.integration.world import World


async def apply_as(world: World, manager: str, manifest: Manifest, *, force: bool = False) -> None:
    resource = BY_KIND[manifest["kind"]]
    path = resource.path(world.namespace, manifest["metadata"]["name"])
    query = {"fieldManager": manager, "force": str(force).lower()}
    await world.kube.request("PATCH", path, query=query, body=manifest, content_type=APPLY_PATCH)


def service(**parts: Any) -> Manifest:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "chat"}, **parts}


async def live(world: World, kind: str, name: str) -> Manifest:
    found = await world.get(kind, name)
    assert found is not None
    return found


FOREIGN = {
    "metadata": {"name": "chat", "labels": {"team": "search"}, "annotations": {"note": "mine"}},
    "spec": {"trafficDistribution": "PreferClose"},
}


async def test_fields_that_somebody_else_applied_survive(world: World) -> None:
    async with world.operator():
        await world.create()
        await world.until_serving()
        await apply_as(world, "somebody", service(**FOREIGN))
        # Now something of ours has to be put right on the same object.
        await apply_as(
            world,
            "meddler",
            service(
                metadata={
                    "name": "chat",
                    "labels": {CLUSTER_LABEL: "chat", "app.kubernetes.io/name": "x"},
                }
            ),
            force=True,
        )

        async def put_right() -> bool:
            labels = (await live(world, "Service", "chat"))["metadata"]["labels"]
            return bool(labels["app.kubernetes.io/name"] == "sglang")

        await world.until(put_right, "our label is back")
        after = await live(world, "Service", "chat")

    assert after["metadata"]["labels"]["team"] == "search"
    assert after["metadata"]["annotations"]["note"] == "mine"
    assert after["spec"]["trafficDistribution"] == "PreferClose"


async def test_a_foreign_field_of_a_deployment_survives_scaling(world: World) -> None:
    async with world.operator():
        await world.create()
        await world.until_serving()
        name = (await world.deployments())[0]["metadata"]["name"]
        foreign = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "annotations": {"note": "mine"}},
            "spec": {"minReadySeconds": 1},
        }
        await apply_as(world, "somebody", foreign, force=True)
        await world.change(replicas=2)
        await world.until_serving()
        after = await live(world, "Deployment", name)

    assert after["spec"]["replicas"] == 2
    assert after["spec"]["minReadySeconds"] == 1
    assert after["metadata"]["annotations"]["note"] == "mine"


async def test_a_contested_field_becomes_ours_again(world: World) -> None:
    async with world.operator():
        await world.create()
        await world.until_serving()
        taken = service(spec={"ports": [{"name": "http", "port": 8000, "targetPort": 1234}]})
        with pytest.raises(ApiError, match="conflict"):
            await apply_as(world, "meddler", taken)
        before = (await live(world, "Service", "chat"))["spec"]["ports"][0]["targetPort"]
        await apply_as(world, "meddler", taken, force=True)

        async def back() -> bool:
            found = await live(world, "Service", "chat")
            return bool(found["spec"]["ports"][0]["targetPort"] == before)

        await world.until(back, "the port is ours again")
        with pytest.raises(ApiError, match="conflict"):
            await apply_as(world, "meddler", taken)


async def test_a_port_whose_number_somebody_changed_is_put_right(world: World) -> None:
    async with world.operator():
        await world.create()
        await world.until_serving()
        theirs = {"name": "http", "port": 9000, "targetPort": "http"}
        await world.patch(BY_KIND["Service"], "chat", {"spec": {"ports": [theirs]}})

        async def back() -> bool:
            ports = (await live(world, "Service", "chat"))["spec"]["ports"]
            return [port["port"] for port in ports] == [8000]

        await world.until(back, "the Service has its port again")
        await world.until_serving()


async def test_a_field_that_a_later_build_drops_disappears(world: World) -> None:
    def earlier(snapshot: Snapshot) -> Plan:
        return _with_service(plan(snapshot), snapshot, {"sessionAffinity": "ClientIP"})

    async with world.operator(planner=earlier):
        await world.create()
        await world.until_serving()
        assert (await live(world, "Service", "chat"))["spec"]["sessionAffinity"] == "ClientIP"
        await apply_as(world, "somebody", service(**FOREIGN))

    async with world.operator():

        async def dropped() -> bool:
            found = await live(world, "Service", "chat")
            return bool(found["spec"]["sessionAffinity"] == "None")

        await world.until(dropped, "the dropped field is gone")
    after = await live(world, "Service", "chat")
    assert after["metadata"]["labels"]["team"] == "search"
    assert after["spec"]["trafficDistribution"] == "PreferClose"
    managers = [(e["manager"], e["operation"]) for e in after["metadata"]["managedFields"]]
    assert managers.count(("sglang-operator", "Apply")) == 1
    assert ("sglang-operator", "Update") not in managers


async def test_the_spec_of_a_cluster_is_never_ours(world: World) -> None:
    async with world.operator():
        await world.create()
        await world.until_serving()

    found = await live(world, KIND, "chat")

    ours = [e for e in found["metadata"]["managedFields"] if e["time"] and "status" in str(e)]
    entries = [e for e in found["metadata"]["managedFields"] if e.get("subresource") == "status"]
    assert ours
    assert [set(entry["fieldsV1"]) for entry in entries] == [{"f:status"}]
    assert "finalizers" not in found["metadata"]
    assert "annotations" not in found["metadata"]


def _with_service(answer: Plan, snapshot: Snapshot, spec: Manifest) -> Plan:
    """The plan of a build whose Service had one more field."""

    def more(manifest: Manifest) -> Manifest:
        if manifest["kind"] != "Service":
            return manifest
        return stamped({**manifest, "spec": {**manifest["spec"], **spec}})

    create = tuple(more(manifest) for manifest in answer.create)
    kept = tuple(a for a in answer.apply if a.manifest["kind"] != "Service")
    return replace(answer, create=create, apply=kept)
