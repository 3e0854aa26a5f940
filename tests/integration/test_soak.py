"""Hours of work leave nothing behind: no memory, no restarts, no writes at rest."""

import asyncio
import os

import pytest

from sglang_operator.resources import CLUSTERS
from tests.integration.process import operator_process
from tests.integration.world import World

SOAK_S = float(os.environ.get("SGLANG_OPERATOR_SOAK_S", "3600"))

GROWTH_MIB = 25.0
"""What caches and the allocator may take after the first round."""

CLUSTERS_AT_A_TIME = 5
REST_S = 30.0


async def one_round(world: World) -> None:
    """Clusters come, roll out, and go."""

    async def life(name: str) -> None:
        await world.create(name, replicas=2)
        await world.until_serving(name)
        await world.change(name, cache={"pageSize": 8})
        await world.until_serving(name)
        await world.delete(CLUSTERS, name)

    await asyncio.gather(*(life(f"c-{number}") for number in range(CLUSTERS_AT_A_TIME)))

    async def gone() -> bool:
        return not await world.children() and not await world.pods()

    await world.until(gone, "nothing is left")


@pytest.mark.soak
async def test_memory_and_watches_hold_through_many_lives_of_clusters(world: World) -> None:
    loop = asyncio.get_running_loop()
    async with operator_process(world, "--log-level=warning") as running:
        await running.until_status("readyz", 200)
        await one_round(world)
        before_mib, rounds, end = running.memory_mib(), 0, loop.time() + SOAK_S
        while loop.time() < end:
            await one_round(world)
            rounds += 1
            assert await running.status("healthz") == 200
        after_mib = running.memory_mib()

        await world.create("resting", replicas=2)
        await world.until_serving("resting")
        await asyncio.sleep(2.0)
        versions = await world.versions()
        await asyncio.sleep(REST_S)
        assert await world.versions() == versions
        samples = await running.metrics()

    print(f"{rounds} rounds: {before_mib:.0f} MiB before, {after_mib:.0f} MiB after")
    assert after_mib - before_mib < GROWTH_MIB
    assert samples["sglang_operator_watch_restarts_total"] == 0
    assert samples["sglang_operator_queue_depth"] == 0
