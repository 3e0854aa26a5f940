"""An HTTP proxy before the API server that can hold back what watches deliver, or refuse writes."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import yaml
from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

from tests.integration.control_plane import free_port

PASSED_ON = ("Content-Type", "Accept")


class ApiProxy:
    """`kubeconfig` names it to clients; it is who the given configuration is."""

    def __init__(self, configuration: Configuration, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self.broken = False
        """Every request that writes is answered 503."""
        self.writes_refused = 0
        self._configuration = configuration
        self._flowing = asyncio.Event()
        self._flowing.set()

    def freeze(self) -> None:
        """Watches stay open, and deliver nothing any more. New ones too."""
        self._flowing.clear()

    def thaw(self) -> None:
        self._flowing.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["ApiProxy"]:
        context = ssl.create_default_context(cafile=self._configuration.ssl_ca_cert)
        assert self._configuration.cert_file
        context.load_cert_chain(self._configuration.cert_file, self._configuration.key_file)
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        port = free_port()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        self.kubeconfig.write_text(yaml.safe_dump(_kubeconfig(f"http://127.0.0.1:{port}")))
        connector = aiohttp.TCPConnector(ssl=context, limit=0)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
            self._session = session
            try:
                yield self
            finally:
                self.thaw()
                await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if self.broken and request.method != "GET":
            self.writes_refused += 1
            return web.Response(status=503, text="the proxy is told to be broken")
        headers = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
        url = self._configuration.host + request.path_qs
        body = await request.read()
        watch = "watch" in request.query
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.request(
            request.method, url, data=body or None, headers=headers, timeout=timeout
        ) as answer:
            passed = web.StreamResponse(
                status=answer.status, headers={"Content-Type": answer.headers["Content-Type"]}
            )
            await passed.prepare(request)
            async for chunk in answer.content.iter_any():
                if watch:
                    await self._flowing.wait()
                await passed.write(chunk)
            await passed.write_eof()
            return passed


def _kubeconfig(server: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "proxy",
        "clusters": [{"name": "proxy", "cluster": {"server": server}}],
        "users": [{"name": "nobody", "user": {}}],
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "nobody"}}],
    }
