"""An agent's life: look, listen, and leave when told so."""

import asyncio
import logging
import signal
import stat
import time
from pathlib import Path

import aiohttp
from aiohttp import web

from sglang_agent.agent import Agent
from sglang_agent.apps import public_app, socket_app
from sglang_agent.drain import Limits
from sglang_agent.engine import Engine
from sglang_agent.settings import Settings
from sglang_agent.termination_log import TerminationLog
from sglang_agent.warming.warming import Own, Warming
from sglang_agent.watch import ProcessWatch, watch_load, watch_readiness

LOG = logging.getLogger("sglang_agent")

SOCKET_MODE = 0o660
LAST_ANSWERS_S = 0.2
"""For answers that are on their way at the end. Kubernetes stops a sidecar after its engine, so
nobody waits for a drain by then."""


async def run(settings: Settings) -> None:
    """Return after SIGTERM or SIGINT. OSError where the port or the socket cannot be had."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    limits = Limits(settings.reaction_s, settings.drain_timeout_s)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), trust_env=False
    ) as session:
        engine = Engine(session, settings.engine_url)
        warming = _warming(session, settings)
        drained = TerminationLog(settings.termination_log).drained
        agent = Agent(limits, time.monotonic, drained, warming)
        processes = ProcessWatch(agent, settings.engine_port)
        # Before a drain can be asked for: it holds for the engine that is there.
        processes.look()
        public = _runner(public_app(agent, settings, warming))
        private = _runner(socket_app(agent))
        try:
            await _listen(public, private, settings)
            LOG.info("listening on port %d and %s", settings.port, settings.socket)
            await _until(stop, processes, agent, engine, warming)
            LOG.info("stopping")
        finally:
            await asyncio.gather(private.cleanup(), public.cleanup())


async def _listen(public: web.AppRunner, private: web.AppRunner, settings: Settings) -> None:
    # The socket first: an agent that is alive can be asked to drain.
    await private.setup()
    _remove_stale(settings.socket)
    await web.UnixSite(private, str(settings.socket)).start()
    settings.socket.chmod(SOCKET_MODE)
    await public.setup()
    await web.TCPSite(public, None, settings.port).start()


def _warming(session: aiohttp.ClientSession, settings: Settings) -> Warming | None:
    if not settings.warming:
        return None
    own = Own(
        session,
        settings.engine_url,
        settings.port,
        settings.token_file,
        settings.socket.with_name("gate-opened-for"),
    )
    return Warming(settings.warming, own)


async def _until(
    stop: asyncio.Event,
    processes: ProcessWatch,
    agent: Agent,
    engine: Engine,
    warming: Warming | None,
) -> None:
    """Watch until then. A watch that fails ends the agent, for Kubernetes to start it again."""
    async with asyncio.TaskGroup() as watches:
        tasks = [
            watches.create_task(processes.run()),
            watches.create_task(watch_readiness(agent, engine)),
            watches.create_task(watch_load(agent, engine)),
        ]
        if warming:
            tasks.append(watches.create_task(warming.run(agent)))
        await stop.wait()
        for task in tasks:
            task.cancel()


def _runner(app: web.Application) -> web.AppRunner:
    return web.AppRunner(
        app, access_log=None, handle_signals=False, shutdown_timeout=LAST_ANSWERS_S
    )


def _remove_stale(path: Path) -> None:
    """Of an earlier life. Anything else of this name is not ours to remove."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISSOCK(mode):
        path.unlink()
