"""Local HTTP servers in the place of agents and routers, each pod at an address of its own."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


def says(body: bytes | str, status: str = "200 OK", *headers: str) -> Answer:
    """A whole answer."""
    content = body.encode() if isinstance(body, str) else body
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(content)}", *headers, "", ""]

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write("\r\n".join(head).encode() + content)
        await writer.drain()

    return answer


def engine(in_flight: int | None = 0, *, token: bool = True, warming: str = "") -> Answer:
    lines = ["sglang_agent_draining 0.0", f"sglang_agent_token_present {float(token)}", warming]
    if in_flight is not None:
        lines.append(f"sglang_agent_in_flight {float(in_flight)}")
    return says("\n".join([*lines, ""]))


def warming(state: str, *, warmed: int = 0, pending: int = 0, tokens: int = 0) -> str:
    """What an agent says of prompts."""
    return (
        f'sglang_agent_warming_state{{state="{state}"}} 1.0\n'
        f'sglang_agent_warming_prompts{{state="warmed"}} {float(warmed)}\n'
        f'sglang_agent_warming_prompts{{state="pending"}} {float(pending)}\n'
        f'sglang_agent_warming_tokens_total{{kind="computed"}} {float(tokens)}\n'
        'sglang_agent_warming_sources_info{hash="abc"} 1.0'
    )


def router(*healthy: str) -> Answer:
    return says(json.dumps({"workers": [{"url": url, "healthy": True} for url in healthy]}))


def raw(content: bytes) -> Answer:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(content)
        await writer.drain()

    return answer


async def hangs(_: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def drips(writer: asyncio.StreamWriter) -> None:
    """An answer that never ends, a byte at a time."""
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b"s")
        await writer.drain()
        await asyncio.sleep(0.05)


@dataclass
class Gate:
    """Holds answers back until it is opened."""

    answer: Answer
    opened: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, writer: asyncio.StreamWriter) -> None:
        await self.opened.wait()
        await self.answer(writer)


@dataclass
class Flood:
    """Writes as long as somebody reads."""

    head: bytes
    block: bytes
    sent: int = 0

    async def __call__(self, writer: asyncio.StreamWriter) -> None:
        writer.write(self.head)
        while True:
            writer.write(self.block)
            await writer.drain()
            self.sent += len(self.block)


class Servers:
    """All pods' servers on one port: what answers is told by the address that was asked."""

    def __init__(self) -> None:
        self.port = 0
        self.answers: dict[str, Answer] = {}
        self.asked: Counter[str] = Counter()
        self.asked_at: list[tuple[str, float]] = []
        self.paths: set[str] = set()
        self.now: Counter[str] = Counter()
        self.most_at_once = 0
        self.most_of_one = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, host: str = "0.0.0.0") -> None:
        self._server = await asyncio.start_server(self._serve, host, 0, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        try:
            await self._answer(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = writer.get_extra_info("sockname")[0]
        request = await reader.readuntil(b"\r\n\r\n")
        self.paths.add(request.split()[1].decode())
        self.asked[address] += 1
        self.asked_at.append((address, time.monotonic()))
        self.now[address] += 1
        self.most_at_once = max(self.most_at_once, self.now.total())
        self.most_of_one = max(self.most_of_one, self.now[address])
        # Who asked and went away is not asking any more, which reading alone tells.
        gone = asyncio.create_task(_end_of(reader))
        answer = asyncio.ensure_future(self.answers[address](writer))
        try:
            await asyncio.wait({gone, answer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.now[address] -= 1
            for task in (gone, answer):
                task.cancel()
            await asyncio.gather(gone, answer, return_exceptions=True)


async def _end_of(reader: asyncio.StreamReader) -> None:
    with suppress(OSError):
        await reader.read()
