"""Prompts go from ConfigMaps to pods, and nothing else is touched by them."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sglang_controllers.manifest import Manifest
from sglang_controllers.names import KIND, WARMING_ANNOTATION
from sglang_controllers.warming.slots import SLOT_BYTES
from sglang_operator.cache import Key
from sglang_operator.resources import BY_KIND, CLUSTERS
from sglang_operator.run import Operator
from tests.integration.rights import LEASE, NEEDED, account
from tests.integration.world import World

CONFIG_MAPS = BY_KIND["ConfigMap"]
SLOT = "chat-warming-0"
SOON_S = 3.0
REST_S = 4.0


@pytest.fixture(autouse=True)
def _silent_agents(world: World) -> Iterator[None]:
    yield
    world.kubelet.answers.more = ""


async def put(world: World, name: str = "prompts", **data: str) -> None:
    """A ConfigMap is there with this content, and no other."""
    metadata = {"name": name, "namespace": world.namespace}
    body: Manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    if await world.get("ConfigMap", name) is None:
        await world.kube.create(CONFIG_MAPS, body)
    else:
        await world.kube.replace(CONFIG_MAPS, body)


async def create(world: World, *names: str, replicas: int = 1, **warming: Any) -> None:
    prompts = [{"configMap": {"name": name}} for name in names]
    cache = {"warming": {"promptsFrom": prompts, **warming}}
    await world.create(replicas=replicas, cache=cache, router={"enabled": False})


async def create_warm(world: World, replicas: int = 1) -> None:
    """A cluster that serves and has copied its prompts, with marks on all pods."""
    await put(world, a="Hello")
    await create(world, "prompts", replicas=replicas)
    await world.until_serving()
    await until_marked(world)


async def copied(world: World) -> dict[str, str]:
    """What the first slot holds, by the names of ConfigMap and key."""
    slot = await world.get("ConfigMap", SLOT)
    if slot is None:
        return {}
    index = json.loads(slot["data"]["index-0.json"])
    return {f"{s['configMap']}/{s['key']}": slot["data"][s["file"]] for s in index["sources"]}


async def slots_hash(world: World) -> str:
    slot = await world.get("ConfigMap", SLOT)
    return str(json.loads(slot["data"]["index-0.json"])["hash"]) if slot else ""


async def marks(world: World) -> list[str]:
    pods = await world.pods()
    return [p["metadata"].get("annotations", {}).get(WARMING_ANNOTATION, "") for p in pods]


async def until_copied(world: World, **expected: str) -> float:
    async def there() -> bool:
        return await copied(world) == {k.replace("__", "/"): v for k, v in expected.items()}

    return await world.until(there, f"{expected} is copied")


async def until_marked(world: World) -> float:
    async def marked() -> bool:
        wanted = await slots_hash(world)
        found = await marks(world)
        return bool(found) and all(mark.partition(".")[0] == wanted for mark in found)

    return await world.until(marked, "every pod is marked")


async def until_warmed(world: World, reason: str) -> Manifest:
    """The condition Warmed, once it gives this reason."""
    found: Manifest = {}

    async def told() -> bool:
        nonlocal found
        live = await world.get(KIND, "chat")
        conditions = ((live or {}).get("status") or {}).get("conditions") or ()
        found = next((c for c in conditions if c["type"] == "Warmed"), {})
        return bool(found.get("reason") == reason)

    await world.until(told, f"Warmed says {reason}")
    return found


async def say(world: World, operator: Operator, state: str, hash_: str, warmed: int = 0) -> None:
    """What every agent says from now on, and the operator has heard it."""
    world.kubelet.answers.more = (
        f'sglang_agent_warming_state{{state="{state}"}} 1.0\n'
        f'sglang_agent_warming_prompts{{state="warmed"}} {warmed}\n'
        f'sglang_agent_warming_sources_info{{hash="{hash_}"}} 1.0\n'
    )
    await operator.polls.ask(Key(world.namespace, "chat"))


async def test_an_edit_reaches_the_slot_and_every_pod_in_seconds(world: World) -> None:
    async with world.operator():
        await create_warm(world, replicas=2)
        pods = [pod["metadata"]["uid"] for pod in await world.pods()]

        await put(world, a="Bye", b="More")
        took_s = await until_copied(world, prompts__a="Bye", prompts__b="More")
        took_s += await until_marked(world)

        assert took_s < SOON_S
        assert [pod["metadata"]["uid"] for pod in await world.pods()] == pods


async def test_a_new_name_with_a_hash_restarts_nothing(world: World) -> None:
    async with world.operator():
        await create_warm(world, replicas=2)
        pods = [pod["metadata"]["uid"] for pod in await world.pods()]
        deployments = [d["metadata"]["name"] for d in await world.deployments()]

        await put(world, "prompts-7g5k", a="Bye")
        prompts = [{"configMap": {"name": "prompts-7g5k"}}]
        await world.change(cache={"warming": {"promptsFrom": prompts}})
        await world.delete(CONFIG_MAPS, "prompts")
        await until_copied(world, **{"prompts-7g5k__a": "Bye"})
        await until_marked(world)
        await world.until_serving()

        assert [pod["metadata"]["uid"] for pod in await world.pods()] == pods
        assert [d["metadata"]["name"] for d in await world.deployments()] == deployments


async def test_what_is_missing_is_told_and_copied_when_it_appears(world: World) -> None:
    async with world.operator():
        await create(world, "prompts")
        await world.until_serving()

        told = await until_warmed(world, "WarmingSourceMissing")
        await put(world, a="Hello")
        took_s = await until_copied(world, prompts__a="Hello")

        assert told["message"].startswith("there is no ConfigMap prompts. ")
        assert took_s < SOON_S
        assert (await until_warmed(world, "Warming"))["status"] == "False"
        assert (await world.ready())["reason"] == "Serving"


async def test_what_goes_leaves_the_slots(world: World) -> None:
    async with world.operator():
        await create_warm(world)

        await world.delete(CONFIG_MAPS, "prompts")
        await until_warmed(world, "WarmingSourceMissing")
        await until_marked(world)

        assert await world.get("ConfigMap", SLOT) is None
        assert (await world.ready())["status"] == "True"


async def test_what_is_too_large_is_told_and_the_rest_is_copied(world: World) -> None:
    async with world.operator():
        await put(world, a="x" * (SLOT_BYTES + 1), b="Hello")
        await create(world, "prompts")
        await world.until_serving()

        told = await until_warmed(world, "WarmingSourceTooLarge")
        await until_copied(world, prompts__b="Hello")

        assert "key a of ConfigMap prompts" in told["message"]
        assert (await world.ready())["status"] == "True"


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")  # it has to be one
async def test_slots_that_are_full_to_the_brim_are_taken(world: World) -> None:
    async with world.operator():
        for number in range(4):
            await put(world, f"prompts-{number}", a="€\n" * (SLOT_BYTES // 4 - 100))
        await create(world, *(f"prompts-{number}" for number in range(4)))
        await world.until_serving()

        async def all_there() -> bool:
            return await world.get("ConfigMap", "chat-warming-3") is not None

        await world.until(all_there, "four slots are there")
        await until_warmed(world, "Warming")


async def test_a_slot_that_somebody_edits_is_put_right(world: World) -> None:
    async with world.operator():
        await create_warm(world)

        await world.patch(CONFIG_MAPS, SLOT, {"data": {"s0-0": "edited"}})

        await until_copied(world, prompts__a="Hello")


async def test_a_slot_that_somebody_makes_immutable_is_made_anew(world: World) -> None:
    async with world.operator():
        await create_warm(world)
        await world.patch(CONFIG_MAPS, SLOT, {"immutable": True})

        await put(world, a="Bye")

        await until_copied(world, prompts__a="Bye")
        assert (await world.ready())["status"] == "True"


async def test_a_slot_that_is_named_as_a_source_is_not_copied_on_and_on(world: World) -> None:
    async with world.operator():
        await put(world, a="Hello")
        await create(world, "prompts", SLOT)
        await world.until_serving()
        await until_copied(world, prompts__a="Hello")
        told = await until_warmed(world, "WarmingSourceMissing")
        await asyncio.sleep(1.0)
        before = await world.versions()
        await asyncio.sleep(REST_S)

        assert f"nothing is read from {SLOT}" in told["message"]
        assert await world.versions() == before


async def test_a_foreign_config_map_in_place_of_a_slot_leaves_the_cluster_ready(
    world: World,
) -> None:
    async with world.operator():
        await put(world, a="Hello")
        await put(world, SLOT, mine="Hands off")
        await create(world, "prompts")

        await world.until_serving()

        told, live = await until_warmed(world, "Conflict"), await world.get("ConfigMap", SLOT)
        assert told["message"].startswith(f"prompts are not copied: ConfigMap {SLOT} ")
        assert live is not None
        assert live["data"] == {"mine": "Hands off"}


async def test_a_warm_cluster_at_rest_and_a_new_operator_cost_no_write(world: World) -> None:
    async with world.operator(resync_s=1.0) as operator:
        await create_warm(world, replicas=2)
        await say(world, operator, "warmed", await slots_hash(world), warmed=1)
        await until_warmed(world, "Warmed")
        await asyncio.sleep(1.0)
        before, writes = await world.versions(), len(world.writes)
        await asyncio.sleep(REST_S)

    async with world.operator(resync_s=1.0):
        await asyncio.sleep(REST_S)

    assert world.writes[writes:] == []
    assert await world.versions() == before


async def test_a_deleted_cluster_leaves_its_users_config_map_and_nothing_else(world: World) -> None:
    async with world.operator():
        await create_warm(world)
        await world.delete(CLUSTERS, "chat")

        async def gone() -> bool:
            return await world.children() == []

        await world.until(gone, "everything is collected")

    assert await world.get("ConfigMap", "prompts") is not None


async def test_pods_that_show_older_prompts_are_marked_again(world: World) -> None:
    async with world.operator() as operator:
        await create_warm(world)
        await say(world, operator, "warmed", "0123456789abcdef")

        async def again() -> bool:
            return all(mark.split(".")[1] == "1" for mark in await marks(world))

        assert await world.until(again, "every pod is marked again") > 5.0


async def test_status_says_what_agents_have_warmed(world: World) -> None:
    async with world.operator() as operator:
        await create_warm(world, replicas=2)
        await say(world, operator, "warmed", await slots_hash(world), warmed=1)

        told = await until_warmed(world, "Warmed")
        live = await world.get(KIND, "chat")

        assert told["status"] == "True"
        assert live is not None
        assert live["status"]["warming"] == {
            "pods": 2,
            "warmed": 2,
            "prompts": 1,
            "failed": 0,
            "tokens": 0,
            "failures": [],
        }


async def test_a_cluster_whose_pods_wait_at_the_gate_says_warming(world: World) -> None:
    world.kubelet.decide(world.namespace, "gated")
    async with world.operator() as operator:
        await put(world, a="Hello")
        await create(world, "prompts", gate={"timeout": "10m"})
        await say(world, operator, "warming", "")

        told = await world.until_reason("Warming")
        world.kubelet.decide(world.namespace, "ready")
        await world.until_serving()

    assert told["message"] == (
        "0 of 1 replica ready, 1 waits until its prompts are warmed, at most 10m"
    )


async def test_the_documented_rights_are_enough(world: World, tmp_path: Path) -> None:
    file = await account(world.kube, world.namespace, (*NEEDED, LEASE), tmp_path)
    async with world.operator(kubeconfig=file):
        await create_warm(world)

        await put(world, a="Bye")

        assert await until_copied(world, prompts__a="Bye") < SOON_S
