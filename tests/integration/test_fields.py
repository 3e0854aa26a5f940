"""Every field of the spec can be changed and changed back, and nothing remembers it."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from sglang_controllers.api.schema import crd
from sglang_controllers.manifest import Manifest
from tests.integration.world import World

BASE: Manifest = {
    "replicas": 1,
    "model": {"source": "image:///models/m", "servedName": "m"},
    "engine": {
        "accelerator": {"resourceName": "nvidia.com/gpu", "count": 2},
        "resources": {"requests": {"memory": "8Gi"}, "limits": {"memory": "16Gi"}},
    },
    "speculative": {"ngram": {"maxTrieDepth": 16, "minBfsBreadth": 1, "maxBfsBreadth": 8}},
}

FIELDS: dict[str, Any] = {
    "replicas": 2,
    "paused": True,
    "model.source": "pvc://models/other",
    "model.servedName": "other",
    "engine.version": "0.5.22",
    "engine.image": "registry.example/sglang:other",
    "engine.accelerator.resourceName": "amd.com/gpu",
    "engine.accelerator.count": 4,
    "engine.parallelism.tensor": 2,
    "engine.resources.requests": {"memory": "4Gi", "cpu": "1"},
    "engine.resources.limits": {"memory": "32Gi"},
    "engine.sharedMemory": "1Gi",
    "engine.env": [{"name": "OTHER", "value": "1"}],
    "engine.extraArgs": {"log-level": "debug", "disable-radix-cache": True},
    "engine.startupTimeout": "45m",
    "cache.eviction.policy": "lfu",
    "cache.pageSize": 16,
    "scheduling.policy": "lpm",
    "scheduling.overlap.mode": "disabled",
    "speculative.ngram.numDraftTokens": 6,
    "speculative.ngram.maxTrieDepth": 12,
    "speculative.ngram.minBfsBreadth": 2,
    "speculative.ngram.maxBfsBreadth": 6,
    "speculative.ngram.matchType": "PROB",
    "speculative.ngram.capacity": 100_000,
    "podTemplate": {"metadata": {"labels": {"team": "other"}}},
}
"""A value of each field that differs from the one in BASE and keeps the whole valid."""

WITHOUT_EFFECT = {
    "paused",  # a cluster that is all right stays so
    "engine.startupTimeout",  # outside the revision: it is for pods of the next one
}

AT_A_TIME = 6


def leaves(schema: Manifest, path: str = "") -> Iterator[str]:
    """Paths of fields that hold a value, not just other fields."""
    properties = schema.get("properties")
    if not properties or "x-kubernetes-preserve-unknown-fields" in schema or path == "podTemplate":
        yield path
        return
    for name, inner in properties.items():
        yield from leaves(inner, f"{path}.{name}".strip("."))


def nested(path: str, value: Any) -> Manifest:
    """{"a": {"b": value}} for a.b."""
    first, _, rest = path.partition(".")
    return {first: nested(rest, value) if rest else value}


def value_in_base(path: str) -> Any:
    value: Any = BASE
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def test_the_table_has_every_field_of_the_crd() -> None:
    version = crd()["spec"]["versions"][0]

    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]

    assert sorted(FIELDS) == sorted(leaves(spec))


def test_the_table_changes_each_field() -> None:
    assert [path for path, value in FIELDS.items() if value == value_in_base(path)] == []


@pytest.mark.timeout(200)
async def test_each_field_changed_and_changed_back_gives_the_first_state(world: World) -> None:
    places = asyncio.Semaphore(AT_A_TIME)

    async def there_and_back(path: str) -> None:
        name = "f-" + path.replace(".", "-").lower()
        async with places:
            await world.create(name, **BASE)
            await world.until_serving(name)
            first = await world.state(name)

            await world.change(name, **nested(path, FIELDS[path]))
            await settled(world, name)
            second = await world.state(name)
            await world.change(name, **nested(path, _back(path)))
            await settled(world, name)

            assert await world.state(name) == first, path
            assert (second == first) == (path in WITHOUT_EFFECT), f"{path}: {second == first}"
            await world.change(name, replicas=0)

    async with world.operator(resync_s=10.0):
        await asyncio.gather(*map(there_and_back, FIELDS))


async def settled(world: World, name: str) -> None:
    await world.until_serving(name)
    before: dict[str, Manifest] = {}

    async def same() -> bool:
        nonlocal before
        last, before = before, await world.state(name)
        return last == before

    await world.until(same, f"{name} comes to rest")


def _back(path: str) -> Any:
    """What a merge patch needs to bring a field back: null removes one that was not set."""
    before, now = value_in_base(path), FIELDS[path]
    if isinstance(before, dict) and isinstance(now, dict):
        return {**dict.fromkeys(now), **before}
    return before
