"""The loop over HTTP, with a stand-in for the engine."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from sglang_warming import loop as loop_module
from sglang_warming.loop import Entries, Loop, Source, State, file_source
from sglang_warming.prompts import Prompt
from tests.unit.warming.engine import StandIn, refuses


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "FIRST_PAUSE_S", 0.01)


@pytest.fixture(name="engine")
def _engine() -> StandIn:
    return StandIn()


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Gate:
    """Whether the engine is idle."""

    def __init__(self) -> None:
        self.idle = asyncio.Event()
        self.idle.set()
        self.asked = 0

    async def __call__(self) -> None:
        self.asked += 1
        await self.idle.wait()


class Folder:
    """Prompt files, a line each."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def source(self, *prompts: object, name: str = "a.jsonl", most: int | None = None) -> Source:
        file = self._path / name
        file.write_text("".join(json.dumps(prompt) + "\n" for prompt in prompts))
        source = file_source("configMap", "prompts", name, file)
        return Source("peers", "", "", source.open, most) if most is not None else source


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@asynccontextmanager
async def running(engine: StandIn, clock: Clock | None = None) -> AsyncIterator[Loop]:
    async with engine.running() as http:
        loop = Loop(http, Gate(), clock or Clock())
        task = asyncio.create_task(loop.run())
        try:
            yield loop
            if task.done():
                await task
        finally:
            task.cancel()
            await asyncio.wait([task])


async def until(check: Callable[[], object]) -> None:
    end_s = time.monotonic() + 30
    while not check():
        assert time.monotonic() < end_s
        await asyncio.sleep(0.001)


async def settled(loop: Loop) -> None:
    await until(lambda: loop.settled)


async def test_each_prompt_is_prefilled_once_in_its_order(engine: StandIn, folder: Folder) -> None:
    chat = {"messages": [{"role": "system", "content": "chat"}], "lora_path": "legal"}
    async with running(engine) as loop:
        loop.use([folder.source("a", "b", "a"), folder.source([65, 66], chat, name="b.jsonl")])
        await settled(loop)

    assert engine.texts == ["a", "b", "AB", "chat"]
    assert loop.progress.state is State.WARMED
    assert (loop.progress.total, loop.progress.warmed, loop.progress.pending) == (5, 5, 0)
    assert engine.seen[3] | {"messages": 0} == {
        "messages": 0,
        "lora_path": "legal",
        "temperature": 0,
        "max_tokens": 1,
        "return_meta_info": True,
    }
    assert engine.seen[0] == {
        "text": "a",
        "sampling_params": {"temperature": 0, "max_new_tokens": 1},
    }


async def test_nothing_is_asked_without_prompts(engine: StandIn) -> None:
    async with running(engine) as loop:
        await settled(loop)

    assert not engine.asked
    assert not engine.seen


async def test_an_edit_warms_only_new_prompts(engine: StandIn, folder: Folder) -> None:
    async with running(engine) as loop:
        loop.use([folder.source("a", "b")])
        await settled(loop)
        loop.use([folder.source("a", "c", "b")])
        await settled(loop)

    assert engine.texts == ["a", "b", "c"]
    assert loop.progress.warmed == 3


async def test_an_emptied_cache_is_warmed_again(engine: StandIn, folder: Folder) -> None:
    async with running(engine) as loop:
        loop.use([folder.source("a", "b")])
        await settled(loop)
        loop.renew()
        await settled(loop)

    assert engine.texts == ["a", "b", "a", "b"]


async def test_a_prompt_waits_for_an_idle_engine(engine: StandIn, folder: Folder) -> None:
    async with engine.running() as http:
        gate = Gate()
        gate.idle.clear()
        loop = Loop(http, gate)
        task = asyncio.create_task(loop.run())
        loop.use([folder.source("a", "b")])
        await until(lambda: gate.asked)
        assert not engine.seen
        gate.idle.set()
        await settled(loop)
        task.cancel()
        await asyncio.wait([task])

    assert gate.asked == 2


async def test_what_the_engine_refuses_is_told_and_the_others_are_warmed(
    engine: StandIn, folder: Folder
) -> None:
    long = "The input (9 tokens) is longer than the model's context length (8 tokens)."
    engine.fault = refuses("bad", message=long)
    async with running(engine) as loop:
        loop.use([folder.source("a", "bad", 5, "b")])
        await settled(loop)

    assert engine.texts == ["a", "bad", "b"]
    assert (loop.progress.warmed, loop.progress.failed, loop.progress.pending) == (2, 2, 0)
    assert [(f.source.name, f.source.key, f.index, f.message) for f in loop.progress.failures] == [
        ("prompts", "a.jsonl", 1, long.removesuffix(".") + "; shorten it"),
        (
            "prompts",
            "a.jsonl",
            2,
            "entry: got a number; it is a text, a list of token ids or an object; write one of them",
        ),
    ]


@pytest.mark.parametrize(
    ("prompt", "said", "told"),
    [
        ("secret", "cannot do 'secret'", "SGLang answers 400; send it to the engine by hand "),
        (
            {"text": "secret", "lora_path": "legal"},
            "Got LoRA adapter that has never been loaded: legal",
            'lora_path: got "legal"; the engine has no such adapter; ',
        ),
        (
            [115, 101, 99, 114, 101, 116],
            "token_ids_logprob contains out-of-vocabulary token id 116; valid range is [0, 99).",
            "input_ids: got 116; the model's ids are [0, 99); ",
        ),
    ],
)
async def test_a_failure_says_why_and_nothing_of_the_prompt(
    engine: StandIn, folder: Folder, prompt: object, said: str, told: str
) -> None:
    engine.fault = refuses("secret", message=said)
    async with running(engine) as loop:
        loop.use([folder.source(prompt)])
        await settled(loop)

    assert loop.progress.failures[0].message.startswith(told)
    assert "secret" not in loop.progress.failures[0].message


async def test_the_engine_is_shown_the_largest_id_to_look_at(
    engine: StandIn, folder: Folder
) -> None:
    async with running(engine) as loop:
        loop.use([folder.source([70, 90, 80])])
        await settled(loop)

    assert engine.seen[0]["token_ids_logprob"] == [90]


async def test_of_each_source_five_failures_are_told_and_all_are_counted(
    engine: StandIn, folder: Folder
) -> None:
    async with running(engine) as loop:
        loop.use([folder.source(*range(1500), "a"), folder.source(5, name="b.jsonl")])
        await settled(loop)

    assert [failure.index for failure in loop.progress.failures] == [0, 1, 2, 3, 4, 0]
    assert (loop.progress.failed, loop.progress.warmed) == (1501, 1)
    assert (loop.progress.total, loop.progress.pending) == (1502, 0)


async def test_it_stops_before_its_prompts_evict_one_another(
    engine: StandIn, folder: Folder
) -> None:
    engine.capacity = 100
    async with running(engine) as loop:
        loop.use([folder.source("a" * 50, "b" * 30, "c" * 10)])
        await settled(loop)

    assert loop.progress.state is State.FULL
    assert engine.texts == ["a" * 50, "b" * 30]
    assert loop.progress.pending == 1


async def test_prompts_that_nobody_wants_any_more_make_room(
    engine: StandIn, folder: Folder
) -> None:
    engine.capacity = 100
    async with running(engine) as loop:
        loop.use([folder.source("a" * 50, "b" * 30)])
        await settled(loop)
        loop.use([folder.source("b" * 30, "c" * 40)])
        await settled(loop)

    assert loop.progress.state is State.WARMED
    assert engine.texts[-1] == "c" * 40


async def test_a_prompt_that_never_fits_is_told_and_the_others_are_warmed(
    engine: StandIn, folder: Folder
) -> None:
    engine.capacity = 100
    async with running(engine) as loop:
        loop.use([folder.source("a" * 81, "b")])
        await settled(loop)

    assert engine.texts == ["b"]
    assert loop.progress.failures[0].message.startswith("it has 81 tokens; warming takes 80 of ")


async def test_every_rank_is_warmed(engine: StandIn, folder: Folder) -> None:
    engine.ranks = 2
    async with running(engine) as loop:
        loop.use([folder.source("a", "b")])
        await settled(loop)

    assert [(body["text"], body["routed_dp_rank"]) for body in engine.seen] == [
        *(("a", 0), ("a", 1)),
        *(("b", 0), ("b", 1)),
    ]


async def test_an_engine_that_breaks_off_gets_the_prompt_again(
    engine: StandIn, folder: Folder
) -> None:
    engine.broken = 1
    async with running(engine) as loop:
        loop.use([folder.source("a", "b")])
        await settled(loop)

    assert engine.texts == ["a", "a", "b"]
    assert loop.progress.state is State.WARMED


async def test_a_prompt_that_ends_the_engine_twice_is_left_out(
    engine: StandIn, folder: Folder
) -> None:
    engine.fault = refuses("deadly", status=500)
    async with running(engine) as loop:
        loop.use([folder.source("deadly", "a")])
        await settled(loop)
        loop.renew()
        await settled(loop)

    assert engine.texts == ["deadly", "deadly", "a", "a"]
    assert loop.progress.failures[0].message.startswith("the engine failed 2 times over this ")


async def test_an_answer_without_figures_is_not_waited_for_again_and_again(
    engine: StandIn, folder: Folder
) -> None:
    engine.fault = lambda text: web.json_response({}) if text == "odd" else None
    async with running(engine) as loop:
        loop.use([folder.source("odd", "a")])
        await settled(loop)

    assert engine.texts == ["odd", "odd", "a"]
    assert (loop.progress.warmed, loop.progress.failed) == (1, 1)


async def test_an_engine_that_is_gone_is_waited_for(engine: StandIn, folder: Folder) -> None:
    async with engine.running() as http:
        pass
    loop = Loop(http, Gate())
    task = asyncio.create_task(loop.run())
    loop.use([folder.source("a")])

    await until(lambda: loop.progress.state is State.WAITING)

    assert not loop.settled
    task.cancel()
    await asyncio.wait([task])


async def test_a_prompt_is_sent_again_after_its_interval_and_the_hit_is_measured(
    engine: StandIn, folder: Folder
) -> None:
    clock = Clock()
    prompt = {"text": "a" * 10, "repeat_interval": 0.001 + 1}
    async with running(engine, clock) as loop:
        loop.use([folder.source("b", prompt)])
        await settled(loop)
        assert loop.tallies.repeated_tokens == 0
        clock.now_s += 5
        loop.use([folder.source("b", prompt)])  # or it would wait on the real clock
        await settled(loop)
        await until(lambda: loop.tallies.repeated_tokens)

    assert engine.texts == ["b", "a" * 10, "a" * 10]
    assert (loop.tallies.hit_tokens, loop.tallies.repeated_tokens) == (9, 10)
    assert loop.progress.total == 2


async def test_an_edit_of_an_interval_holds_for_a_prompt_that_is_warmed_already(
    engine: StandIn, folder: Folder
) -> None:
    clock = Clock()
    async with running(engine, clock) as loop:
        loop.use([folder.source("a")])
        await settled(loop)
        clock.now_s += 5
        loop.use([folder.source({"text": "a", "repeat_interval": 3}, "a")])
        await settled(loop)
        await until(lambda: loop.tallies.repeated_tokens)
        loop.use([folder.source("a")])
        await settled(loop)
        clock.now_s += 5
        loop.use([folder.source("a", "b")])
        await settled(loop)
        await asyncio.sleep(0.1)

    assert engine.texts == ["a", "a", "b"]


async def test_an_optional_source_has_its_bound_and_is_no_progress(
    engine: StandIn, folder: Folder
) -> None:
    engine.fault = refuses("bad")
    async with running(engine) as loop:
        loop.use(
            [
                folder.source("a"),
                folder.source("bad", "b" * 10, "c" * 10, "d", name="p.jsonl", most=15),
            ]
        )
        await settled(loop)

    assert engine.texts == ["a", "bad", "b" * 10, "c" * 10]
    assert loop.progress.state is State.WARMED
    assert (loop.progress.total, loop.progress.warmed, loop.progress.failed) == (1, 1, 0)


async def test_ten_thousand_prompts_are_read_as_they_are_sent(engine: StandIn) -> None:
    engine.capacity = 10**6
    given: list[int] = []

    def open_() -> Entries:
        given.clear()
        for index in range(10_000):
            given.append(index)
            yield index, Prompt(text=f"prompt {index}")

    async with running(engine) as loop:
        loop.use([Source("configMap", "prompts", "a", open_)])
        await until(lambda: len(engine.seen) >= 100)
        ahead = len(given) - len(engine.seen)
        total, warmed = loop.progress.total, loop.progress.warmed

    assert total == 10_000
    assert 0 <= len(engine.seen) - warmed <= 2
    assert ahead <= 2


async def test_a_file_that_is_gone_is_told(engine: StandIn, tmp_path: Path) -> None:
    async with running(engine) as loop:
        loop.use([file_source("claim", "data", "a.txt", tmp_path / "a.txt")])
        await settled(loop)

    assert loop.progress.failures[0].message == "the file cannot be read: No such file or directory"
