"""A work queue of keys: each at most once in the queue and at most once at work.

Time and chance are passed in. Nothing is lost: a key added while it is at work comes up again
when that work is done.
"""

import asyncio
import heapq
import itertools
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class QueueClosedError(Exception):
    """No more work is given out."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays of a key's repeated failures: doubling from `first_s` to `most_s`.

    `spread` is the share by which chance lengthens one, so that keys which failed together do not
    come back together.
    """

    first_s: float = 1.0
    most_s: float = 60.0
    spread: float = 0.25

    def delay_s(self, failures: int, chance: float) -> float:
        """`failures` counts from 1; `chance` is from 0 to 1."""
        doubled = self.first_s * 2.0 ** min(failures - 1, 32)
        return min(doubled, self.most_s) * (1 + self.spread * chance)


class WorkQueue(Generic[K]):
    """`clock` is monotonic, in seconds; `chance` gives numbers from 0 to 1.

    `waited` is told how long each key was due before it was taken.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        chance: Callable[[], float],
        *,
        backoff: Backoff | None = None,
        waited: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._clock = clock
        self._chance = chance
        self._backoff = backoff or Backoff()
        self._waited = waited
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._order = itertools.count()
        self._running: set[K] = set()
        self._failures: dict[K, int] = {}
        self._sleepers: set[asyncio.Future[None]] = set()
        self._closed = False

    def __len__(self) -> int:
        """Keys due now and not at work."""
        now = self._clock()
        return sum(due <= now and key not in self._running for key, due in self._due.items())

    def add(self, key: K) -> None:
        """Make the key due now."""
        self.add_after(key, 0.0)

    def add_after(self, key: K, delay_s: float) -> None:
        """Make the key due after a delay, unless it is due earlier already."""
        due = self._clock() + delay_s
        if due < self._due.get(key, float("inf")):
            self._schedule(key, due)

    def retry(self, key: K) -> float:
        """Make the key due after its next backoff, which is the answer in seconds."""
        self._failures[key] = self._failures.get(key, 0) + 1
        delay_s = self._backoff.delay_s(self._failures[key], self._chance())
        self.add_after(key, delay_s)
        return delay_s

    def succeeded(self, key: K) -> None:
        """Start the key's backoff over."""
        self._failures.pop(key, None)

    def take(self) -> K | None:
        """The key due longest and not at work; None: there is none now."""
        now = self._clock()
        while self._heap and self._heap[0][0] <= now:
            due, _, key = heapq.heappop(self._heap)
            if self._due.get(key) != due or key in self._running:
                continue  # rescheduled since, or put back by done()
            del self._due[key]
            self._running.add(key)
            self._waited(now - due)
            return key
        return None

    def done(self, key: K) -> None:
        """The work on a key that was taken is over."""
        self._running.discard(key)
        if key in self._due:
            self._schedule(key, self._due[key])

    async def get(self) -> K:
        """Wait for a key; QueueClosedError once the queue is closed."""
        while not self._closed:
            key = self.take()
            if key is not None:
                return key
            await self._sleep()
        raise QueueClosedError

    def close(self) -> None:
        """Give out nothing more. Work that was taken may go on to its end."""
        self._closed = True
        self._wake()

    def _schedule(self, key: K, due: float) -> None:
        self._due[key] = due
        heapq.heappush(self._heap, (due, next(self._order), key))
        self._wake()

    def _wake(self) -> None:
        for sleeper in self._sleepers:
            if not sleeper.done():
                sleeper.set_result(None)

    async def _sleep(self) -> None:
        """Until something is scheduled or the next key is due."""
        loop = asyncio.get_running_loop()
        sleeper: asyncio.Future[None] = loop.create_future()
        self._sleepers.add(sleeper)
        delay_s = max(0.0, self._heap[0][0] - self._clock()) if self._heap else None
        try:
            await asyncio.wait({sleeper}, timeout=delay_s)
        finally:
            self._sleepers.discard(sleeper)
