"""The operator works with few rights, and says which one it lacks."""

import logging
from pathlib import Path

import pytest

from sglang_operator.resources import BY_KIND
from tests.integration.rights import LEASE, NEEDED, account, without
from tests.integration.world import World


async def test_the_documented_rights_are_enough_for_a_whole_life(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = await account(world.kube, world.namespace, (*NEEDED, LEASE), tmp_path)
    caplog.set_level(logging.WARNING)
    async with world.operator(kubeconfig=file, leader_election=True):
        await world.create(replicas=2)
        await world.until_serving()
        await world.change(cache={"pageSize": 8}, replicas=1)
        await world.until_serving()
        await world.patch(BY_KIND["Service"], "chat", {"metadata": {"labels": {"a": "b"}}})
        await world.patch(
            BY_KIND["PodDisruptionBudget"], "chat-unified", {"spec": {"maxUnavailable": 2}}
        )

        async def put_right() -> bool:
            budget = await world.get("PodDisruptionBudget", "chat-unified")
            return budget is not None and budget["spec"]["maxUnavailable"] == 1

        await world.until(put_right, "the budget is put right")

    assert [r.getMessage() for r in caplog.records if "orbidden" in r.getMessage()] == []


async def test_a_write_that_is_forbidden_is_told(world: World, tmp_path: Path) -> None:
    file = await account(world.kube, world.namespace, without("create", "services"), tmp_path)
    async with world.operator(kubeconfig=file):
        await world.create()

        told = await world.until_reason("Rejected")

    assert "forbidden" in told["message"]
    assert "services" in told["message"]
