"""The agent, its drain and the preStop beside a real SGLang engine."""

import asyncio
import json
import signal
import stat
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.agent_engine import (
    TOKEN,
    Agent,
    Engine,
    run_script,
    stream,
    until_true,
)
from tests.integration.control_plane import free_port

REACTION_S = 1.0
TIMEOUT_S = 60.0
ENDS_S = 2.5
"""After what it waits for, a drain ends within this: two looks, and a busy machine."""
AFTER_STREAM_S = 2.0
"""SGLang counts a stream as open for so long after its last byte."""


@pytest.fixture(name="engine")
async def _engine(running_engine: Engine) -> Engine:
    """Ready, and without the requests of the test before."""
    await running_engine.until_ready()

    async def idle() -> bool:
        return await running_engine.held() == 0

    await until_true(idle, "the engine is idle")
    return running_engine


@pytest.fixture(name="timeout_s")
def _timeout_s() -> float:
    return TIMEOUT_S


@pytest.fixture(name="agent")
async def _agent(engine: Engine, tmp_path: Path, timeout_s: float) -> AsyncIterator[Agent]:
    agent = Agent(tmp_path, engine.url, REACTION_S, timeout_s)
    await agent.start()
    await agent.until_ready()
    yield agent
    await agent.end()


async def test_a_drain_waits_for_a_stream_and_the_stream_is_whole(
    engine: Engine, agent: Agent
) -> None:
    async with stream(engine, tokens=600) as request:
        drain = await agent.drain()
        await agent.until_ready(503)
        await request.read()

        outcome, took_s = await drain.ended()

    assert outcome == "drain: drained"
    assert drain.began_s + took_s > request.ended_s
    assert drain.began_s + took_s < request.ended_s + AFTER_STREAM_S + ENDS_S
    assert await agent.metric('sglang_agent_drains_total{outcome="drained"}') == 1
    assert await agent.metric("sglang_agent_requests_cut_total") == 0


async def test_a_drain_waits_for_a_client_that_reads_slowly(
    engine: Engine, agent: Agent, tmp_path: Path
) -> None:
    async def generated() -> bool:
        return await engine.held() == 0

    async def waited_for() -> bool:
        return bool((await agent.status())["in_flight"] == 1)

    async with stream(engine, tokens=150, top_logprobs=50) as request:
        await until_true(generated, "all tokens are generated")
        by_agent = await agent.drain()
        by_engine = await run_script(tmp_path / "no.sock", engine.url, REACTION_S, TIMEOUT_S)
        await until_true(waited_for, "the drain sees the unread answer")
        await request.read()

        ends = [await by_agent.ended(), await by_engine.ended()]

    assert {outcome for outcome, _ in ends} == {"drain: drained"}
    assert by_agent.began_s + ends[0][1] > request.ended_s
    assert by_engine.began_s + ends[1][1] > request.ended_s


async def test_a_drain_with_nothing_in_flight_takes_the_reaction_time(agent: Agent) -> None:
    drain = await agent.drain()

    outcome, took_s = await drain.ended()

    assert outcome == "drain: drained"
    assert REACTION_S <= took_s < REACTION_S + ENDS_S
    assert (await agent.get("/readyz"))[0] == 503


@pytest.mark.parametrize("timeout_s", [2.0])
async def test_at_the_time_out_what_is_in_flight_is_cut_and_counted(
    engine: Engine, agent: Agent
) -> None:
    async with stream(engine, tokens=3000), stream(engine, tokens=3000):
        drain = await agent.drain()

        outcome, took_s = await drain.ended()

    assert outcome == "drain: cut"
    assert 2 <= took_s < 2 + ENDS_S
    assert await agent.metric('sglang_agent_drains_total{outcome="cut"}') == 1
    assert await agent.metric("sglang_agent_requests_cut_total") == 2
    drain_told = json.loads(agent.termination_log.read_text())["drain"]
    assert (drain_told["outcome"], drain_told["in_flight"]) == ("cut", 2)


async def test_a_second_request_joins_and_a_caller_may_leave(agent: Agent) -> None:
    first = asyncio.create_task(agent.ask_to_drain())
    await agent.until_ready(503)
    first.cancel()
    await asyncio.wait([first])

    ended = await agent.ask_to_drain()

    assert ended["outcome"] == "drained"
    assert await agent.ask_to_drain() == ended
    assert await agent.metric('sglang_agent_drains_total{outcome="drained"}') == 1


async def test_without_an_agent_the_script_asks_the_engine(engine: Engine, tmp_path: Path) -> None:
    async with stream(engine, tokens=400) as request:
        drain = await run_script(tmp_path / "no.sock", engine.url, REACTION_S, TIMEOUT_S)
        await request.read()

        outcome, took_s = await drain.ended()

    assert outcome == "drain: drained"
    assert drain.began_s + took_s > request.ended_s
    assert drain.began_s + took_s < request.ended_s + AFTER_STREAM_S + ENDS_S


async def test_without_an_agent_the_script_ends_at_the_time_out(
    engine: Engine, tmp_path: Path
) -> None:
    async with stream(engine, tokens=3000):
        drain = await run_script(tmp_path / "no.sock", engine.url, 0, 1.5)

        outcome, took_s = await drain.ended()

    assert outcome == "drain: cut"
    assert 1.5 <= took_s < 1.5 + ENDS_S


async def test_without_agent_and_engine_the_script_ends_at_once(tmp_path: Path) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    drain = await run_script(tmp_path / "no.sock", nowhere, TIMEOUT_S, TIMEOUT_S)

    outcome, took_s = await drain.ended()

    assert outcome == "drain: the engine is gone"
    assert took_s < ENDS_S


async def test_the_script_goes_on_when_the_agent_is_killed(engine: Engine, agent: Agent) -> None:
    async with stream(engine, tokens=600) as request:
        drain = await agent.drain()
        await agent.until_ready(503)
        await agent.end()
        await request.read()

        outcome, took_s = await drain.ended()

    assert outcome == "drain: drained"
    assert drain.began_s + took_s > request.ended_s


@pytest.mark.parametrize("timeout_s", [1.0])
async def test_an_agent_that_hangs_does_not_hold_the_script_up(agent: Agent) -> None:
    assert agent.process
    agent.process.send_signal(signal.SIGSTOP)

    drain = await agent.drain()

    outcome, took_s = await drain.ended()
    assert outcome == "drain: cut"
    assert took_s < 1 + 2 * ENDS_S


async def test_an_agent_that_starts_again_is_ready_within_five_seconds(agent: Agent) -> None:
    before = await agent.status()
    await agent.end()
    assert agent.socket.exists()

    await agent.start()

    await agent.until_ready(timeout_s=5)
    assert (await agent.status())["incarnation"] == before["incarnation"]
    assert (await agent.ask_to_drain())["outcome"] == "drained"


async def test_the_socket_is_for_user_and_group_only(agent: Agent) -> None:
    assert stat.S_IMODE(agent.socket.stat().st_mode) == 0o660


async def test_the_state_is_for_who_has_the_token(agent: Agent) -> None:
    assert (await agent.get("/v1/status"))[0] == 401
    assert (await agent.get("/v1/status", "other"))[0] == 401
    assert (await agent.get("/v1/status", TOKEN))[0] == 200
    assert await agent.metric("sglang_agent_token_present") == 1
    agent.token_file.unlink()
    assert await agent.metric("sglang_agent_token_present") == 0
    assert (await agent.get("/v1/status", TOKEN))[0] == 503
    assert TOKEN not in await agent.end()


async def test_an_engine_that_hangs_does_not_make_the_agent_hang(
    engine: Engine, agent: Agent
) -> None:
    with engine.hung():

        async def unknown() -> bool:
            return (await agent.status())["in_flight"] is None

        await until_true(unknown, "what is in flight is unknown")
        began_s = time.monotonic()
        answers = await asyncio.gather(*(agent.get("/readyz") for _ in range(200)))
        took_s = time.monotonic() - began_s

    assert {status for status, _ in answers} <= {200, 503}
    print(f"200 answers took {took_s:.2f} s, the agent has {agent.memory_mib():.0f} MiB")
    assert took_s < 5
    assert agent.memory_mib() < 80


async def test_the_agent_leaves_within_a_second_even_while_somebody_waits(agent: Agent) -> None:
    waiting = asyncio.create_task(agent.ask_to_drain())
    await agent.until_ready(503)

    began_s = time.monotonic()
    await agent.end(signal.SIGTERM)

    assert time.monotonic() - began_s < 1
    assert agent.process
    assert agent.process.returncode == 0
    await asyncio.wait([waiting])
    assert waiting.exception()


async def test_an_engine_that_starts_again_ends_the_drain_of_the_one_before(
    engine: Engine, agent: Agent
) -> None:
    before = await agent.status()
    async with stream(engine, tokens=3000):
        drain = asyncio.create_task(agent.ask_to_drain())
        await agent.until_ready(503)
        engine.kill()
    engine.start_again()

    ended = await drain
    await agent.until_ready(timeout_s=200)

    after = await agent.status()
    assert ended["outcome"] == "restarted"
    assert (after["draining"], after["drain"]) == (False, None)
    assert after["incarnation"] not in (None, before["incarnation"])
    assert await agent.metric("sglang_agent_incarnation_changes_total") == 1
