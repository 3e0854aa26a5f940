"""Cold, warmed and peer-warmed, measured on running servers."""

import asyncio
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from sglang_bench.client import Server
from sglang_bench.errors import BenchError
from sglang_bench.progress import Progress
from sglang_bench.rows import Row
from sglang_bench.workload import prompts_of, requests
from sglang_warming.engine import HttpEngine
from sglang_warming.files import Entry
from sglang_warming.loop import Loop, Source, State
from sglang_warming.prompts import Prompt, prompt_of

LOOK_S = 0.1
PATIENCE_S = 60.0
"""With a server that was there a moment ago."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A server with an agent beside it, which tells what is hot there."""

    url: str
    agent_url: str
    token: str
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Options:
    url: str
    prompts: Path
    count: int
    seed: int
    api_key: str
    peer: Peer | None = None


async def measured(options: Options, progress: Progress) -> tuple[list[Row], list[str]]:
    """The rows, and what is to be known about them."""
    prompts, notes = prompts_of(options.prompts)
    headers = {"Authorization": f"Bearer {options.api_key}"} if options.api_key else {}
    async with aiohttp.ClientSession(headers=headers) as session:
        server = Server(session, options.url)
        sent = requests(prompts, options.count, options.seed)
        bodies = [await server.body(prompt) for prompt in sent]
        await server.sample(bodies[0])  # what a process does once is not what is measured
        await server.flush()
        rows = [await _row("cold", server, bodies, progress)]
        await server.flush()
        notes += await warm(server, prompts, "warming", progress)
        rows.append(await _row("warmed", server, bodies, progress))
        if options.peer is None:
            notes.append(
                "peer-warmed is left out; it takes a second server with an agent: --peer-url, "
                "--peer-agent-url and --token-file"
            )
        else:
            hot = await _hot(session, options.peer, prompts, options, progress)
            await server.flush()
            notes += await warm(server, hot, "warming from the peer", progress)
            rows.append(await _row("peer-warmed", server, bodies, progress))
    return rows, notes


async def _row(
    state: str, server: Server, bodies: Sequence[dict[str, Any]], progress: Progress
) -> Row:
    samples = []
    for body in bodies:
        samples.append(await server.sample(body))
        progress.step(state, len(samples), len(bodies))
    return Row(state, tuple(samples))


async def warm(
    server: Server, prompts: Sequence[Prompt], what: str, progress: Progress
) -> list[str]:
    """Warm as agent and plugin do. Returns what could not be."""

    async def idle() -> None:
        """Nobody else asks this server: that it does is the one who measures."""

    def opened() -> Generator[Entry, None, None]:
        yield from enumerate(prompts)

    loop = Loop(HttpEngine(server.session, server.url), idle)
    loop.use([Source("bench", "prompts", "", opened)])
    running = asyncio.create_task(loop.run())
    try:
        waited_s = 0.0
        while not (loop.settled or running.done()):
            await asyncio.sleep(LOOK_S)
            waited_s = waited_s + LOOK_S if loop.progress.state is State.WAITING else 0.0
            if waited_s > PATIENCE_S:
                raise BenchError(f"{server.url}: does not answer for {PATIENCE_S:g} s")
            progress.step(what, loop.progress.warmed + loop.progress.failed, len(prompts))
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    told = [
        f"{what}: prompt {failure.index}: {failure.message}" for failure in loop.progress.failures
    ]
    if loop.progress.state is State.FULL:
        told.append(f"{what}: the cache takes {loop.progress.warmed} of {len(prompts)} prompts")
    return told


async def _hot(
    session: aiohttp.ClientSession,
    peer: Peer,
    prompts: Sequence[Prompt],
    options: Options,
    progress: Progress,
) -> list[Prompt]:
    """The hottest prefixes of a peer that has served other requests with these prompts."""
    server = Server(session, peer.url)
    await server.flush()
    other = requests(prompts, options.count, options.seed + 1)
    await _row(
        "the peer's own requests", server, [await server.body(one) for one in other], progress
    )
    path = f"/v1/prefix/hottest?max_tokens={peer.max_tokens}"
    agent = Server(session, peer.agent_url)
    answer = await agent.answer(path, {"Authorization": f"Bearer {peer.token}"})
    try:
        return [
            prompt_of(
                {
                    "input_ids": prefix["input_ids"],
                    "lora_path": prefix.get("lora_name"),
                    "cache_salt": prefix.get("cache_salt"),
                }
            )
            for prefix in answer["prefixes"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise BenchError(f"{peer.agent_url}{path} is not answered as an agent does") from error
