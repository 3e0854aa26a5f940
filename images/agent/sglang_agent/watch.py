"""Looks at the engine, over and over: its process, whether it is ready, what is in flight.

Each has a loop of its own: an engine that hangs holds an answer back for 25 s, and the agent must
see a restart or answer a probe meanwhile.
"""

import asyncio
import time

from sglang_agent.agent import Agent
from sglang_agent.engine import Engine, EngineError, RefusedError
from sglang_agent.incarnation import Process, engine_process, process_id

PERIOD_S = 1.0
DRAIN_PERIOD_S = 0.5
"""While a drain runs, so that it ends within a second after the last request."""


class ProcessWatch:
    """Looks at /proc. `look` does not wait, so that it can run before anything is served."""

    def __init__(self, agent: Agent, port: int) -> None:
        self._agent = agent
        self._port = port
        self._known: Process | None = None

    def look(self) -> None:
        self._known = engine_process(self._port, self._known)
        if self._known:
            self._agent.saw_process(process_id(self._known))

    async def run(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(PERIOD_S)


async def watch_readiness(agent: Agent, engine: Engine) -> None:
    while True:
        problem = ""
        reachable = True
        try:
            await engine.ready()
        except EngineError as error:
            problem = str(error)
            reachable = not isinstance(error, RefusedError)
        agent.saw_reachable(reachable)
        agent.saw_ready(problem)
        await asyncio.sleep(PERIOD_S)


async def watch_load(agent: Agent, engine: Engine) -> None:
    while True:
        agent.hurry.clear()
        began_s = time.monotonic()
        agent.saw_load(began_s, await engine.load(with_open_requests=agent.draining))
        period_s = DRAIN_PERIOD_S if agent.draining else PERIOD_S
        try:
            await asyncio.wait_for(agent.hurry.wait(), period_s)
        except TimeoutError:
            continue
