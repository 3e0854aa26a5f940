"""An event loop whose time passes only while nothing can run: no test sleeps for real."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class SimulatedLoop(asyncio.SelectorEventLoop):
    """Waits jump: where a real loop would block until a timer, this one moves its clock there."""

    def __init__(self) -> None:
        super().__init__(_Jumping(self))
        self._now = 1000.0

    def time(self) -> float:
        return self._now

    def jump(self, seconds: float) -> None:
        self._now += seconds


class _Jumping(selectors.SelectSelector):
    def __init__(self, loop: SimulatedLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise AssertionError("every task waits for something that nobody will do")
        ready = super().select(0)
        if not ready:
            self._loop.jump(timeout)
        return ready


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in simulated time."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(main)


def now() -> float:
    return asyncio.get_running_loop().time()
