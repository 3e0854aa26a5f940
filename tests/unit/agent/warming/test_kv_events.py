"""The follower of an engine's cache events, over ZeroMQ."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from sglang_agent.warming import kv_events
from sglang_agent.warming.kv_events import Follower, Publisher, publishers
from sglang_agent.warming.prefixes import Prefixes
from tests.unit.agent.warming.publisher import CLEARED, Engine, engine, removed, stored


async def until(check: Callable[[], object]) -> None:
    end_s = time.monotonic() + 30
    while not check():
        assert time.monotonic() < end_s
        await asyncio.sleep(0.005)


class Told:
    def __init__(self) -> None:
        self.cleared: list[float] = []


@asynccontextmanager
async def following(address: Publisher, told: Told | None = None) -> AsyncIterator[Follower]:
    follower = Follower(address, Prefixes(), (told or Told()).cleared.append, time.monotonic)
    task = asyncio.create_task(follower.run())
    try:
        yield follower
        if task.done():
            await task
    finally:
        task.cancel()
        await asyncio.wait([task])


def listed(follower: Follower) -> list[list[int]]:
    return [each.input_ids for each in follower.prefixes.hottest(100, time.monotonic())]


async def heard(publishing: Engine, follower: Follower) -> None:
    """It is subscribed: what is said from now on arrives."""

    async def say() -> bool:
        await publishing.say(stored([99]), removed(99))
        await asyncio.sleep(0.01)
        return publishing.replays != [] and follower._next == len(publishing.kept)

    while not await say():
        assert len(publishing.kept) < 1000


async def test_what_was_said_before_is_asked_for() -> None:
    async with engine() as publishing:
        await publishing.say(CLEARED)
        await publishing.say(stored([1, 2]), stored([3], 2))

        async with following(publishing.address) as follower:
            await until(lambda: len(follower.prefixes) == 3)

    assert publishing.replays == [0]
    assert listed(follower) == [[10, 20, 30]]


async def test_blocks_come_and_go() -> None:
    async with engine() as publishing, following(publishing.address) as follower:
        await heard(publishing, follower)
        await publishing.say(stored([1, 2]))
        await publishing.say(stored([3], 2), removed(3))
        await until(lambda: listed(follower) == [[10, 20]])


async def test_what_was_missed_is_asked_for() -> None:
    async with engine() as publishing, following(publishing.address) as follower:
        await heard(publishing, follower)
        asked = len(publishing.replays)
        first = len(publishing.kept)
        await publishing.say(stored([1]), heard=False)
        await publishing.say(stored([2], 1))
        await until(lambda: listed(follower) == [[10, 20]])

    assert publishing.replays[asked:] == [first]
    assert follower.lost == 0


async def test_what_the_engine_has_not_kept_is_lost_and_counted() -> None:
    async with engine() as publishing, following(publishing.address) as follower:
        await heard(publishing, follower)
        await publishing.say(stored([7]))
        await publishing.say(stored([1]), heard=False)
        publishing.kept.clear()
        await publishing.say(stored([2]))
        publishing.kept.clear()
        await until(lambda: follower.lost == 1)
        await until(lambda: listed(follower) == [[20]])


async def test_an_emptied_cache_is_told_with_its_time() -> None:
    told = Told()
    async with engine() as publishing, following(publishing.address, told) as follower:
        await heard(publishing, follower)
        await publishing.say(stored([1]))
        await publishing.say(CLEARED, at_s=77.5)
        await publishing.say(stored([2]))
        await until(lambda: listed(follower) == [[20]])

    assert told.cleared == [77.5]


async def test_blocks_that_were_copied_elsewhere_are_no_news() -> None:
    async with engine() as publishing, following(publishing.address) as follower:
        await heard(publishing, follower)
        await publishing.say(stored([1], medium="GPU"), stored([2], medium="CPU_PINNED"))
        gone = {"type": "BlockRemoved", "block_hashes": [1], "medium": "CPU_PINNED"}
        await publishing.say(gone, stored([3], 1, lora_name="legal", cache_salt="tenant"))
        await until(lambda: listed(follower) == [[10, 30]])


async def test_pairs_of_tokens_count_by_their_first() -> None:
    async with engine() as publishing, following(publishing.address) as follower:
        await heard(publishing, follower)
        await publishing.say(stored([1, 2], token_ids=[[5, 6], [6, 7]]))
        await until(lambda: listed(follower) == [[5, 6]])


@pytest.mark.parametrize(
    "payload",
    [b"", b"\xc1", b"\x93\x01", b'{"type": "BlockStored"}'],
)
async def test_what_is_not_understood_is_counted(payload: bytes) -> None:
    async with engine() as publishing, following(publishing.address) as follower:
        await heard(publishing, follower)
        await publishing.say_raw(payload)
        await publishing.say({"type": "BlockMoved"})
        await publishing.say(stored([1]))
        await until(lambda: listed(follower) == [[10]])

    assert follower.lost == 2


async def test_an_engine_that_repeats_nothing_is_followed_from_now_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kv_events, "REPLAY_TIMEOUT_S", 0.05)
    async with engine() as publishing:
        silent = Publisher(publishing.address.endpoint, "tcp://127.0.0.1:1", "kv-events")
        await publishing.say(stored([1]))
        async with following(silent) as follower:
            while not follower.lost:
                await publishing.say(stored([2]), removed(2))
                await asyncio.sleep(0.05)
            await publishing.say(stored([3]))
            await until(lambda: [30] in listed(follower))


KV_EVENTS = {
    "publisher": "zmq",
    "endpoint_host": "127.0.0.1",
    "endpoint_port_base": 5557,
    "topic": "kv-events",
    "block_size": 16,
    "dp_size": 1,
    "replay_endpoint_port_base": 5657,
}


def test_every_rank_publishes_at_a_port_of_its_own() -> None:
    told = {"kv_events": KV_EVENTS | {"dp_size": 2, "endpoint_host": "*"}}

    assert publishers(told) == [
        Publisher("tcp://127.0.0.1:5557", "tcp://127.0.0.1:5657", "kv-events"),
        Publisher("tcp://127.0.0.1:5558", "tcp://127.0.0.1:5658", "kv-events"),
    ]


@pytest.mark.parametrize(
    "told", [None, [], {}, KV_EVENTS | {"publisher": "null"}, KV_EVENTS | {"dp_size": "many"}]
)
def test_an_engine_may_publish_nothing(told: object) -> None:
    assert publishers({"kv_events": told}) == []
