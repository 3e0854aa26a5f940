"""Several operators run, one acts, and another one takes over soon."""

import asyncio
import contextlib

import pytest

from sglang_operator.execute import Write
from sglang_operator.resources import LEASES
from sglang_operator.run import Operator
from tests.integration.world import World, until_synced

TAKEOVER_S = 15.0


async def started(world: World, writes: list[Write]) -> tuple[Operator, asyncio.Task[None]]:
    async def note(write: Write) -> None:
        writes.append(write)

    operator = Operator(world.settings(leader_election=True), after_write=note)
    task = asyncio.create_task(operator.run())
    await until_synced(operator, task)
    return operator, task


async def holder(world: World) -> str:
    lease = await world.kube.get(LEASES, world.namespace, "sglang-operator")
    return str(lease["spec"]["holderIdentity"])


@pytest.mark.parametrize("clean", [False, True], ids=["killed", "stopped"])
async def test_another_operator_acts_when_the_leader_is_gone(world: World, clean: bool) -> None:
    first_writes: list[Write] = []
    second_writes: list[Write] = []
    first, first_task = await started(world, first_writes)
    await world.create("one")
    await world.until_serving("one")
    second, second_task = await started(world, second_writes)
    assert await holder(world) == first.settings.identity

    if clean:
        first.stop()
        await first_task
    else:
        first_task.cancel()  # as dead as in-process gets: no lease is released
        with contextlib.suppress(asyncio.CancelledError):
            await first_task
    await world.create("two")

    async def acted() -> bool:
        return bool(second_writes)

    took_s = await world.until(acted, "the second acts")
    assert took_s < (3.0 if clean else TAKEOVER_S)
    await world.until_serving("two")
    assert await holder(world) == second.settings.identity
    second.stop()
    await second_task


async def test_a_lease_lost_stops_writes_at_once(world: World) -> None:
    writes: list[Write] = []
    operator, task = await started(world, writes)
    await world.create("one")
    await world.until_serving("one")

    stolen = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 5}}
    await world.patch(LEASES, "sglang-operator", stolen)
    await asyncio.sleep(3.0)  # one renewal
    before = len(writes)
    await world.create("two")
    await asyncio.sleep(1.0)
    assert len(writes) == before

    # The thief never renews: the lease runs out and is taken back.
    await world.until_serving("two")
    operator.stop()
    await task
    assert await holder(world) == ""
