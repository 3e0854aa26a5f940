"""The plugin in a real SGLang: what it patches, what it refuses, and what it warms."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.agent_engine import ROOT, Engine, stream, until_true
from tests.integration.fleet_engine import Parser, installed

EXAMPLE = ROOT / "examples/warmup_prompts.json"
PARSER_ONLY = [
    "sglang.srt.server_args.ServerArgs.add_cli_args",
    "sglang.srt.server_args.ServerArgs.from_cli_args",
]
MODEL = "--model-path=/nowhere"


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("plugin"))


@pytest.fixture(scope="module")
def parser(plugin: Path) -> Iterator[Parser]:
    started = Parser(plugin)
    yield started
    started.end()


def own(patched: list[str]) -> list[str]:
    """Without what the CPU engine's own plugin patches."""
    theirs = ("overrides._attention_backend_platform_fallbacks", "ngram_corpus.load_jit")
    return [target for target in patched if not target.endswith(theirs)]


def test_without_a_flag_only_the_parser_is_patched(parser: Parser) -> None:
    started = parser.start(MODEL)

    assert (started["status"], own(started["patched"])) == (0, PARSER_ONLY)


def test_without_a_flag_any_version_is_taken(parser: Parser) -> None:
    started = parser.start(MODEL, version="0.5.99")

    assert (started["status"], own(started["patched"])) == (0, PARSER_ONLY)


def on_command_line(_: Path) -> tuple[list[str], dict[str, str]]:
    return [f"--cache-warming-prompts={EXAMPLE}"], {}


def in_yaml(folder: Path) -> tuple[list[str], dict[str, str]]:
    config = folder / "config.yaml"
    config.write_text(f"cache-warming-prompts: {EXAMPLE}\n")
    return ["--config", str(config)], {}


def in_environment(_: Path) -> tuple[list[str], dict[str, str]]:
    return [], {"SGLANG_FLEET_CACHE_WARMING_PROMPTS": str(EXAMPLE)}


@pytest.mark.parametrize("way", [on_command_line, in_yaml, in_environment])
def test_the_flag_is_taken_however_it_is_given(parser: Parser, tmp_path: Path, way: Any) -> None:
    arguments, environment = way(tmp_path)

    started = parser.start(MODEL, *arguments, **environment)

    assert started["status"] == 0, started["said"]
    assert set(own(started["patched"])) > set(PARSER_ONLY)
    assert "sglang.srt.entrypoints.http_server._setup_and_run_http_server" in started["patched"]


def test_another_version_is_refused_by_name(parser: Parser) -> None:
    started = parser.start(MODEL, f"--cache-warming-prompts={EXAMPLE}", version="0.5.99")

    assert started["status"] == 2
    assert "is tested with SGLang 0.5.23, and this is 0.5.99" in started["said"]


def test_another_version_is_taken_by_who_wants_to_try_it(parser: Parser) -> None:
    flag = f"--cache-warming-prompts={EXAMPLE}"

    started = parser.start(MODEL, flag, version="0.5.99", SGLANG_FLEET_ALLOW_UNTESTED="1")

    assert started["status"] == 0, started["said"]


def test_a_bad_file_ends_the_start_with_flag_and_fix(parser: Parser, tmp_path: Path) -> None:
    started = parser.start(MODEL, f"--cache-warming-prompts={tmp_path / 'none.json'}")

    assert started["status"] == 2
    last = started["said"].splitlines()[-1]
    assert last == (
        f'error: --cache-warming-prompts: got "{tmp_path / "none.json"}"; it cannot be read '
        "(No such file or directory); name a file of prompts"
    )


@pytest.fixture(scope="module")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example, to be edited."""
    path = tmp_path_factory.mktemp("prompts") / EXAMPLE.name
    path.write_text(EXAMPLE.read_text())
    return path


@pytest.fixture(scope="module")
def warmed(
    plugin: Path, prompts: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    """A server that was started by hand with the example's prompts, and has warmed them."""
    engine = Engine(tmp_path_factory.mktemp("warmed"))
    engine.start(
        f"--cache-warming-prompts={prompts}",
        PYTHONPATH=str(plugin),
        # SGLang checks its memory at rest always, and between batches too with this.
        SGLANG_ENABLE_STRICT_MEM_CHECK_DURING_BUSY="1",
    )
    try:
        asyncio.run(engine.until_ready())
        asyncio.run(until_warmed(engine, rounds=1))
        yield engine
    finally:
        engine.kill()


def rounds_of(engine: Engine) -> int:
    """How often it has said that all is warmed."""
    return engine._log.read_text().count("cache warming: warmed: ")


async def until_warmed(engine: Engine, rounds: int) -> None:
    async def is_warmed() -> bool:
        return rounds_of(engine) == rounds

    await until_true(is_warmed, "the prompts are warmed", 120)


async def shown(engine: Engine) -> dict[str, Any]:
    fleet: dict[str, Any] = (await engine.ask("/server_info"))["sglang_fleet"]
    return fleet


async def test_server_info_shows_the_flag_and_how_far_it_is(warmed: Engine, prompts: Path) -> None:
    assert await shown(warmed) == {
        "cache_warming_prompts": str(prompts),
        "warming": {"state": "warmed", "prompts": 3, "warmed": 3, "failed": 0},
    }


async def test_a_later_request_finds_its_system_prompt_cached(warmed: Engine) -> None:
    system = json.loads(EXAMPLE.read_text())[0]["messages"][0]
    messages = [system, {"role": "user", "content": "What is 2 + 3?"}]
    body = {"messages": messages, "max_tokens": 1, "temperature": 0, "return_meta_info": True}

    answer = await warmed.ask("/v1/chat/completions", body)

    meta = answer["choices"][0]["meta_info"]
    of_system = len(system["content"].encode())  # the model has a token a byte
    assert meta["prompt_tokens"] > of_system
    assert meta["cached_tokens"] >= 0.95 * of_system


async def test_after_a_flush_all_is_warmed_again(warmed: Engine) -> None:
    text = json.loads(EXAMPLE.read_text())[1]["text"]
    before = rounds_of(warmed)

    await warmed.ask("/flush_cache?timeout=30")
    await until_warmed(warmed, before + 1)

    body = {"text": text, "sampling_params": {"max_new_tokens": 1}}
    meta = (await warmed.ask("/generate", body))["meta_info"]
    assert meta["cached_tokens"] >= meta["prompt_tokens"] - 1


def add(prompts: Path, text: str) -> None:
    prompts.write_text(json.dumps([*json.loads(prompts.read_text()), text]))


async def test_a_new_prompt_waits_until_the_server_is_idle(warmed: Engine, prompts: Path) -> None:
    before = rounds_of(warmed)

    async def is_read() -> bool:
        warming = (await shown(warmed))["warming"]
        return (warming["prompts"], warming["warmed"]) == (4, 3)

    async with stream(warmed, tokens=2000) as request:
        add(prompts, "A new prompt.")
        await until_true(is_read, "the edit is noticed")
        for _ in range(100):
            await request.answer.content.readany()
        during = await shown(warmed)
        assert await warmed.held() == 1
        await request.read()
    await until_warmed(warmed, before + 1)

    assert during["warming"] == {"state": "warming", "prompts": 4, "warmed": 3, "failed": 0}
    assert (await shown(warmed))["warming"]["warmed"] == 4


def test_no_prompt_is_in_the_log(warmed: Engine, prompts: Path) -> None:
    logged = warmed._log.read_text()

    for prompt in json.loads(prompts.read_text()):
        for text in texts_of(prompt):
            assert text[:20] not in logged


def texts_of(prompt: Any) -> list[str]:
    if isinstance(prompt, str):
        return [prompt]
    return (
        [prompt["text"]] if "text" in prompt else [each["content"] for each in prompt["messages"]]
    )
