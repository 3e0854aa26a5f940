"""A new build of the operator restarts nothing."""

import asyncio
from unittest.mock import patch

from sglang_controllers import planner
from sglang_controllers.manifest import Manifest
from sglang_controllers.resources import deployment as builder
from tests.integration.world import World


async def test_a_changed_builder_restarts_no_pod(world: World) -> None:
    async with world.operator():
        await world.create(replicas=2)
        await world.until_serving()
        pods = sorted(pod["metadata"]["uid"] for pod in await world.pods())
        before = await world.deployments()

    original = builder.deployment

    def newer(*arguments: object) -> Manifest:
        manifest = original(*arguments)  # type: ignore[arg-type]
        pod = manifest["spec"]["template"]
        pod["metadata"].setdefault("annotations", {})["built-by"] = "a newer operator"
        pod["spec"]["terminationGracePeriodSeconds"] = 77
        return manifest

    with patch.object(planner, "deployment", newer):
        async with world.operator():
            await asyncio.sleep(4.0)
            await world.until_serving()
            await world.change(replicas=3)
            await world.until_serving()
            after = await world.deployments()
            kept = {pod["metadata"]["uid"] for pod in await world.pods()}

            # The newer build is in use all the same: a new revision is made by it.
            await world.change(cache={"pageSize": 16})
            await world.until_serving()
            newest = await world.deployments()

    assert set(pods) < kept
    assert [d["metadata"]["uid"] for d in after] == [d["metadata"]["uid"] for d in before]
    assert after[0]["spec"]["template"] == before[0]["spec"]["template"]
    grace = newest[0]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert grace == 77
