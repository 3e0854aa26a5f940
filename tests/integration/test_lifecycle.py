"""Names, conflicts, and the end of clusters and namespaces."""

import asyncio

import pytest

from sglang_controllers.manifest import Manifest
from sglang_controllers.names import KIND, MAX_CLUSTER_NAME
from sglang_operator.kube import ApiError
from sglang_operator.resources import BY_KIND, CLUSTERS
from tests.integration.kubelet import NAMESPACES
from tests.integration.world import World, fresh_namespace, until

FOREIGN_LABELS = [{}, {"sglang.dev/cluster": "chat"}]


@pytest.mark.parametrize("labels", FOREIGN_LABELS, ids=["unlabelled", "with our label"])
async def test_a_foreign_object_under_our_name_is_a_conflict_and_never_touched(
    world: World, labels: dict[str, str]
) -> None:
    foreign = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "chat", "namespace": world.namespace, "labels": labels},
        "spec": {"ports": [{"port": 1}]},
    }
    made = await world.kube.create(BY_KIND["Service"], foreign)
    async with world.operator():
        await world.create()
        told = await world.until_reason("Conflict")
        await asyncio.sleep(3.0)  # some retries
        after = await world.get("Service", "chat")
        assert after == made
        assert "Service chat" in told["message"]

        await world.delete(BY_KIND["Service"], "chat")
        await world.until_serving()


async def test_one_name_in_two_namespaces_is_two_clusters(world: World) -> None:
    async with fresh_namespace(world.kube) as other:
        second = World(world.kube, world.kubelet, world.kubeconfig, other)
        async with world.operator(namespaces=(world.namespace, other)):
            await world.create(replicas=1)
            await second.create(replicas=2, cache={"pageSize": 8})
            await world.until_serving()
            await second.until_serving()
            await world.delete(CLUSTERS, "chat")

            async def gone() -> bool:
                return not await world.children() and not await world.pods()

            await world.until(gone, "the first is gone")
            assert len(await second.pods()) == 2
            await second.until_serving()


async def test_all_namespaces_are_served_by_default(world: World) -> None:
    async with world.operator(namespaces=()):
        await world.create()
        await world.until_serving()


async def test_a_cluster_deleted_during_its_creation_leaves_nothing(world: World) -> None:
    made = asyncio.Event()

    async def hold(_: object) -> None:
        made.set()
        await asyncio.sleep(0.2)

    async with world.operator(after_write=hold):
        await world.create()
        await made.wait()
        await world.delete(CLUSTERS, "chat")

        async def gone() -> bool:
            return not await world.children() and not await world.pods()

        await asyncio.sleep(2.0)  # the rest of the plan is carried out after the deletion
        await world.until(gone, "nothing is left")
        await asyncio.sleep(1.0)
        assert await world.children() == []


async def test_a_cluster_made_again_under_its_name_gets_objects_of_its_own(world: World) -> None:
    async with world.operator():
        await world.create()
        await world.until_serving()
        old = {item["metadata"]["uid"] for item in await world.children()}
        await world.delete(CLUSTERS, "chat")
        await world.create()
        await world.until_serving()

        assert not old & {item["metadata"]["uid"] for item in await world.children()}


async def test_a_namespace_can_be_deleted_while_no_operator_runs(world: World) -> None:
    async with fresh_namespace(world.kube) as other:
        second = World(world.kube, world.kubelet, world.kubeconfig, other)
        async with second.operator():
            await second.create()
            await second.until_serving()
        path = f"/api/v1/{NAMESPACES.plural}/{other}"
        await world.kube.request("DELETE", path)

        async def gone() -> bool:
            try:
                await world.kube.request("GET", path)
            except ApiError as error:
                return error.status == 404
            return False

        await until(gone, "the namespace is gone", patience_s=60.0)
        # For the end of the block, which deletes it again.
        await world.kube.request(
            "POST",
            "/api/v1/namespaces",
            body={"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}},
        )


@pytest.mark.parametrize("name", ["a", "x" * MAX_CLUSTER_NAME, "a-" + "1" * (MAX_CLUSTER_NAME - 2)])
async def test_names_at_the_limits_work(world: World, name: str) -> None:
    async with world.operator():
        await world.create(name)
        await world.until_serving(name)

        await world.change(name, cache={"pageSize": 8})
        await world.until_serving(name)


async def test_objects_deleted_by_hand_are_made_again(world: World) -> None:
    async with world.operator():
        await world.create()
        await world.until_serving()
        before = await world.state()
        for item in await world.children():
            await world.delete(BY_KIND[item["kind"]], item["metadata"]["name"])

        async def back() -> bool:
            return await world.state() == before

        await world.until(back, "everything is back")


async def test_events_tell_transitions_once(world: World) -> None:
    async with world.operator():
        await world.create()
        await world.until_serving()
        cluster = await world.get(KIND, "chat")
        assert cluster is not None
        await asyncio.sleep(2.0)
        listing = await world.kube.request("GET", f"/api/v1/namespaces/{world.namespace}/events")

    reasons = [e["reason"] for e in _about(listing, cluster)]
    # Whether the operator looks between engines' and routers' getting ready is chance.
    assert sorted(reasons) in (["Serving", "Starting"], ["RouterNotReady", "Serving", "Starting"])


def _about(listing: Manifest, cluster: Manifest) -> list[Manifest]:
    uid = cluster["metadata"]["uid"]
    return [e for e in listing["items"] if e["involvedObject"].get("uid") == uid]
