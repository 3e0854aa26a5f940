"""What goes wrong is in the status, with its reason, and soon."""

import asyncio

import pytest

from sglang_operator.resources import BY_KIND, Resource
from tests.integration.kubelet import by_image
from tests.integration.world import World, until

FAULTS = [
    ("image", "ImagePull"),
    ("crash", "EngineCrash"),
    ("oom", "OutOfMemory"),
    ("unschedulable", "WaitingForGPU"),
]


@pytest.mark.parametrize(("fate", "reason"), FAULTS)
async def test_a_fault_of_a_pod_is_told(world: World, fate: str, reason: str) -> None:
    world.kubelet.decide(world.namespace, by_image(broken=fate))
    async with world.operator():
        await world.create(
            engine={"image": "registry.example/broken:1", "accelerator": {"count": 2}}
        )

        told = await world.until_reason(reason)

    assert told["status"] == "False"


async def test_a_bad_revision_is_held_and_the_good_one_keeps_serving(world: World) -> None:
    world.kubelet.decide(world.namespace, by_image(broken="crash"))
    async with world.operator():
        await world.create(replicas=2)
        await world.until_serving()
        good = {pod["metadata"]["uid"] for pod in await world.pods()}

        await world.change(engine={"image": "registry.example/broken:1"})
        await world.until_reason("EngineCrash")
        await asyncio.sleep(3.0)

        pods = await world.pods()
        assert good <= {pod["metadata"]["uid"] for pod in pods}
        await world.change(engine={"image": None})
        await world.until_serving()


async def test_pod_events_explain_a_pod_whose_status_does_not(world: World) -> None:
    world.kubelet.decide(world.namespace, "pending")
    async with world.operator():
        await world.create(model={"source": "pvc://missing/m"})

        async def one_pod() -> bool:
            return len(await world.pods()) == 1

        await world.until(one_pod, "a pod")
        pod = (await world.pods())[0]["metadata"]
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": "e-", "namespace": world.namespace},
            "involvedObject": {
                "kind": "Pod",
                "name": pod["name"],
                "namespace": world.namespace,
                "uid": pod["uid"],
            },
            "type": "Warning",
            "reason": "FailedMount",
            "message": 'claim "missing" not found',
        }
        await world.kube.request("POST", f"/api/v1/namespaces/{world.namespace}/events", body=event)

        told = await world.until_reason("Volume")

    assert "missing" in told["message"]


async def test_a_quota_is_told_and_its_end_needs_no_nudge(world: World) -> None:
    quota = Resource("ResourceQuota", "", "v1", "resourcequotas")
    body = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none", "namespace": world.namespace},
        "spec": {"hard": {"services": "0"}},
    }
    await world.kube.create(quota, body)

    async def counted() -> bool:
        live = await world.kube.get(quota, world.namespace, "none")
        return "used" in live.get("status", {})

    await until(counted, "the quota is in force")
    async with world.operator():
        await world.create()
        told = await world.until_reason("QuotaExceeded")
        assert "Service chat" in told["message"]
        # One refused object does not keep the others from being made.
        assert len(await world.deployments()) == 1

        await world.delete(quota, "none")
        await world.until_serving()


async def test_what_the_api_server_finds_invalid_is_told(world: World) -> None:
    async with world.operator():
        await world.create(podTemplate={"spec": {"hostNetwork": True, "dnsPolicy": "Never"}})

        told = await world.until_reason("Rejected")
        assert "dnsPolicy" in told["message"]

        await world.change(podTemplate=None)
        await world.until_serving()


async def test_a_misspelt_field_of_the_pod_template_is_told(world: World) -> None:
    async with world.operator():
        await world.create(podTemplate={"spec": {"nodeSelektor": {"a": "b"}}})

        told = await world.until_reason("Rejected")

    assert "nodeSelektor" in told["message"]


async def test_one_broken_cluster_leaves_the_others_alone(world: World) -> None:
    foreign = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "bad-engine", "namespace": world.namespace},
    }
    await world.kube.create(BY_KIND["ServiceAccount"], foreign)
    async with world.operator(workers=1):
        await world.create("bad")
        await world.create("good")

        await world.until_serving("good")
        await world.until_reason("Conflict", "bad")
