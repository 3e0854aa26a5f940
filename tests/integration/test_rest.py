"""A cluster at rest is left alone, and nobody's fields but ours are taken."""

import asyncio

from tests.integration.world import World

REST_S = 6.0


async def test_a_cluster_at_rest_is_not_written_to(world: World) -> None:
    async with world.operator(resync_s=1.0) as operator:
        await world.create(replicas=2)
        await world.until_serving()
        await asyncio.sleep(1.0)  # the ReplicaSet's last status writes
        before, writes = await world.versions(), len(world.writes)

        for key, _ in operator.cache.clusters():
            operator.queue.add(key)
        await asyncio.sleep(REST_S)

        assert world.writes[writes:] == []
        assert await world.versions() == before


async def test_a_new_operator_finds_nothing_to_do_at_a_cluster_at_rest(world: World) -> None:
    async with world.operator():
        await world.create(replicas=2)
        await world.until_serving()
    await asyncio.sleep(1.0)
    before, writes = await world.versions(), len(world.writes)

    async with world.operator():
        await asyncio.sleep(REST_S)

    assert world.writes[writes:] == []
    assert await world.versions() == before
