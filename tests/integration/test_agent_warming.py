"""The agent's warming beside a real SGLang engine."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.integration.agent_engine import TOKEN, Agent, Engine, until_true
from tests.unit.agent.warming.volume import ProjectedVolume

SYSTEM = "You are the assistant of a library. Answer in one sentence. " * 8
"""A token a byte, so 480 of them."""

QUESTION = "Where do I find books about the sea?"
CHAT = {"messages": [{"role": "system", "content": SYSTEM.upper()}]}
GATE_S = 120


@pytest.fixture(name="engine")
async def _engine(running_engine: Engine) -> Engine:
    """Ready, idle, and with an empty cache."""
    await running_engine.until_ready()
    await flush(running_engine)
    return running_engine


async def flush(engine: Engine) -> None:
    async def idle() -> bool:
        return await engine.held() == 0

    await until_true(idle, "the engine is idle")
    await engine.ask("/flush_cache?timeout=30")


@pytest.fixture(name="volume")
def _volume(tmp_path: Path) -> ProjectedVolume:
    volume = ProjectedVolume(tmp_path / "warming")
    volume.write({"system.txt": SYSTEM, "chat.json": json.dumps(CHAT)})
    return volume


@asynccontextmanager
async def agent_of(engine: Engine, volume: ProjectedVolume, **more: str) -> AsyncIterator[Agent]:
    settings = {
        "SGLANG_AGENT_WARMING_DIR": str(volume.folder),
        "SGLANG_AGENT_WARMING_GATE_S": str(GATE_S),
        "SGLANG_AGENT_REVISION": "rev",
        **more,
    }
    agent = Agent(volume.folder.parent, engine.url, 1, 60, settings)
    await agent.start()

    async def listens() -> bool:
        return (await agent.get("/livez"))[0] == 200

    try:
        await until_true(listens, "the agent listens")
        yield agent
    finally:
        await agent.end()


@pytest.fixture(name="agent")
async def _agent(engine: Engine, volume: ProjectedVolume) -> AsyncIterator[Agent]:
    """It has warmed its engine."""
    async with agent_of(engine, volume) as agent:
        await agent.until_ready(timeout_s=GATE_S)
        yield agent


async def cached_tokens(engine: Engine, text: str) -> int:
    """Of a prompt, when it is asked for."""
    sampling = {"max_new_tokens": 1, "temperature": 0}
    answer = await engine.ask("/generate", {"text": text, "sampling_params": sampling})
    return int(answer["meta_info"]["cached_tokens"])


async def cached_of_chat(engine: Engine, *messages: dict[str, str]) -> int:
    body = {"messages": messages, "max_tokens": 1, "return_meta_info": True}
    answer = await engine.ask("/v1/chat/completions", body)
    return int(answer["choices"][0]["meta_info"]["cached_tokens"])


async def warming(agent: Agent) -> dict[str, Any]:
    told: dict[str, Any] = (await agent.status())["warming"]
    return told


def has(agent: Agent, **wanted: Any) -> Callable[[], Awaitable[bool]]:
    async def check() -> bool:
        told = await warming(agent)
        return all(told[name] == value for name, value in wanted.items())

    return check


def warmed(agent: Agent, count: int) -> Callable[[], Awaitable[bool]]:
    async def check() -> bool:
        return bool((await warming(agent))["prompts"]["warmed"] >= count)

    return check


def many(count: int) -> list[str]:
    return [f"{number} times: {SYSTEM}" for number in range(count)]


def lines(*entries: object) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)


async def test_without_warming_the_first_request_hits_nothing(engine: Engine) -> None:
    assert await cached_tokens(engine, SYSTEM + QUESTION) == 0


async def test_the_first_request_hits_a_warmed_system_prompt(engine: Engine, agent: Agent) -> None:
    hit = await cached_tokens(engine, SYSTEM + QUESTION)
    chat = await cached_of_chat(engine, *CHAT["messages"], {"role": "user", "content": QUESTION})

    assert hit >= 0.95 * len(SYSTEM)
    assert chat >= 0.95 * len(SYSTEM)
    assert (await warming(agent))["prompts"] == {
        "total": 2,
        "warmed": 2,
        "failed": 0,
        "pending": 0,
    }


async def test_a_flushed_cache_is_warmed_again_and_the_pod_stays_ready(
    engine: Engine, agent: Agent
) -> None:
    before = (await warming(agent))["tokens"]["computed"]

    await flush(engine)

    async def again() -> bool:
        assert (await agent.get("/readyz"))[0] == 200
        return bool((await warming(agent))["tokens"]["computed"] == 2 * before)

    await until_true(again, "all is warmed again")
    assert await cached_tokens(engine, SYSTEM + QUESTION) >= 0.95 * len(SYSTEM)


async def test_an_edit_warms_only_new_prompts_within_seconds(
    engine: Engine, agent: Agent, volume: ProjectedVolume
) -> None:
    before = await warming(agent)
    new = "Answer like a pirate. " * 10

    began_s = time.monotonic()
    volume.write({"system.txt": SYSTEM, "new.txt": new}, content_hash="def")
    await until_true(has(agent, sources="def", state="warmed"), "the edit is warmed")
    took_s = time.monotonic() - began_s

    after = await warming(agent)
    assert after["tokens"]["computed"] - before["tokens"]["computed"] == len(new)
    assert after["prompts"]["total"] == 2
    assert await cached_tokens(engine, new + QUESTION) >= 0.95 * len(new)
    assert took_s < 10


async def test_a_prompt_that_is_sent_again_tells_how_much_of_it_is_hit(
    agent: Agent, volume: ProjectedVolume
) -> None:
    volume.write({"a.json": json.dumps({"text": SYSTEM, "repeat_interval": "2s"})}, "def")

    async def measured() -> bool:
        return (await warming(agent))["hit_ratio"] is not None

    await until_true(measured, "the prompt is sent again")
    assert await agent.metric("sglang_agent_warming_hit_ratio") >= 0.95


async def test_what_the_engine_does_not_take_is_told_and_the_others_are_warmed(
    engine: Engine, volume: ProjectedVolume
) -> None:
    entries = (
        {"text": "x" * 5000},
        {"text": "secret", "lora_path": "legal"},
        {"input_ids": [1, 99999]},
        {"messages": [{"role": "secret", "content": 5}]},
        {"text": SYSTEM},
    )
    volume.write({"a.jsonl": lines(*entries) + "{"})

    async with agent_of(engine, volume) as agent:
        await agent.until_ready(timeout_s=GATE_S)
        told = await warming(agent)
        logged = await agent.end()

    assert told["prompts"] == {"total": 6, "warmed": 1, "failed": 5, "pending": 0}
    messages = {each["index"]: each["message"] for each in told["failures"]}
    assert "longer than the model's context length" in messages[0]
    assert messages[1].startswith('lora_path: got "legal"')
    assert messages[2].startswith("input_ids: got 99999; the model's ids are [0, 257)")
    assert messages[5].startswith("not JSON")
    said = json.dumps(told) + logged
    assert "secret" not in said
    assert SYSTEM[:20] not in said
    assert await cached_tokens(engine, SYSTEM) >= 0.95 * len(SYSTEM)


async def test_ten_thousand_prompts_take_little_memory_and_never_evict_one_another(
    engine: Engine, volume: ProjectedVolume
) -> None:
    prompts = many(10_000)
    volume.write({"a.jsonl": lines(*prompts)})

    async with agent_of(engine, volume) as agent:
        await until_true(has(agent, state="full"), "the cache is full", GATE_S)
        told = (await warming(agent))["prompts"]
        memory_mib = agent.memory_mib()
        hits = [await cached_tokens(engine, prompt) for prompt in prompts[: told["warmed"]]]

    print(f"{told}, the agent has {memory_mib:.0f} MiB")
    assert told["total"] == 10_000
    assert told["warmed"] >= 10
    assert min(hits) >= 0.95 * len(SYSTEM)
    assert memory_mib < 80


async def test_no_prompt_is_sent_while_a_request_runs(
    engine: Engine, agent: Agent, volume: ProjectedVolume
) -> None:
    sampling = {"max_new_tokens": 1500, "ignore_eos": True, "temperature": 0}
    request = asyncio.create_task(
        engine.ask("/generate", {"text": "hello", "sampling_params": sampling})
    )

    async def runs() -> bool:
        return await engine.held() == 1

    await until_true(runs, "the request runs")
    before = (await warming(agent))["tokens"]
    volume.write({"new.txt": "Answer like a pirate. " * 10}, content_hash="def")
    await until_true(has(agent, sources="def"), "the edit is seen")
    looks = 0
    while not request.done():
        assert (await warming(agent))["tokens"] == before
        looks += 1
        await asyncio.sleep(0.1)

    await request
    assert looks > 5
    await until_true(has(agent, state="warmed"), "the edit is warmed")


async def test_answers_are_those_of_a_cold_engine(engine: Engine, agent: Agent) -> None:
    texts = [SYSTEM + QUESTION, SYSTEM + "Who are you?", SYSTEM[:200], "Something else."]
    warm = [await answered(engine, text) for text in texts]
    await agent.end()

    assert warm[0]["cached_tokens"] >= 0.95 * len(SYSTEM)
    for text, answer in zip(texts, warm, strict=True):
        await flush(engine)
        assert_same(answer, await answered(engine, text))


async def answered(engine: Engine, text: str) -> dict[str, Any]:
    sampling = {"max_new_tokens": 64, "temperature": 0, "ignore_eos": True}
    body = {"text": text, "sampling_params": sampling}
    answer = await engine.ask("/generate", body | {"return_logprob": True, "top_logprobs_num": 2})
    meta: dict[str, Any] = answer["meta_info"]
    return meta


def assert_same(warm: dict[str, Any], cold: dict[str, Any]) -> None:
    """Prefill after a cached prefix has other shapes: where two tokens tie, either may come."""
    pairs = zip(warm["output_token_logprobs"], cold["output_token_logprobs"], strict=True)
    for step, (one, other) in enumerate(pairs):
        if one[1] != other[1]:
            first, second = cold["output_top_logprobs"][step]
            assert first[0] - second[0] < 1e-3
            return


@asynccontextmanager
async def peer(answer: Callable[[], Awaitable[Any]]) -> AsyncIterator[dict[str, str]]:
    """The settings with which an agent asks it."""

    async def handle(request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        return web.json_response(await answer())

    app = web.Application()
    app.router.add_get("/v1/prefix/hottest", handle)
    server = TestServer(app)
    await server.start_server(shutdown_timeout=0)
    try:
        yield {
            "SGLANG_AGENT_PEERS_SERVICE": f"127.0.0.1:{server.port}",
            "SGLANG_AGENT_PEERS_MAX_TOKENS": "4096",
        }
    finally:
        await server.close()


async def test_a_new_engine_hits_what_its_peer_hits(
    engine: Engine, volume: ProjectedVolume
) -> None:
    requests = [f"{SYSTEM}Question {number}: {QUESTION * 2}" for number in range(20)]
    volume.write({})
    async with agent_of(engine, volume) as old:
        await old.until_ready(timeout_s=GATE_S)
        for text in requests:
            await cached_tokens(engine, text)
        hits = sum([await cached_tokens(engine, text) for text in requests])

        async def known() -> bool:
            return bool((await warming(old))["blocks_known"] >= 20 * 2 * len(QUESTION))

        await until_true(known, "the cache's blocks are known")
        code, said = await old.get("/v1/prefix/hottest?max_tokens=4096", TOKEN)
    assert code == 200
    await flush(engine)
    old.forget_engine()  # and so it is a new one

    async def recorded() -> Any:
        return json.loads(said)

    async with peer(recorded) as settings, agent_of(engine, volume, **settings) as new:
        await new.until_ready(timeout_s=GATE_S)
        told = (await warming(new))["peers"]
        again = sum([await cached_tokens(engine, text) for text in requests])

    print(f"the old engine hits {hits} tokens, the new one {again}; {told}")
    assert again >= 0.9 * hits


async def test_a_peer_that_says_nothing_does_not_hold_a_pod_up(
    engine: Engine, volume: ProjectedVolume
) -> None:
    volume.write({})

    async def hangs() -> Any:
        await asyncio.sleep(60)

    async with peer(hangs) as settings, agent_of(engine, volume, **settings) as agent:
        await agent.until_ready(timeout_s=10)
        assert await agent.metric('sglang_agent_warming_peers_skipped_total{reason="slow"}') == 1


async def test_an_agent_that_is_killed_midway_goes_on(
    engine: Engine, volume: ProjectedVolume
) -> None:
    volume.write({"a.jsonl": lines(*many(12))})
    async with agent_of(engine, volume) as agent:
        await until_true(warmed(agent, 3), "some are warmed", GATE_S)
        await agent.end()
        await agent.start()
        await agent.until_ready(timeout_s=GATE_S)
        told = await warming(agent)

    assert told["prompts"]["warmed"] == 12
    assert told["tokens"]["cached"] >= 3 * 0.9 * len(SYSTEM)


async def test_an_engine_that_is_killed_midway_is_warmed_when_it_is_back(
    engine: Engine, volume: ProjectedVolume
) -> None:
    prompts = many(12)
    volume.write({"a.jsonl": lines(*prompts)})
    async with agent_of(engine, volume) as agent:
        await until_true(warmed(agent, 3), "some are warmed", GATE_S)
        engine.kill()
        await agent.until_ready(503)
        engine.start_again()
        await agent.until_ready(timeout_s=300)

        assert (await warming(agent))["prompts"]["warmed"] == 12
        assert await cached_tokens(engine, prompts[0]) >= 0.95 * len(SYSTEM)
