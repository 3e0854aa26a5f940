"""Prefills prompts through an engine, one at a time and only while it is idle.

What was warmed is remembered for an epoch, which ends when the engine's cache is emptied. After a
change of the prompts only new ones are sent.
"""

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from sglang_warming.engine import Engine, Facts, GoneError, Prefilled, RefusedError
from sglang_warming.files import Entry, Problem, entries
from sglang_warming.ledger import Ledger
from sglang_warming.prompts import Prompt, identity

T = TypeVar("T")
Entries = Generator[Entry, None, None]

MAX_FAILURES = 20
"""That are kept. All are counted."""

MAX_FAILURES_OF_ONE = 5
"""Of one source, so that a file full of them does not hide what is wrong with others."""

MAX_LOSSES = 2
"""An engine that fails so often over the same prompt is not given it again."""

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 10.0


class State(StrEnum):
    WAITING = "waiting"
    """The engine does not answer."""
    WARMING = "warming"
    WARMED = "warmed"
    """All was tried."""
    FULL = "full"
    """The rest would evict what is warmed."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where prompts are from: a ConfigMap and its key, a claim and its path. `open` reads it anew.

    `at_most_tokens`: what it may make the engine compute; it is then optional, and not part of the
    progress.
    """

    kind: str
    name: str
    key: str
    open: Callable[[], Entries]
    at_most_tokens: int | None = None


def file_source(kind: str, name: str, key: str, path: Path) -> Source:
    return Source(kind, name, key, lambda: _read(key, path))


def _read(name: str, path: Path) -> Entries:
    try:
        with path.open("rb") as stream:
            yield from entries(name, stream)
    except OSError as error:
        yield Problem(None, f"the file cannot be read: {error.strerror}")


@dataclass(frozen=True, slots=True)
class Failure:
    source: Source
    index: int | None
    message: str


@dataclass(slots=True)
class Progress:
    """Of this epoch."""

    state: State = State.WAITING
    total: int = 0
    warmed: int = 0
    failed: int = 0
    failures: list[Failure] = field(default_factory=list)

    @property
    def pending(self) -> int:
        return max(0, self.total - self.warmed - self.failed)

    def fail(self, failure: Failure, count: int = 1) -> None:
        self.failed += count
        same = sum(kept.source is failure.source for kept in self.failures)
        if len(self.failures) < MAX_FAILURES and same < MAX_FAILURES_OF_ONE:
            self.failures.append(failure)


@dataclass(slots=True)
class Tallies:
    """Since the start. `hit_tokens`: those of `repeated_tokens` that were still cached."""

    computed_tokens: int = 0
    cached_tokens: int = 0
    seconds: float = 0.0
    repeated_tokens: int = 0
    hit_tokens: int = 0


class _ChangedError(Exception):
    """What is to be warmed has changed meanwhile."""


class _FullError(Exception):
    """There is no room for another prompt."""


class Loop:
    """`idle` returns when the engine is."""

    def __init__(
        self,
        engine: Engine,
        idle: Callable[[], Awaitable[object]],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.progress = Progress()
        self.tallies = Tallies()
        self._engine = engine
        self._idle = idle
        self._now = now
        self._sources: tuple[Source, ...] = ()
        self._version = 0
        self._settled_version = -1
        self._changed = asyncio.Event()
        self._ledger = Ledger()
        self._losses: dict[str, int] = {}
        self._facts = Facts(1, 0)

    @property
    def settled(self) -> bool:
        """All that is known now was tried."""
        return self._settled_version == self._version

    def use(self, sources: Iterable[Source]) -> None:
        """These are the prompts from now on."""
        self._sources = tuple(sources)
        self._change()

    def renew(self) -> None:
        """The cache is empty: all has to be warmed again."""
        self._ledger.clear()
        self._change()

    def _change(self) -> None:
        self._version += 1
        self._changed.set()

    async def run(self) -> None:
        while True:
            self._changed.clear()
            try:
                await (self._repeat() if self.settled else self._warm())
                await self._pause(self._rest_s())
            except _ChangedError:
                continue

    def _rest_s(self) -> float | None:
        """Until a prompt is due again. Not zero: its file may be gone for a while."""
        due_s = self._ledger.next_due_s()
        return None if due_s is None else max(FIRST_PAUSE_S, due_s - self._now())

    async def _warm(self) -> None:
        """Everything that is new."""
        version = self._version
        progress = self.progress = Progress(State.WARMING)
        known: dict[str, float | None] = {}
        for source in self._sources:
            total = await asyncio.to_thread(_count, source, self._ledger, known)
            progress.total += total if source.at_most_tokens is None else 0
            self._unless_changed(version)
        self._ledger.keep(known)
        if self._sources:
            self._facts = await self._patiently(self._engine.facts)
        progress.state = State.WARMED if await self._fit(progress) else State.FULL
        self._settled_version = version

    async def _fit(self, progress: Progress) -> bool:
        for source in self._sources:
            try:
                if source.at_most_tokens is None:
                    await self._warm_source(source, progress)
                else:
                    await self._take(source, source.at_most_tokens)
            except _FullError:
                return source.at_most_tokens is not None
        return True

    async def _warm_source(self, source: Source, progress: Progress) -> None:
        async with aclosing(self._entries(source)) as found:
            async for entry in found:
                if isinstance(entry, Problem):
                    progress.fail(Failure(source, entry.index, entry.message), entry.count)
                    continue
                try:
                    await self._first_time(entry[1])
                except RefusedError as error:
                    progress.fail(Failure(source, entry[0], str(error)))
                else:
                    progress.warmed += 1

    async def _take(self, source: Source, left_tokens: int) -> None:
        async with aclosing(self._entries(source)) as found:
            async for entry in found:
                if isinstance(entry, Problem):
                    continue
                with suppress(RefusedError):
                    left_tokens -= await self._first_time(entry[1])
                if left_tokens <= 0:
                    return

    async def _first_time(self, prompt: Prompt) -> int:
        """How many tokens a rank had to compute for it."""
        name = identity(prompt)
        computed = 0
        if name not in self._ledger:
            await self._fits(prompt)
            prefilled = await self._on_every_rank(name, prompt)
            computed = max(each.prompt_tokens - each.cached_tokens for each in prefilled)
            self._ledger.add(name, computed, self._now())
        self._ledger.repeat(name, prompt.repeat_interval_s)
        return computed

    async def _fits(self, prompt: Prompt) -> None:
        """_FullError where it would evict others, RefusedError where it never can fit."""
        room = self._ledger.room_tokens(self._facts.capacity_tokens)
        if _at_most_tokens(prompt) <= room:
            return  # most need not be tokenized for that
        tokens = len(prompt.input_ids or ()) or await self._patiently(self._engine.tokens, prompt)
        limit = Ledger().room_tokens(self._facts.capacity_tokens)
        if tokens > limit:
            raise RefusedError(
                f"it has {tokens} tokens; warming takes {limit} of the engine's cache at most; "
                "shorten it, or give the engine a larger cache"
            )
        if tokens > room:
            raise _FullError

    async def _repeat(self) -> None:
        """What is due again."""
        for source in self._sources:
            async with aclosing(self._entries(source)) as found:
                async for entry in found:
                    if isinstance(entry, Problem):
                        continue
                    name = identity(entry[1])
                    if self._ledger.due(name, self._now()):
                        await self._once_more(name, entry[1])

    async def _once_more(self, name: str, prompt: Prompt) -> None:
        self._ledger.sent(name, self._now())
        try:
            prefilled = await self._on_every_rank(name, prompt)
        except RefusedError:
            return  # the next change of the prompts will tell
        self.tallies.repeated_tokens += sum(each.prompt_tokens for each in prefilled)
        self.tallies.hit_tokens += sum(each.cached_tokens for each in prefilled)

    async def _on_every_rank(self, name: str, prompt: Prompt) -> list[Prefilled]:
        ranks = range(self._facts.ranks) if self._facts.ranks > 1 else (None,)
        return [await self._patiently(self._prefilled, name, prompt, rank) for rank in ranks]

    async def _prefilled(self, name: str, prompt: Prompt, rank: int | None) -> Prefilled:
        if self._losses.get(name, 0) >= MAX_LOSSES:
            raise RefusedError(
                f"the engine failed {MAX_LOSSES} times over this prompt; it is not sent again"
            )
        version = self._version
        await self._idle()
        self._unless_changed(version)
        began_s = self._now()
        try:
            prefilled = await self._engine.prefill(prompt, rank)
        except GoneError as error:
            if error.sent:
                self._losses[name] = self._losses.get(name, 0) + 1
            raise
        finally:
            self.tallies.seconds += self._now() - began_s
        self._losses.pop(name, None)
        self.tallies.cached_tokens += prefilled.cached_tokens
        self.tallies.computed_tokens += prefilled.prompt_tokens - prefilled.cached_tokens
        return prefilled

    async def _patiently(self, ask: Callable[..., Awaitable[T]], *arguments: object) -> T:
        """The answer, however long the engine is gone. Another one is another version."""
        version = self._version
        before = self.progress.state
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                answer = await ask(*arguments)
            except GoneError:
                self._unless_changed(version)
                self.progress.state = State.WAITING
                await self._pause(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            else:
                self._unless_changed(version)
                self.progress.state = before
                return answer

    async def _entries(self, source: Source) -> AsyncGenerator[Entry, None]:
        """Read in a thread: a file may be on a slow disk, and an entry has up to 8 MiB."""
        version = self._version
        found = source.open()
        try:
            while (entry := await asyncio.to_thread(next, found, None)) is not None:
                self._unless_changed(version)
                yield entry
        finally:
            with suppress(ValueError):  # the thread is still at it: this task was cancelled
                found.close()

    async def _pause(self, seconds: float | None) -> None:
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return
        raise _ChangedError

    def _unless_changed(self, version: int) -> None:
        if version != self._version:
            raise _ChangedError


def _count(source: Source, ledger: Ledger, known: dict[str, float | None]) -> int:
    """How many entries it has; `known` gets those in the ledger, with how often they are sent."""
    total = 0
    for entry in source.open():
        if isinstance(entry, Problem):
            total += entry.count
            continue
        total += 1
        if (name := identity(entry[1])) in ledger:
            known[name] = _oftener(known.get(name), entry[1].repeat_interval_s)
    return total


def _oftener(one_s: float | None, other_s: float | None) -> float | None:
    return min((each for each in (one_s, other_s) if each is not None), default=None)


def _at_most_tokens(prompt: Prompt) -> float:
    """A bound that needs no tokenizer: it has no token for less than a byte."""
    if prompt.input_ids is not None:
        return len(prompt.input_ids)
    if prompt.text is not None:
        return len(prompt.text.encode()) + 1
    return math.inf  # templates add what they like
