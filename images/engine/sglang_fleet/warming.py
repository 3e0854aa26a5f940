"""Warms an SGLang server from its own main process, in a thread beside it."""

import asyncio
import logging
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from sglang_warming.engine import HttpEngine
from sglang_warming.loop import Loop, Progress, Source, file_source
from sglang_warming.told import Told

logger = logging.getLogger("sglang_fleet.warming")

LOOK_S = 0.05
"""Between two looks whether the server is idle."""

CALM_LOOKS = 2
REPORT_S = 1.0


@dataclass(frozen=True, slots=True)
class Server:
    """`idle`: takes requests, and has none. `verify`: as `requests` wants it."""

    url: str
    idle: Callable[[], bool]
    api_key: str | None = None
    verify: bool | str = True

    def session(self) -> aiohttp.ClientSession:
        context: ssl.SSLContext | bool = (
            ssl.create_default_context(cafile=self.verify)
            if isinstance(self.verify, str)
            else self.verify
        )
        headers = {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        return aiohttp.ClientSession(
            headers=headers, connector=aiohttp.TCPConnector(ssl=context), trust_env=False
        )


class Warming:
    """Of the prompts in one file, which may be edited."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._loop: Loop | None = None
        self._thread: asyncio.AbstractEventLoop | None = None

    def start(self, server: Server) -> None:
        """Return at once. The thread ends with the process."""
        threading.Thread(
            target=self._run, args=(server,), name="cache-warming", daemon=True
        ).start()

    def renew(self) -> None:
        """The cache was emptied. May be called from any thread."""
        if self._loop and self._thread:
            self._thread.call_soon_threadsafe(self._loop.renew)

    def shown(self) -> dict[str, Any]:
        """How far it is, as /server_info tells it."""
        progress = self._loop.progress if self._loop else Progress()
        return {
            "state": progress.state.value,
            "prompts": progress.total,
            "warmed": progress.warmed,
            "failed": progress.failed,
        }

    def _run(self, server: Server) -> None:
        try:
            asyncio.run(self._warm(server))
        except Exception:
            # The server itself goes on: its answers need no warming.
            logger.exception("cache warming has ended")

    async def _warm(self, server: Server) -> None:
        async with server.session() as session:
            loop = Loop(HttpEngine(session, server.url), lambda: until_idle(server.idle))
            seen = await asyncio.to_thread(stamp_of, self._path)
            # Before it runs: with nothing to do it would say that all is warmed.
            loop.use([self._source()])
            self._loop, self._thread = loop, asyncio.get_running_loop()
            await asyncio.gather(loop.run(), self._look_after(loop, seen))

    def _source(self) -> Source:
        return file_source("file", str(self._path), self._path.name, self._path)

    async def _look_after(self, loop: Loop, seen: tuple[int, int] | None) -> None:
        """Give the loop the file again after each edit, and log how it gets on."""
        told = Told()
        while True:
            if (stamp := await asyncio.to_thread(stamp_of, self._path)) != seen:
                seen = stamp
                loop.use([self._source()])
            for line in told.news(loop.progress):
                logger.info("cache warming: %s", line)
            await asyncio.sleep(REPORT_S)


async def until_idle(idle: Callable[[], bool]) -> None:
    """Return after two looks in a row that saw nothing: between two requests of one user is no idling."""
    calm = 0
    while calm < CALM_LOOKS:
        await asyncio.sleep(LOOK_S)
        calm = calm + 1 if idle() else 0


def stamp_of(path: Path) -> tuple[int, int] | None:
    """Another one after an edit. None: it cannot be read, which the loop will tell."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
