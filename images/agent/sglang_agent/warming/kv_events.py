"""Follows what an engine publishes of its cache: blocks stored and removed, the cache emptied.

Formats of SGLang 0.5.23. A rank publishes at the base port plus its number, and answers for what
was missed at the replay port plus its number. Messages are numbered from 0 for each engine process.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import zmq
import zmq.asyncio

from sglang_agent.warming.prefixes import Prefixes, Stored

LOG = logging.getLogger("sglang_agent")

REPLAY_TIMEOUT_S = 5.0
"""Between two messages. The engine looks for such requests every 0.1 s."""

MAX_MESSAGE_BYTES = 64 * 2**20
QUEUED_MESSAGES = 10_000
ON_THE_ENGINES_DEVICE = (None, "GPU")


class BlockStored(msgspec.Struct, tag=True, gc=False):
    """With EAGLE a token is told together with the one that follows it.

    The ids' range is not checked here: with that, msgspec 0.23.0 ends the process.
    """

    block_hashes: list[int]
    parent_block_hash: int | None
    token_ids: list[int | tuple[int, int]]
    medium: str | None = None
    lora_name: str | None = None
    cache_salt: str | None = None


class BlockRemoved(msgspec.Struct, tag=True, gc=False):
    block_hashes: list[int]
    medium: str | None = None


class AllBlocksCleared(msgspec.Struct, tag=True, gc=False):
    pass


class Batch(msgspec.Struct, array_like=True, gc=False):
    """`at_s`: the engine's clock, which is the machine's."""

    at_s: float
    events: list[BlockStored | BlockRemoved | AllBlocksCleared]


DECODER = msgspec.msgpack.Decoder(Batch)


@dataclass(frozen=True, slots=True)
class Publisher:
    """Where a rank publishes. `replay` empty: it keeps nothing."""

    endpoint: str
    replay: str
    topic: str


def publishers(info: dict[str, Any]) -> list[Publisher]:
    """Those that /server_info tells of, one a rank. Empty: the engine publishes nothing."""
    told = info.get("kv_events")
    if not isinstance(told, dict) or told.get("publisher") != "zmq":
        return []
    try:
        host = _reachable(str(told["endpoint_host"]))
        port, ranks = int(told["endpoint_port_base"]), int(told["dp_size"])
        replay_port = told.get("replay_endpoint_port_base")
        return [
            Publisher(
                f"tcp://{host}:{port + rank}",
                f"tcp://{host}:{int(replay_port) + rank}" if replay_port else "",
                str(told.get("topic") or ""),
            )
            for rank in range(ranks)
        ]
    except (KeyError, TypeError, ValueError):
        return []


def _reachable(host: str) -> str:
    return {"*": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)


class Follower:
    """Keeps `prefixes` as the engine's cache is. `cleared` is told when it was emptied."""

    def __init__(
        self,
        publisher: Publisher,
        prefixes: Prefixes,
        cleared: Callable[[float], None],
        now: Callable[[], float],
    ) -> None:
        self._publisher = publisher
        self.prefixes = prefixes
        self._cleared = cleared
        self._now = now
        self._next = 0
        self.lost = 0
        """Messages that could not be had again, or not be understood."""

    async def run(self) -> None:
        context = zmq.asyncio.Context()
        try:
            subscriber = _socket(context, zmq.SUB)
            subscriber.subscribe(self._publisher.topic)
            subscriber.connect(self._publisher.endpoint)
            # Subscribed first: what is published during the replay waits in the queue.
            await self._replay(context)
            while True:
                await self._received(context, await subscriber.recv_multipart())
        finally:
            context.destroy(linger=0)

    async def _received(self, context: "zmq.asyncio.Context", frames: list[bytes]) -> None:
        if len(frames) != 3 or len(frames[1]) != 8:
            return
        number = int.from_bytes(frames[1], "big")
        if number > self._next:
            await self._replay(context)
        if number > self._next:  # the engine has not kept it
            self.lost += number - self._next
            self.prefixes.clear()
        if number >= self._next:
            self._apply(number, frames[2])

    async def _replay(self, context: "zmq.asyncio.Context") -> None:
        """All from the next one on that the engine still has."""
        if not self._publisher.replay:
            return
        asker = _socket(context, zmq.DEALER)
        try:
            asker.connect(self._publisher.replay)
            await asker.send_multipart([b"", self._next.to_bytes(8, "big")])
            while True:
                frames = await asyncio.wait_for(asker.recv_multipart(), REPLAY_TIMEOUT_S)
                if len(frames) != 4 or len(frames[2]) != 8:
                    return
                number = int.from_bytes(frames[2], "big", signed=True)
                if number < 0:
                    return
                if number >= self._next:
                    self._apply(number, frames[3])
        except TimeoutError:
            LOG.warning("the engine does not repeat its cache events")
        finally:
            asker.close(linger=0)

    def _apply(self, number: int, payload: bytes) -> None:
        self._next = number + 1
        try:
            batch = DECODER.decode(payload)
        except (msgspec.DecodeError, msgspec.ValidationError):
            self.lost += 1
            return
        for event in batch.events:
            match event:
                case AllBlocksCleared():
                    self.prefixes.clear()
                    self._cleared(batch.at_s)
                case BlockStored() if event.medium in ON_THE_ENGINES_DEVICE:
                    self.prefixes.store(_stored(event), self._now())
                case BlockRemoved() if event.medium in ON_THE_ENGINES_DEVICE:
                    self.prefixes.remove(event.block_hashes)


def _stored(event: BlockStored) -> Stored:
    tokens = [token if isinstance(token, int) else token[0] for token in event.token_ids]
    return Stored(
        event.block_hashes, event.parent_block_hash, tokens, event.lora_name, event.cache_salt
    )


def _socket(context: "zmq.asyncio.Context", kind: int) -> "zmq.asyncio.Socket":
    socket = context.socket(kind)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
    socket.setsockopt(zmq.RCVHWM, QUEUED_MESSAGES)
    return socket
