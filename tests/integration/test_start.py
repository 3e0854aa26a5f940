"""The command `sglang-operator run` as a process: it starts, waits, stops, and is killed."""

import asyncio
import random
import signal

import pytest

from sglang_operator.kube import Kube
from sglang_operator.resources import CLUSTERS
from tests.integration.conftest import install_crd
from tests.integration.control_plane import ControlPlane
from tests.integration.kubelet import FakeKubelet
from tests.integration.process import operator_process
from tests.integration.world import World, fresh_namespace, until

KILLS = 10


async def test_it_stops_on_sigterm_within_seconds_and_hands_over(world: World) -> None:
    async with operator_process(world) as running:
        await running.until_status("readyz", 200)
        await world.create()
        await world.until_serving()
        running.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(5.0):
            _, told = await running.process.communicate()

    assert running.process.returncode == 0, told.decode()
    async with operator_process(world) as running:
        await running.until_status("readyz", 200)
        await world.change(replicas=2)
        async with asyncio.timeout(5.0):  # no waiting for the first one's lease to run out
            await world.until_serving()


async def test_it_waits_for_the_crd_and_starts_when_it_appears(
    bare_kube: Kube, kubelet: FakeKubelet, control_plane: ControlPlane
) -> None:
    await remove_crd(bare_kube)
    async with fresh_namespace(bare_kube) as namespace:
        world = World(bare_kube, kubelet, control_plane.kubeconfig, namespace)
        async with operator_process(world, "--no-leader-election") as running:
            await running.until_status("readyz", 503)
            assert running.process.stderr is not None
            async with asyncio.timeout(10.0):
                while b"waiting for the CustomResourceDefinition" not in (
                    line := await running.process.stderr.readline()
                ):
                    assert line, "the operator ended"
            assert await running.status("healthz") == 200
            await install_crd(bare_kube)
            await running.until_status("readyz", 200)
            await world.create()
            await world.until_serving()

            # And it survives the CRD going away and coming back.
            await remove_crd(bare_kube)
            await install_crd(bare_kube)
            await world.create()
            await world.until_serving()


async def remove_crd(kube: Kube) -> None:
    name = f"{CLUSTERS.plural}.{CLUSTERS.group}"
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
    options = {"apiVersion": "v1", "kind": "DeleteOptions"}
    await kube.request("DELETE", path, body=options)

    async def gone() -> bool:
        listing = await kube.request(
            "GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        )
        return all(item["metadata"]["name"] != name for item in listing["items"])

    await until(gone, "the CRD is gone")


@pytest.mark.timeout(180)
async def test_ten_sigkills_at_random_moments_change_nothing_in_the_end(world: World) -> None:
    chance, over = random.Random(7), asyncio.Event()
    over.set()
    async with world.operator():
        await story(world, "quiet", over)
    expected = await world.state("quiet")

    over.clear()
    telling = asyncio.create_task(story(world, "killed", over))
    for _ in range(KILLS):
        async with operator_process(world, "--no-leader-election") as running:
            await running.until_status("readyz", 200)
            await asyncio.sleep(chance.uniform(0.0, 0.5))
            await running.kill()
    over.set()
    async with operator_process(world, "--no-leader-election"):
        await telling

    assert _renamed(await world.state("killed")) == expected


async def story(world: World, name: str, over: asyncio.Event) -> None:
    """Rollouts of three pods, round after round, until the kills are over: all fall into it."""
    await world.create(name, replicas=3)
    await world.until_serving(name)
    while True:
        last = over.is_set()
        for size in (4, 8, 16):
            await world.change(name, cache={"pageSize": size})
            await world.until_serving(name)
        if last:
            return


def _renamed(value: object) -> object:
    """The state of `killed`, as it would be of `quiet`."""
    match value:
        case dict():
            return {str(_renamed(k)): _renamed(v) for k, v in value.items()}
        case list() | tuple():
            return type(value)(_renamed(v) for v in value)
        case str():
            return value.replace("killed", "quiet")
        case _:
            return value
