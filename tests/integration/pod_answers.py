"""What agents and routers answer, for pods that run nowhere.

All pods of a test run have one address, so every router sees every engine. The shape of the answers
is that of the real ones: tests/unit/agent and tests/integration/test_router.py check those.
"""

import os
from itertools import count
from typing import Self

from aiohttp import web
from aiohttp.typedefs import Handler

from sglang_controllers.names import AGENT_PORT, ENGINE_PORT, ROUTER_LIST_PORT

METRICS = """# TYPE sglang_agent_draining gauge
sglang_agent_draining 0.0
# TYPE sglang_agent_in_flight gauge
sglang_agent_in_flight 0.0
# TYPE sglang_agent_token_present gauge
sglang_agent_token_present 1.0
"""


NUMBERS = count(1)
"""Of those in this process."""


class PodAnswers:
    """Agents' metrics and routers' lists, on a loopback address that no other test run has."""

    def __init__(self) -> None:
        self.more = ""
        """That every agent says."""
        pid = os.getpid()
        self.address = f"127.{1 + pid // 256 % 250}.{pid % 256}.{next(NUMBERS)}"
        self._runners: list[web.AppRunner] = []

    async def __aenter__(self) -> Self:
        await self._serve(AGENT_PORT, "/metrics", self._metrics)
        await self._serve(ROUTER_LIST_PORT, "/workers", self._workers)
        return self

    async def __aexit__(self, *_: object) -> None:
        for runner in self._runners:
            await runner.cleanup()

    async def _serve(self, port: int, path: str, answer: Handler) -> None:
        app = web.Application()
        app.router.add_get(path, answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, self.address, port).start()
        self._runners.append(runner)

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(text=METRICS + self.more)

    async def _workers(self, _: web.Request) -> web.Response:
        url = f"http://{self.address}:{ENGINE_PORT}"
        return web.json_response({"workers": [{"url": url, "healthy": True}]})
