"""The OpenAPI file against the running apps: every path, every status, every field."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from aiohttp.test_utils import TestClient, TestServer

from sglang_agent.agent import Agent
from sglang_agent.apps import public_app, socket_app
from sglang_agent.drain import Limits
from sglang_agent.engine import Load
from sglang_agent.settings import settings_from
from sglang_agent.warming.prefixes import Prefixes, Stored
from sglang_agent.warming.settings import WarmingSettings
from sglang_agent.warming.warming import Own, Warming
from sglang_warming.loop import Failure, file_source
from tests.unit.agent.schema import problems

ROOT = Path(__file__).parents[3]
API: dict[str, Any] = yaml.safe_load((ROOT / "images/agent/openapi.yaml").read_text())

DOCUMENTED = {
    (method, path, int(status))
    for path, operations in API["paths"].items()
    for method in operations.keys() - {"servers"}
    for status in operations[method]["responses"]
}


def resolved(node: Any) -> Any:
    """The node with what its references point to."""
    if isinstance(node, dict) and "$ref" in node:
        target: Any = API
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return resolved(target)
    if isinstance(node, dict):
        return {key: resolved(value) for key, value in node.items()}
    return node


class Site:
    """Both apps, and which documented answers they have given."""

    def __init__(self, token_file: Path, limits: Limits, warming: Warming | None = None) -> None:
        self.token_file = token_file
        self.agent = Agent(limits, time.monotonic, warming=warming)
        settings = settings_from({"SGLANG_AGENT_TOKEN_FILE": str(token_file)})
        self._apps = (public_app(self.agent, settings, warming), socket_app(self.agent))
        self._clients: dict[str, TestClient[Any, Any]] = {}
        self.seen: set[tuple[str, str, int]] = set()

    async def start(self) -> None:
        for app in self._apps:
            paths = [resource.canonical for resource in app.router.resources()]
            client = TestClient(TestServer(app))
            await client.start_server()
            self._clients |= dict.fromkeys(paths, client)

    async def stop(self) -> None:
        for client in set(self._clients.values()):
            await client.close()

    async def ask(self, method: str, path: str, token: str = "", query: str = "") -> Any:
        """The body, which the file has to describe."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = await self._clients[path].request(method, path + query, headers=headers)
        described = resolved(API["paths"][path][method]["responses"])[str(answer.status)]
        assert answer.content_type in described["content"]
        body = await (answer.json() if "json" in answer.content_type else answer.text())
        assert not problems(body, described["content"][answer.content_type]["schema"])
        self.seen.add((method, path, answer.status))
        return body


@pytest.fixture(name="site")
async def _site(tmp_path: Path) -> AsyncIterator[Site]:
    site = Site(tmp_path / "token", Limits(reaction_s=0, drain_timeout_s=0.2))
    await site.start()
    yield site
    await site.stop()


def test_the_file_has_the_paths_that_are_served(tmp_path: Path) -> None:
    agent = Agent(Limits(0, 0), time.monotonic)
    apps = (public_app(agent, settings_from({})), socket_app(agent))

    served = {
        (route.method.lower(), route.resource.canonical)
        for app in apps
        for route in app.router.routes()
        if route.resource
    }

    assert served == {(method, path) for method, path, _ in DOCUMENTED}


async def test_every_answer_is_as_the_file_says(site: Site) -> None:
    assert await site.ask("get", "/livez") == "ok\n"
    assert await site.ask("get", "/readyz") == "the engine has not answered yet\n"
    assert "no token" in (await site.ask("get", "/v1/status", "sesame"))["error"]
    assert "no token" in (await site.ask("get", "/v1/prefix/hottest", "sesame"))["error"]
    site.token_file.write_text("sesame")
    assert "Bearer" in (await site.ask("get", "/v1/status", "other"))["error"]
    assert (await site.ask("get", "/v1/prefix/hottest", "sesame", "?max_tokens=9"))[
        "prefixes"
    ] == []
    assert "max_tokens" in (await site.ask("get", "/v1/prefix/hottest", "sesame"))["error"]
    assert "Bearer" in (await site.ask("get", "/v1/prefix/hottest", "other"))["error"]
    unseen = await site.ask("get", "/v1/status", "sesame")
    assert (unseen["incarnation"], unseen["in_flight"]) == (None, None)

    site.agent.saw_process("first")
    site.agent.saw_ready("")
    site.agent.saw_load(time.monotonic(), Load(2))
    assert await site.ask("get", "/readyz") == "ok\n"
    serving = await site.ask("get", "/v1/status", "sesame")
    assert (serving["ready"], serving["in_flight"], serving["drain"]) == (True, 2, None)

    drain = asyncio.create_task(site.ask("post", "/v1/drain"))
    await asyncio.wait_for(site.agent.hurry.wait(), 10)
    running = await site.ask("get", "/v1/status", "sesame")
    assert (running["ready"], running["drain"]["outcome"]) == (False, None)
    site.agent.saw_load(time.monotonic(), Load(2))
    assert "in flight: 2" in await site.ask("get", "/readyz")
    assert (await drain)["outcome"] == "cut"
    ended = await site.ask("get", "/v1/status", "sesame")
    assert ended["drain"]["outcome"] == "cut"
    assert "sglang_agent_requests_cut_total 2.0" in await site.ask("get", "/metrics")

    assert site.seen == DOCUMENTED


async def test_what_an_agent_that_warms_tells_is_as_the_file_says(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("sesame")
    async with aiohttp.ClientSession() as session:
        own = Own(session, "http://127.0.0.1:1", 1, tmp_path / "token", tmp_path / "gate")
        warming = Warming(WarmingSettings(tmp_path, revision="rev"), own)
        source = file_source("configMap", "prompts", "a.txt", tmp_path / "a.txt")
        warming.loop.progress.fail(Failure(source, 0, "why"))
        rank = Prefixes()
        rank.store(Stored([1], None, [5], "legal", "tenant"), time.monotonic())
        warming._ranks.append(rank)
        site = Site(tmp_path / "token", Limits(0, 0), warming)
        await site.start()

        told = await site.ask("get", "/v1/status", "sesame")
        hot = await site.ask("get", "/v1/prefix/hottest", "sesame", "?max_tokens=10")
        await site.stop()

    assert told["warming"]["failures"][0]["configMap"] == "prompts"
    assert (hot["revision"], hot["prefixes"][0]["input_ids"]) == ("rev", [5])


@pytest.mark.parametrize("query", ["?max_tokens=0", "?max_tokens=-1", "?max_tokens=99999999999"])
async def test_a_bad_number_of_tokens_is_refused(site: Site, query: str) -> None:
    site.token_file.write_text("sesame")

    answer = await site.ask("get", "/v1/prefix/hottest", "sesame", query)

    assert answer["error"].startswith("max_tokens: got ")


async def test_metrics_say_at_each_scrape_whether_there_is_a_token(site: Site) -> None:
    assert "sglang_agent_token_present 0.0" in await site.ask("get", "/metrics")
    site.token_file.write_text("sesame")
    assert "sglang_agent_token_present 1.0" in await site.ask("get", "/metrics")
    site.token_file.write_text("\n")
    assert "sglang_agent_token_present 0.0" in await site.ask("get", "/metrics")


async def test_a_drain_of_an_engine_that_is_replaced_answers_so(site: Site) -> None:
    site.agent.saw_process("first")
    drain = asyncio.create_task(site.ask("post", "/v1/drain"))
    await asyncio.wait_for(site.agent.hurry.wait(), 10)

    site.agent.saw_process("second")

    assert (await drain)["outcome"] == "restarted"
    assert not site.agent.draining
