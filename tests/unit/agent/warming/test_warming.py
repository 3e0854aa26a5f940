"""An agent's warming with a stand-in for its engine: gate, epochs, what it tells."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sglang_agent.agent import Agent
from sglang_agent.drain import Limits
from sglang_agent.engine import Load
from sglang_agent.warming import warming as module
from sglang_agent.warming.peers import Found
from sglang_agent.warming.settings import Claim, Peers, WarmingSettings
from sglang_agent.warming.warming import Own, Warming
from sglang_warming import loop
from sglang_warming.prompts import Prompt
from tests.unit.agent.warming.volume import ProjectedVolume
from tests.unit.warming.engine import StandIn, refuses


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PERIOD_S", "VOLUME_PERIOD_S"):
        monkeypatch.setattr(module, name, 0.01)
    monkeypatch.setattr(loop, "FIRST_PAUSE_S", 0.01)


async def until(check: Callable[[], object]) -> None:
    end_s = time.monotonic() + 30
    while not check():
        assert time.monotonic() < end_s
        await asyncio.sleep(0.005)


@pytest.fixture(name="volume")
def _volume(tmp_path: Path) -> ProjectedVolume:
    volume = ProjectedVolume(tmp_path / "warming")
    volume.write({"a.jsonl": '"one"\n"two"\n'})
    return volume


@pytest.fixture(name="settings")
def _settings(volume: ProjectedVolume) -> WarmingSettings:
    return WarmingSettings(volume.folder, gate_s=60, revision="rev")


@pytest.fixture(name="engine")
def _engine() -> StandIn:
    return StandIn()


class Pod:
    def __init__(self, agent: Agent, warming: Warming) -> None:
        self.agent, self.warming = agent, warming

    def ready(self, process: str = "first") -> None:
        self.agent.saw_process(process)
        self.agent.saw_ready("")

    async def settled(self) -> None:
        await until(lambda: self.warming.state in ("warmed", "full"))

    async def warmed(self) -> "Pod":
        self.ready()
        await self.settled()
        await until(lambda: not self.agent.unready())
        return self

    @property
    def metrics(self) -> list[str]:
        lines = self.agent.metrics.exposition().decode().splitlines()
        return [line for line in lines if line.startswith("sglang_agent_warming_")]


@asynccontextmanager
async def pod(engine: StandIn, settings: WarmingSettings) -> AsyncIterator[Pod]:
    async with engine.running() as http:
        memory = settings.folder.with_name("gate-opened-for")
        own = Own(http._session, engine.url, 1, Path("/nowhere"), memory)
        warming = Warming(settings, own)
        agent = Agent(Limits(1, 1), time.monotonic, warming=warming)
        agent.saw_load(0, Load(0))
        task = asyncio.create_task(warming.run(agent))
        try:
            yield Pod(agent, warming)
            if task.done():
                await task
        finally:
            task.cancel()
            await asyncio.wait([task])


async def test_requests_wait_until_all_prompts_were_tried(
    engine: StandIn, settings: WarmingSettings
) -> None:
    async with pod(engine, settings) as here:
        assert here.agent.unready() == "the engine has not answered yet"
        here.agent.saw_process("first")
        here.agent.saw_ready("")
        assert here.agent.unready() == "warming: 0 of 0 prompts"
        await until(lambda: not here.agent.unready())

    assert engine.texts == ["one", "two"]


@asynccontextmanager
async def agent_killed(
    settings: WarmingSettings, process: str
) -> AsyncIterator[tuple[Pod, StandIn]]:
    """The next agent of a warm pod beside an engine process that is too busy to be warmed."""
    async with pod(StandIn(), settings) as before:
        await before.warmed()
    busy = StandIn()
    busy.busy = True
    async with pod(busy, settings) as here:
        here.ready(process)
        yield here, busy


async def test_a_new_agent_does_not_take_out_an_engine_that_serves(
    settings: WarmingSettings,
) -> None:
    async with agent_killed(settings, "first") as (here, engine):
        await until(lambda: not here.agent.unready())
        assert here.warming.state != "warmed"
        engine.busy = False
        await here.settled()


async def test_a_new_engine_has_to_be_warm_also_for_a_new_agent(
    settings: WarmingSettings,
) -> None:
    async with agent_killed(settings, "second") as (here, engine):
        await asyncio.sleep(0.2)
        assert here.agent.unready().startswith("warming: ")
        engine.busy = False
        await until(lambda: not here.agent.unready())


async def test_the_log_says_where_a_prompt_failed_and_why_and_not_its_text(
    engine: StandIn,
    settings: WarmingSettings,
    volume: ProjectedVolume,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "sglang_agent")
    volume.write({"a.jsonl": '"one"\n{"massages": "secret"}\n'})
    async with pod(engine, settings) as here:
        await here.warmed()
        await until(lambda: "a.jsonl: entry 1: " in caplog.text)

    assert 'unknown key "massages"' in caplog.text
    assert "secret" not in caplog.text


async def test_without_a_gate_requests_come_at_once(
    engine: StandIn, settings: WarmingSettings
) -> None:
    async with pod(engine, replace(settings, gate_s=None)) as here:
        here.ready()
        assert not here.agent.unready()
        await here.settled()

    assert engine.texts == ["one", "two"]


async def test_a_gate_that_times_out_says_so_and_warming_goes_on(
    engine: StandIn, settings: WarmingSettings
) -> None:
    engine.busy = True
    async with pod(engine, replace(settings, gate_s=0.05)) as here:
        here.ready()
        await until(lambda: not here.agent.unready())
        assert here.warming.state == "timed_out"
        assert 'sglang_agent_warming_state{state="timed_out"} 1.0' in here.metrics
        engine.busy = False
        await here.settled()
        assert here.agent.status()["warming"]["timed_out"]

    assert engine.texts == ["one", "two"]


async def test_an_edit_warms_what_is_new_and_does_not_shut_the_gate(
    engine: StandIn, settings: WarmingSettings, volume: ProjectedVolume
) -> None:
    async with pod(engine, settings) as here:
        await here.warmed()
        volume.write({"a.jsonl": '"one"\n"new"\n"two"\n'}, content_hash="def")
        await until(lambda: "new" in engine.texts)
        assert not here.agent.unready()
        await here.settled()
        assert 'sglang_agent_warming_sources_info{hash="def"} 1.0' in here.metrics

    assert engine.texts == ["one", "two", "new"]


async def test_another_engine_is_warmed_anew_before_requests_come(
    engine: StandIn, settings: WarmingSettings
) -> None:
    async with pod(engine, settings) as here:
        await here.warmed()
        here.agent.saw_process("second")
        here.agent.saw_ready("")
        assert here.agent.unready().startswith("warming: ")
        await until(lambda: not here.agent.unready())

    assert engine.texts == ["one", "two", "one", "two"]


async def test_an_emptied_cache_is_warmed_again_with_the_gate_open(
    engine: StandIn, settings: WarmingSettings
) -> None:
    async with pod(engine, settings) as here:
        await here.warmed()
        here.warming._cleared(time.time() - 60)
        here.warming._cleared(time.time() + 1)
        assert not here.agent.unready()
        await here.settled()

    assert engine.texts == ["one", "two", "one", "two"]


async def test_a_draining_engine_gets_no_prompt(engine: StandIn, settings: WarmingSettings) -> None:
    engine.busy = True
    async with pod(engine, settings) as here:
        here.ready()
        await until(lambda: engine.asked["/v1/loads"])
        drain = asyncio.create_task(here.agent.drain())
        await asyncio.wait_for(here.agent.hurry.wait(), 10)
        engine.busy = False
        await drain
        looks = engine.asked["/v1/loads"]
        await asyncio.sleep(0.1)
        assert engine.asked["/v1/loads"] - looks <= 2

    assert engine.texts == []


async def test_a_request_that_the_scheduler_does_not_hold_yet_counts(
    engine: StandIn, settings: WarmingSettings
) -> None:
    engine.open_requests = 1
    async with pod(engine, settings) as here:
        here.ready()
        await until(lambda: engine.asked["/metrics"] >= 2)
        assert engine.texts == []
        engine.open_requests = 0
        await here.settled()

    assert engine.texts == ["one", "two"]


async def test_claims_are_read_too(
    engine: StandIn, settings: WarmingSettings, tmp_path: Path
) -> None:
    (tmp_path / "set.txt").write_text("three")
    claims = (Claim("data", "set.txt", tmp_path), Claim("data", "gone", tmp_path))
    async with pod(engine, replace(settings, claims=claims)) as here:
        await here.warmed()
        told = here.agent.status()["warming"]["failures"]

    assert engine.texts == ["one", "two", "three"]
    assert [(each["claim"], each["key"], each["configMap"]) for each in told] == [
        ("data", "gone", None)
    ]


async def test_failures_are_told_by_config_map_key_and_index(
    engine: StandIn, settings: WarmingSettings
) -> None:
    engine.fault = refuses("two", message="SECRET")
    async with pod(engine, settings) as here:
        await here.warmed()
        told = here.agent.status()["warming"]
        metrics = here.metrics

    assert told["prompts"] == {"total": 2, "warmed": 1, "failed": 1, "pending": 0}
    assert told["failures"][0] | {"message": ""} == {
        "configMap": "prompts",
        "claim": None,
        "key": "a.jsonl",
        "index": 1,
        "message": "",
    }
    series = '{claim="",config_map="prompts",index="1",key="a.jsonl"} 1.0'
    assert f"sglang_agent_warming_failures{series}" in metrics
    assert "sglang_agent_warming_failures_count 1.0" in metrics
    assert "SECRET" not in str(told) + str(metrics)


async def test_figures_tell_what_was_computed_and_what_was_there(
    engine: StandIn, settings: WarmingSettings
) -> None:
    async with pod(engine, settings) as here:
        await here.warmed()
        here.warming._cleared(time.time() + 1)
        await until(lambda: len(engine.seen) == 4)
        await here.settled()
        metrics = here.metrics

    for line in (
        'sglang_agent_warming_state{state="warmed"} 1.0',
        'sglang_agent_warming_state{state="waiting"} 0.0',
        'sglang_agent_warming_prompts{state="warmed"} 2.0',
        'sglang_agent_warming_tokens_total{kind="computed"} 8.0',
        'sglang_agent_warming_tokens_total{kind="cached"} 4.0',
        'sglang_agent_warming_sources_info{hash="abc"} 1.0',
        'sglang_agent_warming_peers_skipped_total{reason="slow"} 0.0',
    ):
        assert line in metrics
    assert not any("hit_ratio" in line for line in metrics)


async def test_peers_are_asked_before_requests_come(
    engine: StandIn, settings: WarmingSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def asked(*_: Any) -> Any:
        return await answer

    monkeypatch.setattr(module, "asked", asked)
    peers = Peers("peers", 100, "rev", "")
    async with pod(engine, replace(settings, peers=peers)) as here:
        here.ready()
        await until(lambda: engine.texts == ["one", "two"])
        assert here.agent.unready() == "warming: 2 of 2 prompts"
        answer.set_result(Found([Prompt(input_ids=(65, 66))]))
        await until(lambda: not here.agent.unready())
        told = here.agent.status()["warming"]

    assert engine.texts == ["one", "two", "AB"]
    assert told["peers"] == {"prefixes": 1, "tokens": 2, "skipped": 0}
    assert told["prompts"]["total"] == 2


def test_without_warming_nothing_of_it_is_told() -> None:
    agent = Agent(Limits(1, 1), time.monotonic)

    assert agent.status()["warming"] is None
    assert b"warming" not in agent.metrics.exposition()
