"""Peers as they should be, and as they should not."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer, unused_port
from hypothesis import given
from hypothesis import strategies as st

from sglang_agent.warming import peers as module
from sglang_agent.warming.peers import REASONS, Found, SkippedError, asked, understood
from sglang_agent.warming.settings import Peers
from sglang_warming.prompts import Prompt

ASKING = Peers("peers", 100, "rev", "127.0.0.9")

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def prefix(*ids: int, hits: Any = 1.0, **more: Any) -> dict[str, Any]:
    return {"input_ids": list(ids), "lora_name": None, "cache_salt": None, "hits": hits} | more


def body(*prefixes: Any, revision: str = "rev") -> dict[str, Any]:
    return {"revision": revision, "incarnation": "one", "prefixes": list(prefixes)}


def answering(data: Any, status: int = 200) -> Answer:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response(data, status=status)

    return answer


async def silent(_: web.Request) -> web.Response:
    await asyncio.sleep(60)
    return web.Response()


async def trickling(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    for _ in range(600):
        await answer.write(b" ")
        await asyncio.sleep(0.1)
    return answer


async def endless(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    for _ in range(1000):
        await answer.write(b" " * 2**16)
    return answer


async def cut(request: web.Request) -> web.StreamResponse:
    assert request.transport
    request.transport.abort()
    return web.Response()


@asynccontextmanager
async def peers(
    monkeypatch: pytest.MonkeyPatch, *answers: Answer
) -> AsyncIterator[Callable[[], Awaitable[Found]]]:
    """Each listens at an address of its own, all at the same port."""
    port = unused_port()
    addresses = [f"127.0.0.{number + 1}" for number in range(len(answers))]

    async def found(_: Peers, __: int) -> list[str]:
        return addresses

    monkeypatch.setattr(module, "_addresses", found)
    async with AsyncExitStack() as stack:
        for address, answer in zip(addresses, answers, strict=True):
            app = web.Application()
            app.router.add_get("/v1/prefix/hottest", answer)
            server = TestServer(app, host=address, port=port)
            await server.start_server(shutdown_timeout=0)
            stack.push_async_callback(server.close)
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield lambda: asked(session, ASKING, port, b"sesame")


async def test_the_hottest_of_all_peers_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str | None]] = []

    async def first(request: web.Request) -> web.Response:
        seen.append((request.query_string, request.headers.get("Authorization")))
        return web.json_response(body(prefix(1, 2, hits=5), prefix(3, lora_name="legal", hits=1)))

    second = answering(body(prefix(4, cache_salt="tenant", hits=9), prefix(1, 2, hits=2)))
    async with peers(monkeypatch, first, second) as ask:
        found = await ask()

    assert found.prompts == [
        Prompt(input_ids=(4,), cache_salt="tenant"),
        Prompt(input_ids=(1, 2)),
        Prompt(input_ids=(3,), lora_path="legal"),
    ]
    assert seen == [("max_tokens=100", "Bearer sesame")]
    assert not found.skipped


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(silent, "slow", id="says nothing"),
        pytest.param(trickling, "slow", id="never ends"),
        pytest.param(endless, "too_large", id="says too much"),
        pytest.param(cut, "down", id="breaks off"),
        pytest.param(answering({}, 401), "refused", id="does not know the token"),
        pytest.param(answering({}, 302), "refused", id="points elsewhere"),
        pytest.param(answering([]), "malformed", id="no object"),
        pytest.param(answering(body(prefix())), "malformed", id="no ids"),
        pytest.param(answering(body(prefix(-1))), "malformed", id="ids out of range"),
        pytest.param(answering(body(prefix(2**31))), "malformed", id="ids too large"),
        pytest.param(answering(body(prefix(1, hits="many"))), "malformed", id="hits are text"),
        pytest.param(answering(body(prefix(1, hits=10**400))), "malformed", id="hits are endless"),
        pytest.param(answering(body(prefix(1, hits=True))), "malformed", id="hits are true"),
        pytest.param(answering(body(prefix(1, lora_name=5))), "malformed", id="a name is a number"),
        pytest.param(answering(body(prefix(1), revision="b")), "other_revision", id="another one"),
        pytest.param(answering(body(prefix(*range(801)))), "too_large", id="more than asked for"),
    ],
)
async def test_a_bad_peer_is_skipped_within_two_seconds_and_a_good_one_is_heard(
    monkeypatch: pytest.MonkeyPatch, answer: Answer, reason: str
) -> None:
    async with peers(monkeypatch, answer, answering(body(prefix(7)))) as ask:
        began_s = time.monotonic()
        found = await ask()
        took_s = time.monotonic() - began_s

    assert found.prompts == [Prompt(input_ids=(7,))]
    assert found.skipped == {reason: 1}
    assert took_s < module.ANSWER_S + 2


async def test_a_peer_that_is_gone_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    async def gone(_: Peers, __: int) -> list[str]:
        return ["127.0.0.1"]

    monkeypatch.setattr(module, "_addresses", gone)
    async with aiohttp.ClientSession() as session:
        found = await asked(session, ASKING, unused_port(), b"")

    assert found.skipped == {"down": 1}


async def test_the_own_address_and_an_unknown_name_are_nobody() -> None:
    port = unused_port()
    async with aiohttp.ClientSession() as session:
        alone = await asked(session, Peers("127.0.0.1", 9, "rev", "127.0.0.1"), port, b"")
        nobody = await asked(session, Peers("peers.invalid", 9, "rev", ""), port, b"")

    assert (alone.prompts, alone.skipped) == ([], {})
    assert nobody.prompts == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(
                ["revision", "prefixes", "input_ids", "hits", "lora_name", "cache_salt"]
            ),
            inner,
        )
    ),
)


@given(data=st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_answer_is_understood_or_skipped(data: bytes) -> None:
    outcome = "used"
    try:
        understood(data, ASKING)
    except SkippedError as skipped:
        outcome = skipped.reason

    assert outcome in ("used", *REASONS)
