"""When the engine may be given a prompt: it is ready, stays, and owes nobody anything."""

import asyncio
from typing import Protocol

from sglang_agent.engine import Engine

QUIET_LOOKS = 2
PAUSE_S = 0.5


class Sight(Protocol):
    """What is seen of the engine."""

    @property
    def engine_ready(self) -> bool: ...

    @property
    def draining(self) -> bool: ...


async def until_idle(sight: Sight, engine: Engine) -> None:
    """Return when two looks in a row saw nothing in flight.

    The scheduler's own figures come first, as they are cheap. They miss what is being tokenized, or
    is in its first prefill, so the second look counts open requests too.
    """
    quiet = 0
    while quiet < QUIET_LOOKS:
        if sight.engine_ready and not sight.draining:
            load = await engine.load(with_open_requests=quiet > 0)
            if load.in_flight == 0:
                quiet += 1
                continue
        quiet = 0
        await asyncio.sleep(PAUSE_S)
