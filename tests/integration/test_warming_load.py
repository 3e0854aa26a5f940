"""What users feel of warming: nothing between the tokens of their answers."""

import asyncio
import itertools
import random
import statistics
import time
from pathlib import Path

import aiohttp
import pytest

from tests.integration.agent_engine import Engine, until_true
from tests.integration.test_agent_warming import agent_of, flush, lines, warming
from tests.unit.agent.warming.volume import ProjectedVolume

TOKENS = 200
PAUSE_S = (1.0, 5.0)
"""Between two requests, so that the engine is idle at times, and its prompts go on. SGLang counts a
stream until 2 s after its end."""

FEW = 2, 2.0
MANY = 5, 1.2
"""Pairs, and by how much the p99 may be worse in the median. That of few is a matter of chance; a
prompt between two tokens would make it ten times worse."""

SECONDS = 10.0
"""Of each measurement. Longer, and all prompts are warmed."""

PROMPTS = [f"{number} times: Answer as a pirate would, in one sentence." for number in range(100)]
WARMED_AT_LEAST = 5


async def stream_gaps_s(client: aiohttp.ClientSession, engine: Engine, text: str) -> list[float]:
    """The time between a request's tokens, the first one's apart."""
    sampling = {"max_new_tokens": TOKENS, "ignore_eos": True, "temperature": 0}
    body = {"text": text, "sampling_params": sampling, "stream": True}
    async with client.post(f"{engine.url}/generate", json=body) as answer:
        at_s = [time.perf_counter() async for line in answer.content if line.startswith(b"data: {")]
    return [later - earlier for earlier, later in itertools.pairwise(at_s)]


async def p99_s(engine: Engine, seconds: float, seed: int) -> float:
    """Of the time between tokens, under the load that this seed makes."""
    end_s = time.monotonic() + seconds
    gaps_s: list[float] = []

    chance = random.Random(seed)
    async with aiohttp.ClientSession() as session:
        while time.monotonic() < end_s:
            await asyncio.sleep(chance.uniform(*PAUSE_S))
            gaps_s += await stream_gaps_s(session, engine, f"{chance.random()}")
    return statistics.quantiles(gaps_s, n=100)[98]


async def measured(engine: Engine, folder: Path, seed: int, prompts: list[str]) -> float:
    """With an agent that has these prompts, all still to be warmed."""
    await flush(engine)
    volume = ProjectedVolume(folder / "warming")
    volume.write({"many.jsonl": lines(*prompts)})
    async with agent_of(engine, volume) as agent:

        async def sees() -> bool:
            return bool((await warming(agent))["sources"])

        await until_true(sees, "the agent sees its prompts")
        before = (await warming(agent))["prompts"]["warmed"]
        found_s = await p99_s(engine, SECONDS, seed)
        after = (await warming(agent))["prompts"]["warmed"]
    assert not prompts or after - before >= WARMED_AT_LEAST, f"{after - before} warmed"
    print(f"{after - before} prompts warmed meanwhile")
    return found_s


@pytest.mark.quiet
@pytest.mark.parametrize(
    ("pairs", "worse_at_most"), [FEW, pytest.param(*MANY, marks=pytest.mark.soak)]
)
async def test_tokens_come_as_fast_as_without(
    running_engine: Engine, tmp_path: Path, pairs: int, worse_at_most: float
) -> None:
    await running_engine.until_ready()
    ratios = []
    for pair in range(pairs):
        took_s = {}
        # In turn: what the machine does beside is then on both sides.
        for warms in (True, False) if pair % 2 else (False, True):
            folder = tmp_path / f"{pair}-{warms}"
            folder.mkdir()
            took_s[warms] = await measured(running_engine, folder, pair, PROMPTS if warms else [])
        ratios.append(took_s[True] / took_s[False])
        print(f"p99 with {1000 * took_s[True]:.1f} ms, without {1000 * took_s[False]:.1f} ms")

    print(f"with by without: {[round(ratio, 3) for ratio in ratios]}")
    assert statistics.median(ratios) <= worse_at_most
