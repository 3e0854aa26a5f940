"""A crash after any write is harmless: the next operator goes on from what is there.

Each story is told twice: to an operator that runs through, and to one that dies after every single
write and is followed by a new one that knows nothing. Both must end with the same objects.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import pytest

from sglang_controllers.manifest import Manifest
from sglang_operator.execute import Verb, Write
from sglang_operator.resources import BY_KIND, CLUSTERS
from sglang_operator.run import Operator, PartEndedError
from tests.integration.kubelet import by_image
from tests.integration.world import World, fresh_namespace

CRASH_POINTS = 200

BROKEN = {"image": "registry.example/broken:1"}


class Crash(BaseException):
    """The process is gone at this very moment: no handler of ours may see it as an error."""


Story = Callable[[World], Awaitable[None]]


async def rollouts(world: World) -> None:
    await world.create(replicas=2)
    await world.until_serving()
    for size in (2, 4, 8, 16):
        await world.change(cache={"pageSize": size})
        await world.until_serving()
    await world.change(replicas=3, scheduling={"policy": "lpm"})
    await world.until_serving()
    await world.change(replicas=1)
    await world.until_serving()


async def wide_rollouts(world: World) -> None:
    await world.create(replicas=4)
    await world.until_serving()
    for policy in ("lfu", "slru", "priority"):
        await world.change(cache={"eviction": {"policy": policy}})
        await world.until_serving()


async def changed_minds(world: World) -> None:
    """A rollout is overtaken by another one, and by the way back."""
    await world.create(replicas=3)
    await world.until_serving()
    await world.change(scheduling={"overlap": {"mode": "disabled"}})
    await until_pods(world, 4)
    await world.change(scheduling={"overlap": {"mode": "enabled"}})
    await until_pods(world, 4)
    await world.change(scheduling=None, replicas=2)
    await world.until_serving()
    await world.change(model={"servedName": "other"})
    await world.until_serving()


async def until_pods(world: World, number: int) -> None:
    async def seen() -> bool:
        return len(await world.pods()) >= number

    await world.until(seen, f"{number} pods")


async def faults(world: World) -> None:
    world.kubelet.decide(world.namespace, by_image(broken="crash"))
    await world.create(replicas=2)
    await world.until_serving()
    await world.change(engine=BROKEN)
    await world.until_reason("EngineCrash")
    await world.change(engine=None)
    await world.until_serving()
    await world.change(engine=BROKEN, replicas=1)
    await world.until_reason("EngineCrash")
    world.kubelet.decide(world.namespace, by_image(broken="image"))
    await world.until_reason("ImagePull")
    await world.change(engine={"image": "registry.example/good:2"})
    await world.until_serving()


async def pauses(world: World) -> None:
    await world.create(paused=True)
    await world.until_reason("Paused")
    await world.change(paused=False)
    await world.until_serving()
    await world.change(paused=True, cache={"pageSize": 8})
    await world.until_reason("Paused")
    await world.change(paused=None, replicas=0)
    await world.until_reason("ScaledToZero")
    for replicas in (2, 1, 3):
        await world.change(replicas=replicas)
        await world.until_serving()
        await until_pods(world, replicas)


async def meddling(world: World) -> None:
    await world.create(replicas=1)
    await world.until_serving()
    before = await world.state()
    for item in await world.children():
        await world.delete(BY_KIND[item["kind"]], item["metadata"]["name"])
    await world.patch(CLUSTERS, "chat", {"metadata": {"labels": {"seen": "yes"}}})

    async def back() -> bool:
        return await world.state() == before

    await world.until(back, "everything is made again")
    await world.patch(BY_KIND["Service"], "chat", {"spec": {"ports": [{"port": 1}]}})
    await world.patch(BY_KIND["ServiceAccount"], "chat-engine", {"metadata": {"labels": None}})
    await world.until(back, "everything is put right")


async def successors(world: World) -> None:
    for size in (2, 4):
        await world.create(replicas=1, cache={"pageSize": size})
        await world.until_serving()
        await world.delete(CLUSTERS, "chat")

        async def gone() -> bool:
            return not await world.children() and not await world.pods()

        await world.until(gone, "nothing is left")
    await world.create(replicas=1, speculative={"ngram": {}})
    await world.until_serving()


async def refusals(world: World) -> None:
    foreign = {"kind": "Service", "apiVersion": "v1", "spec": {"ports": [{"port": 1}]}}
    metadata = {"name": "chat", "namespace": world.namespace}
    await world.kube.create(BY_KIND["Service"], {**foreign, "metadata": metadata})
    await world.create(replicas=2)
    await world.until_reason("Conflict")
    await world.delete(BY_KIND["Service"], "chat")
    await world.until_serving()
    await world.change(podTemplate={"spec": {"dnsPolicy": "Never"}})
    await world.until_reason("Rejected")
    await world.change(podTemplate=None, model={"source": "pvc://models"})
    await world.until_serving()


STORIES: Mapping[str, Story] = {
    story.__name__: story
    for story in (
        rollouts,
        wide_rollouts,
        changed_minds,
        faults,
        pauses,
        meddling,
        successors,
        refusals,
    )
}


@dataclass
class Lives:
    """Operators that each live until their first write."""

    world: World
    crashes: int = 0

    async def run(self) -> None:
        """For ever: each new operator begins with an empty cache, as a new process would."""
        while True:
            operator = Operator(self.world.settings(resync_s=30.0), after_write=self._die)
            try:
                await operator.run()
            except PartEndedError as error:
                if not isinstance(error.__cause__, Crash):
                    raise
                self.crashes += 1

    async def _die(self, write: Write) -> None:
        self.world.writes.append(write)
        raise Crash


@pytest.mark.timeout(290)
async def test_a_crash_after_every_write_changes_nothing_in_the_end(world: World) -> None:
    async def both(story: Story) -> int:
        async with (
            fresh_namespace(world.kube) as quiet,
            fresh_namespace(world.kube) as stormy,
        ):
            expected = await undisturbed(of(world, quiet), story)
            storm = of(world, stormy)
            lives = Lives(storm)
            dying = asyncio.create_task(lives.run())
            try:
                await story(storm)
                await settled(storm, expected)
            finally:
                dying.cancel()
                with suppress(asyncio.CancelledError):
                    await dying
            met.update(write.verb for write in storm.writes)
            return lives.crashes

    met: set[Verb] = set()
    async with asyncio.TaskGroup() as group:
        told = {name: group.create_task(both(story)) for name, story in STORIES.items()}

    crashes = {name: task.result() for name, task in told.items()}
    print(f"crash points: {sum(crashes.values())} {crashes}")
    assert sum(crashes.values()) >= CRASH_POINTS, crashes
    # An event follows its status, after which these operators die.
    assert met == set(Verb) - {Verb.EVENT}


def of(world: World, namespace: str) -> World:
    return World(world.kube, world.kubelet, world.kubeconfig, namespace)


async def undisturbed(world: World, story: Story) -> dict[str, Manifest]:
    async with world.operator(resync_s=30.0):
        await story(world)
        return await world.state()


async def settled(world: World, expected: dict[str, Manifest]) -> None:
    async def same() -> bool:
        return await world.state() == expected

    try:
        await world.until(same, "the same objects as undisturbed")
    except AssertionError:
        assert await world.state() == expected  # pytest shows what differs
        raise
