"""HTTP for kubelet and Prometheus: /healthz, /readyz, /metrics."""

from collections.abc import Awaitable, Callable, Sequence

from aiohttp import web

from sglang_operator.metrics import Metrics

Check = Callable[[], Sequence[str]]
"""What is wrong, in words. Nothing: all is well."""


class HealthServer:
    """Answers 200 when a check finds nothing, 503 with its findings otherwise.

    It shares the event loop with everything else: a loop that hangs fails /healthz by silence.
    """

    def __init__(self, healthy: Check, ready: Check, metrics: Metrics) -> None:
        self._metrics = metrics
        app = web.Application()
        app.router.add_get("/healthz", _answer(healthy))
        app.router.add_get("/readyz", _answer(ready))
        app.router.add_get("/metrics", self._exposition)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False)

    async def start(self, port: int) -> int:
        """Listen, and answer the port: another one than asked for where that was 0."""
        await self._runner.setup()
        # None is every address, of IPv4 and IPv6; each would get a free port of its own.
        host = None if port else "127.0.0.1"
        await web.TCPSite(self._runner, host, port).start()
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        await self._runner.cleanup()

    async def _exposition(self, _: web.Request) -> web.Response:
        headers = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        return web.Response(body=self._metrics.exposition(), headers=headers)


def _answer(check: Check) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(_: web.Request) -> web.StreamResponse:
        findings = check()
        text = "\n".join(findings) if findings else "ok"
        return web.Response(text=text + "\n", status=503 if findings else 200)

    return answer
