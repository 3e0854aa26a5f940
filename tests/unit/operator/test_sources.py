"""ConfigMaps with prompts: when they are read, and what a change of one causes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from sglang_controllers.manifest import Manifest
from sglang_controllers.warming.sources import Source
from sglang_operator.cache import Key
from sglang_operator.kube import ApiError, Kube, Listing, NetworkError
from sglang_operator.sources import Sources
from tests.unit.operator.simulated import run

CHAT, OTHER = Key("team", "chat"), Key("team", "other")
Event = tuple[str, Manifest]


def a_config_map(name: str = "prompts", version: int = 1, text: str = "Hello") -> Manifest:
    about = {"namespace": "team", "name": name, "resourceVersion": str(version)}
    return {"metadata": about, "data": {"a": text}}


def nothing() -> None:
    return


class FakeApi:
    """ConfigMaps of one namespace, and what watches of them are told."""

    def __init__(self) -> None:
        self.live: dict[str, Manifest] = {}
        self.version = 100
        self.reads: list[str] = []
        self.lists = 0
        self.watched_from: list[int] = []
        self.fault: Exception | None = None
        self.events: asyncio.Queue[Event | Exception] = asyncio.Queue()
        self.when_read: Callable[[], None] = nothing
        self.ends = False
        self.closes_s = 0.0

    def put(self, item: Manifest) -> None:
        self.live[item["metadata"]["name"]] = item

    def tell(self, kind: str, item: Manifest) -> None:
        self.events.put_nowait((kind, item))

    async def get(self, _: object, namespace: str, name: str) -> Manifest:
        self.reads.append(name)
        found = self.live.get(name)
        self.when_read()
        if self.fault:
            raise self.fault
        if found is None:
            raise ApiError(404, "NotFound", f"{namespace}/{name}")
        return found

    async def list_metadata(self, *_: object) -> Listing:
        self.lists += 1
        return Listing(tuple(self.live.values()), self.version)

    async def watch_metadata(self, _: object, __: object, version: int) -> AsyncIterator[Manifest]:
        self.watched_from.append(version)
        while True:
            try:
                told = await self.events.get()
            except asyncio.CancelledError:
                await asyncio.sleep(self.closes_s)
                raise
            if isinstance(told, Exception):
                raise told
            yield {"type": told[0], "object": told[1]}
            if self.ends:
                self.events.put_nowait(told)
                return

    def kube(self) -> Kube:
        client = Kube.__new__(Kube)
        for name in ("get", "list_metadata", "watch_metadata"):
            setattr(client, name, getattr(self, name))
        return client


class Bench:
    def __init__(self) -> None:
        self.api = FakeApi()
        self.changed: list[Key] = []
        self.sources = Sources(self.api.kube(), (None,), self.changed.append)
        self.task = asyncio.create_task(self.sources.run())

    async def read(self, *names: str, key: Key = CHAT) -> dict[str, Source | None]:
        return await self.sources.read(key, frozenset(names))

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])
        assert self.task.cancelled()


async def soon() -> None:
    """Whatever can happen now has happened."""
    await asyncio.sleep(0.01)


def text_of(read: dict[str, Source | None], name: str = "prompts") -> str | None:
    source = read[name]
    return source.files["a"].value if source else None


def in_a_bench(story: Any) -> Any:
    """The test is a story, told in simulated time."""

    def test() -> None:
        async def whole() -> None:
            bench = Bench()
            await story(bench)
            await bench.stop()

        run(whole())

    test.__name__ = story.__name__
    return test


@in_a_bench
async def test_what_is_named_is_read_once(bench: Bench) -> None:
    bench.api.put(a_config_map())

    assert text_of(await bench.read("prompts")) == "Hello"
    assert text_of(await bench.read("prompts")) == "Hello"
    assert bench.api.reads == ["prompts"]


@in_a_bench
async def test_what_is_not_there_is_known_to_be_missing(bench: Bench) -> None:
    assert await bench.read("prompts") == {"prompts": None}
    assert await bench.read("prompts") == {"prompts": None}
    assert bench.api.reads == ["prompts"]


@in_a_bench
async def test_nothing_is_watched_while_nothing_is_named(bench: Bench) -> None:
    await bench.read()
    await soon()

    assert (bench.api.lists, bench.api.watched_from) == (0, [])


@in_a_bench
async def test_a_change_tells_exactly_the_clusters_that_name_it(bench: Bench) -> None:
    bench.api.put(a_config_map())
    await bench.read("prompts")
    await bench.read("others", key=OTHER)
    await soon()
    bench.api.put(a_config_map(version=2, text="Bye"))
    bench.api.tell("MODIFIED", a_config_map(version=2))
    bench.api.tell("MODIFIED", a_config_map("of nobody", version=3))
    await soon()

    assert bench.changed == [CHAT]
    assert text_of(await bench.read("prompts")) == "Bye"


@in_a_bench
async def test_an_event_of_what_was_read_already_costs_nothing(bench: Bench) -> None:
    bench.api.put(a_config_map())
    await bench.read("prompts")
    await soon()
    bench.api.tell("ADDED", a_config_map())
    await soon()

    assert bench.changed == []


@in_a_bench
async def test_one_that_goes_is_missing_and_one_that_comes_is_there(bench: Bench) -> None:
    bench.api.put(a_config_map())
    await bench.read("prompts")
    await soon()
    gone = bench.api.live.pop("prompts")
    bench.api.tell("DELETED", gone)
    await soon()
    assert await bench.read("prompts") == {"prompts": None}

    bench.api.put(a_config_map(version=5))
    bench.api.tell("ADDED", a_config_map(version=5))
    await soon()

    assert bench.changed == [CHAT, CHAT]
    assert text_of(await bench.read("prompts")) == "Hello"


@in_a_bench
async def test_a_change_before_the_watch_began_is_found(bench: Bench) -> None:
    bench.api.put(a_config_map())
    reading = bench.read("prompts")
    await reading
    bench.api.put(a_config_map(version=2, text="Bye"))

    await soon()

    assert bench.changed == [CHAT]
    assert text_of(await bench.read("prompts")) == "Bye"


@in_a_bench
async def test_what_changes_while_it_is_read_is_read_again(bench: Bench) -> None:
    bench.api.put(a_config_map())
    await bench.read("others")
    await soon()

    def change() -> None:
        bench.api.when_read = nothing
        bench.api.put(a_config_map(version=2, text="Bye"))
        bench.sources._hear(("team", "prompts"), 2)  # type: ignore[arg-type]

    bench.api.when_read = change

    assert text_of(await bench.read("prompts")) == "Bye"
    assert bench.api.reads == ["others", "prompts", "prompts"]


@in_a_bench
async def test_what_cannot_be_read_is_not_known_and_tried_again(bench: Bench) -> None:
    bench.api.fault = NetworkError("gone")
    assert await bench.read("prompts") == {}

    bench.api.fault = None

    assert await bench.read("prompts") == {"prompts": None}


@in_a_bench
async def test_the_watch_goes_on_where_it_was_after_a_fault(bench: Bench) -> None:
    await bench.read("prompts")
    await soon()
    bench.api.tell("BOOKMARK", {"metadata": {"resourceVersion": "200"}})
    bench.api.events.put_nowait(NetworkError("reset"))
    await asyncio.sleep(5)

    assert bench.api.watched_from == [100, 200]
    assert bench.api.lists == 1


@in_a_bench
async def test_a_watch_that_is_too_far_behind_starts_with_a_list(bench: Bench) -> None:
    await bench.read("prompts")
    await soon()
    bench.api.version = 300
    bench.api.events.put_nowait(ApiError(410, "Expired", "too old"))
    await asyncio.sleep(1.5)

    assert bench.api.watched_from == [100, 300]


@in_a_bench
async def test_watches_that_end_at_once_cost_a_request_a_second_at_most(bench: Bench) -> None:
    await bench.read("prompts")
    await soon()
    bench.api.ends = True

    bench.api.tell("BOOKMARK", {"metadata": {"resourceVersion": "200"}})
    await asyncio.sleep(60)

    assert 30 < len(bench.api.watched_from) <= 62
    assert bench.api.lists == 1


@in_a_bench
async def test_expired_versions_again_and_again_cost_ever_fewer_requests(bench: Bench) -> None:
    await bench.read("prompts")
    await soon()
    for _ in range(100):
        bench.api.events.put_nowait(ApiError(410, "Expired", "too old"))

    await asyncio.sleep(60)

    assert 3 < bench.api.lists < 10


@in_a_bench
async def test_the_watch_ends_and_all_is_forgotten_when_nobody_names_anything(bench: Bench) -> None:
    bench.api.put(a_config_map())
    await bench.read("prompts")
    await bench.read("prompts", key=OTHER)
    await soon()
    bench.sources.forget(CHAT)
    await soon()
    assert bench.sources._known

    await bench.read(key=OTHER)
    await soon()
    bench.api.tell("MODIFIED", a_config_map(version=9))
    await soon()

    assert (bench.sources._known, bench.sources._heard) == ({}, {})
    assert bench.api.events.qsize() == 1


@in_a_bench
async def test_a_watch_that_ended_begins_anew_when_something_is_named(bench: Bench) -> None:
    await bench.read("prompts")
    await soon()
    await bench.read()
    await soon()

    await bench.read("prompts")
    await soon()

    assert bench.api.lists == 2


@in_a_bench
async def test_an_end_while_a_watch_is_being_closed_is_an_end(bench: Bench) -> None:
    await bench.read("prompts")
    await soon()
    bench.api.closes_s = 1.0
    bench.sources.forget(CHAT)
    await soon()

    await bench.stop()

    assert bench.task.cancelled()


@in_a_bench
async def test_complaints_are_forgotten_with_what_they_are_about(bench: Bench) -> None:
    bench.api.fault = ApiError(403, "Forbidden", "no")
    await bench.read("prompts")
    bench.sources.forget(CHAT)

    assert bench.sources._complained == set()


def test_faults_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        bench = Bench()
        bench.api.fault = ApiError(403, "Forbidden", "no")
        await bench.read("prompts")
        await bench.read("prompts")
        await bench.stop()

    run(story())

    assert [record.getMessage() for record in caplog.records] == [
        "ConfigMap prompts not read: 403 Forbidden: no"
    ]
