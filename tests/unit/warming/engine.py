"""What SGLang 0.5.23 answers, for faults that a real one does not show when asked to.

It caches whole prompts only: a text has a token a character.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

from sglang_warming.engine import HttpEngine

Fault = Callable[[str], web.StreamResponse | None]


class StandIn:
    def __init__(self) -> None:
        self.ranks = 1
        self.capacity = 1000
        self.cached: set[tuple[str, int]] = set()
        self.seen: list[dict[str, Any]] = []
        self.asked: Counter[str] = Counter()
        self.fault: Fault = lambda _: None
        """What is answered to a prompt's text instead."""
        self.broken = 0
        """So many answers to come are cut."""
        self.busy = False
        """Whether it says that a request runs."""
        self.open_requests = 0
        """Those that the scheduler does not hold yet."""
        self.url = ""
        self._app = web.Application()
        self._app.router.add_get("/server_info", self._info)
        self._app.router.add_get("/v1/loads", self._loads)
        self._app.router.add_get("/metrics", self._metrics)
        self._app.router.add_post("/tokenize", self._tokenize)
        self._app.router.add_post("/generate", self._generate)
        self._app.router.add_post("/v1/chat/completions", self._chat)

    @property
    def texts(self) -> list[str]:
        return [_text(body) for body in self.seen]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[HttpEngine]:
        server = TestServer(self._app)
        await server.start_server(shutdown_timeout=0)
        self.url = str(server.make_url("")).rstrip("/")
        try:
            async with aiohttp.ClientSession() as session:
                yield HttpEngine(session, self.url)
        finally:
            await server.close()

    async def _info(self, _: web.Request) -> web.Response:
        self.asked["/server_info"] += 1
        return web.json_response({"dp_size": self.ranks, "max_total_num_tokens": self.capacity})

    async def _loads(self, _: web.Request) -> web.Response:
        self.asked["/v1/loads"] += 1
        now = datetime.now(UTC)
        load = {"num_running_reqs": int(self.busy), "num_waiting_reqs": 0}
        rank = load | {"timestamp": now.timestamp()}
        return web.json_response({"timestamp": now.isoformat(), "loads": [rank]})

    async def _metrics(self, _: web.Request) -> web.Response:
        self.asked["/metrics"] += 1
        active = f'sglang:http_requests_active{{method="POST"}} {self.open_requests}\n'
        return web.Response(text='sglang:http_requests_active{method="GET"} 1\n' + active)

    async def _tokenize(self, request: web.Request) -> web.Response:
        self.asked["/tokenize"] += 1
        count = len(_text(await request.json()))
        return web.json_response({"tokens": [0] * count, "count": count, "max_model_len": 4096})

    async def _generate(self, request: web.Request) -> web.StreamResponse:
        answer = await self._prefilled(request)
        return answer if isinstance(answer, web.StreamResponse) else web.json_response(answer)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        answer = await self._prefilled(request)
        if isinstance(answer, web.StreamResponse):
            return answer
        return web.json_response({"choices": [answer]})

    async def _prefilled(self, request: web.Request) -> web.StreamResponse | dict[str, Any]:
        body = await request.json()
        self.seen.append(body)
        if self.broken:
            self.broken -= 1
            assert request.transport
            request.transport.abort()
            return web.Response()
        text = _text(body)
        if answer := self.fault(text):
            return answer
        key = (text, body.get("routed_dp_rank", 0))
        cached = len(text) - 1 if key in self.cached else 0
        self.cached.add(key)
        return {"meta_info": {"prompt_tokens": len(text), "cached_tokens": cached}}


def refuses(*texts: str, message: str = "no", status: int = 400) -> Fault:
    def fault(text: str) -> web.StreamResponse | None:
        refused = text in texts
        return (
            web.json_response({"error": {"message": message}}, status=status) if refused else None
        )

    return fault


def _text(body: dict[str, Any]) -> str:
    if body.get("messages"):
        return "".join(message["content"] for message in body["messages"])
    if body.get("input_ids"):
        return "".join(chr(number) for number in body["input_ids"])
    return str(body.get("text") or body.get("prompt"))
