"""Every field of the spec can be changed and changed back, and nothing remembers it."""

import asyncio
from collections.abc import Iterator

import pytest

from sglang_controllers.api.schema import crd
from sglang_controllers.manifest import Manifest
from sglang_operator.resources import CLUSTERS
from tests.integration.fields import (
    FIELDS,
    WITHOUT_EFFECT,
    base_of,
    nested,
    value_at,
    way_back,
)
from tests.integration.world import World

AT_A_TIME = 6


def leaves(schema: Manifest, path: str = "") -> Iterator[str]:
    """Paths of fields that hold a value, not just other fields."""
    properties = schema.get("properties")
    if not properties or "x-kubernetes-preserve-unknown-fields" in schema or path == "podTemplate":
        yield path
        return
    for name, inner in properties.items():
        yield from leaves(inner, f"{path}.{name}".strip("."))


def test_the_table_has_every_field_of_the_crd() -> None:
    version = crd()["spec"]["versions"][0]

    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]

    assert sorted(FIELDS) == sorted(leaves(spec))


def test_the_table_changes_each_field() -> None:
    same = [path for path, value in FIELDS.items() if value == value_at(base_of(path), path)]

    assert same == []


def test_the_way_back_restores_a_spec_to_the_letter() -> None:
    for path in FIELDS:
        changed = merged(base_of(path), nested(path, FIELDS[path]))
        assert merged(changed, way_back(path)) == base_of(path), path


@pytest.mark.timeout(200)
async def test_each_field_changed_and_changed_back_gives_the_first_state(world: World) -> None:
    places = asyncio.Semaphore(AT_A_TIME)

    async def there_and_back(path: str) -> None:
        name = "f-" + path.replace(".", "-").lower()
        async with places:
            await world.create(name, **base_of(path))
            first = await settled(world, name)
            await world.change(name, **nested(path, FIELDS[path]))
            second = await settled(world, name)
            await world.change(name, **way_back(path))

            assert await settled(world, name) == first, path
            assert (second == first) == (path in WITHOUT_EFFECT), f"{path}: {second == first}"
            await world.delete(CLUSTERS, name)

    async with world.operator(resync_s=10.0):
        await asyncio.gather(*map(there_and_back, FIELDS))


async def settled(world: World, name: str) -> dict[str, Manifest]:
    """The state in which a cluster comes to rest."""
    await world.until_serving(name)
    before: dict[str, Manifest] = {}

    async def same() -> bool:
        nonlocal before
        last, before = before, await world.state(name)
        return last == before

    await world.until(same, f"{name} comes to rest")
    return before


def merged(spec: Manifest, patch: Manifest) -> Manifest:
    """A JSON merge patch, as the API server applies it."""
    result = dict(spec)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            result[name] = merged(result.get(name) or {}, value)
        else:
            result[name] = value
    return result
