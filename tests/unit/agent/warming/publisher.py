"""Publishes cache events as SGLang 0.5.23 does, and leaves messages out when told so."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import zmq
import zmq.asyncio

from sglang_agent.warming.kv_events import Publisher

END = (-1).to_bytes(8, "big", signed=True)


def stored(hashes: list[int], parent: int | None = None, **more: Any) -> dict[str, Any]:
    tokens = [10 * name for name in hashes]
    told = {"block_hashes": hashes, "parent_block_hash": parent, "token_ids": tokens}
    return {"type": "BlockStored", **told, "block_size": 1, "lora_id": None, **more}


def removed(*hashes: int) -> dict[str, Any]:
    return {"type": "BlockRemoved", "block_hashes": list(hashes), "medium": "GPU"}


CLEARED = {"type": "AllBlocksCleared"}


class Engine:
    """`kept`: the messages that can be had again."""

    def __init__(self, publisher: "zmq.asyncio.Socket", router: "zmq.asyncio.Socket") -> None:
        self._publisher, self._router = publisher, router
        self._next = 0
        self.kept: list[tuple[int, bytes]] = []
        self.replays: list[int] = []
        published, replayed = (
            f"tcp://127.0.0.1:{socket.bind_to_random_port('tcp://127.0.0.1')}"
            for socket in (publisher, router)
        )
        self.address = Publisher(published, replayed, "kv-events")

    async def say(self, *events: dict[str, Any], at_s: float = 5.0, heard: bool = True) -> None:
        payload = msgspec.msgpack.encode([at_s, list(events), 0])
        await self.say_raw(payload, heard=heard)

    async def say_raw(self, payload: bytes, *, heard: bool = True) -> None:
        number, self._next = self._next, self._next + 1
        self.kept.append((number, payload))
        if heard:
            await self._publisher.send_multipart([b"kv-events", number.to_bytes(8, "big"), payload])

    async def serve(self) -> None:
        while True:
            asker, empty, first = await self._router.recv_multipart()
            self.replays.append(int.from_bytes(first, "big"))
            for number, payload in self.kept:
                if number >= self.replays[-1]:
                    name = number.to_bytes(8, "big")
                    await self._router.send_multipart([asker, empty, b"kv-events", name, payload])
            await self._router.send_multipart([asker, empty, b"", END, b""])


@asynccontextmanager
async def engine() -> AsyncIterator[Engine]:
    context = zmq.asyncio.Context()
    publishing = Engine(context.socket(zmq.PUB), context.socket(zmq.ROUTER))
    serving = asyncio.create_task(publishing.serve())
    try:
        yield publishing
    finally:
        serving.cancel()
        await asyncio.wait([serving])
        context.destroy(linger=0)
