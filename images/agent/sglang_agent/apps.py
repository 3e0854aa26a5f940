"""HTTP for kubelet, Prometheus and the operator. No answer waits for the engine."""

from dataclasses import asdict
from typing import Any

from aiohttp import web

from sglang_agent import bearer
from sglang_agent.agent import Agent
from sglang_agent.settings import Settings
from sglang_agent.warming.warming import Warming

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


MAX_TOKENS = 2**31 - 1
NOTHING_HOT: dict[str, Any] = {"revision": "", "incarnation": None, "prefixes": []}


def public_app(agent: Agent, settings: Settings, warming: Warming | None = None) -> web.Application:
    """What is served on the port."""

    async def livez(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")  # that it answers is what it says

    async def readyz(_: web.Request) -> web.Response:
        reason = agent.unready()
        return web.Response(text=(reason or "ok") + "\n", status=503 if reason else 200)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=agent.metrics.exposition(), headers={"Content-Type": METRICS_TYPE})

    def denied(request: web.Request) -> web.Response | None:
        match bearer.checked(settings.token_file, request.headers.get("Authorization")):
            case bearer.Answer.ALLOWED:
                return None
            case bearer.Answer.NO_TOKEN:
                problem = (
                    f"there is no token in {settings.token_file}, so nobody is let in: "
                    "mount one, or name its file in SGLANG_AGENT_TOKEN_FILE"
                )
                return web.json_response({"error": problem}, status=503)
            case bearer.Answer.DENIED:
                return web.json_response(
                    {"error": "this needs the header `Authorization: Bearer TOKEN`"},
                    status=401,
                    headers={"WWW-Authenticate": "Bearer"},
                )

    async def status(request: web.Request) -> web.Response:
        return denied(request) or web.json_response(agent.status())

    async def hottest(request: web.Request) -> web.Response:
        if answer := denied(request):
            return answer
        given = request.query.get("max_tokens", "")
        if not (
            given.isascii() and given.isdigit() and len(given) < 11 and 0 < int(given) <= MAX_TOKENS
        ):
            problem = (
                f'max_tokens: got "{given[:20]}"; it is a number from 1 to {MAX_TOKENS}; '
                'write it like "?max_tokens=65536"'
            )
            return web.json_response({"error": problem}, status=400)
        return web.json_response(warming.hottest(int(given)) if warming else NOTHING_HOT)

    agent.metrics.token_present.set_function(lambda: bool(bearer.token_in(settings.token_file)))
    app = web.Application()
    app.router.add_get("/livez", livez, allow_head=False)
    app.router.add_get("/readyz", readyz, allow_head=False)
    app.router.add_get("/metrics", metrics, allow_head=False)
    app.router.add_get("/v1/status", status, allow_head=False)
    app.router.add_get("/v1/prefix/hottest", hottest, allow_head=False)
    return app


def socket_app(agent: Agent) -> web.Application:
    """What is served on the Unix socket, to who can open it: the engine's preStop."""

    async def drain(_: web.Request) -> web.Response:
        return web.json_response(asdict(await agent.drain()))

    app = web.Application()
    app.router.add_post("/v1/drain", drain)
    return app
