"""Keeps one engine warm, and tells how far that is."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import aiohttp

from sglang_agent import bearer
from sglang_agent.engine import Engine
from sglang_agent.warming import sources
from sglang_agent.warming.gate import Gate, looked
from sglang_agent.warming.idle import Sight, until_idle
from sglang_agent.warming.kv_events import Follower, Publisher, publishers
from sglang_agent.warming.peers import asked
from sglang_agent.warming.prefixes import Prefix, Prefixes
from sglang_agent.warming.settings import Peers, WarmingSettings
from sglang_warming.engine import GoneError, HttpEngine
from sglang_warming.files import Entry
from sglang_warming.loop import Failure, Loop, Source
from sglang_warming.prompts import Prompt
from sglang_warming.told import Told

LOG = logging.getLogger("sglang_agent")

PERIOD_S = 0.5
VOLUME_PERIOD_S = 1.0
CLAIMS_EVERY = 10
"""Looks at the volume for one at the claims: theirs go over a network."""

WAITING, WARMING, TIMED_OUT = "waiting", "warming", "timed_out"
STATES = (WAITING, WARMING, "warmed", "full", TIMED_OUT)


class Engines(Sight, Protocol):
    """The agent, as warming sees it."""

    @property
    def incarnation(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Own:
    """What of the agent its warming uses.

    `port`: where the agents of peers listen too. `memory`: a file that outlives the agent's process,
    not the pod.
    """

    session: aiohttp.ClientSession
    engine_url: str
    port: int
    token_file: Path
    memory: Path


class Warming:
    def __init__(
        self, settings: WarmingSettings, own: Own, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.settings = settings
        self.skipped: Counter[str] = Counter()
        self.taken_prefixes = self.taken_tokens = 0
        self.volume = sources.Volume()
        self._own = own
        self._now = now
        self._http = HttpEngine(own.session, own.engine_url)
        self._sight: Engines | None = None
        self.loop = Loop(self._http, self._idle, now)
        self._incarnation: str | None = None
        self._gate = Gate(settings.gate_s)
        self._told = Told()
        self._read = self._asked = False
        self._epoch_s = 0.0
        self._claimed: tuple[Source, ...] = ()
        self._from_peers: tuple[Source, ...] = ()
        self._ranks: list[Prefixes] = []
        self._followers: list[Follower] = []

    # What it tells

    @property
    def state(self) -> str:
        if self._incarnation is None:
            return WAITING
        if self._settled:
            return self.loop.progress.state
        if self._gate.timed_out:
            return TIMED_OUT
        return WAITING if self.loop.progress.state == WAITING else WARMING

    @property
    def hit_ratio(self) -> float | None:
        """None where no prompt was sent again yet."""
        tallies = self.loop.tallies
        return tallies.hit_tokens / tallies.repeated_tokens if tallies.repeated_tokens else None

    def unready(self, incarnation: str | None) -> str:
        """Why requests have to wait for this engine, which is ready itself. Empty: they need not."""
        if self.settings.gate_s is None:
            return ""
        if incarnation == self._incarnation and self._gate.open:
            return ""
        progress = self.loop.progress
        return f"warming: {progress.warmed + progress.failed} of {progress.total} prompts"

    def status(self) -> dict[str, Any]:
        progress, tallies = self.loop.progress, self.loop.tallies
        return {
            "state": self.state,
            "timed_out": self._gate.timed_out,
            "sources": self.volume.hash,
            "prompts": {
                "total": progress.total,
                "warmed": progress.warmed,
                "failed": progress.failed,
                "pending": progress.pending,
            },
            "tokens": {"computed": tallies.computed_tokens, "cached": tallies.cached_tokens},
            "seconds": round(tallies.seconds, 3),
            "hit_ratio": self.hit_ratio,
            "failures": [_told(failure) for failure in progress.failures],
            "peers": {
                "prefixes": self.taken_prefixes,
                "tokens": self.taken_tokens,
                "skipped": sum(self.skipped.values()),
            },
            "blocks_known": sum(len(rank) for rank in self._ranks),
            "events_lost": sum(follower.lost for follower in self._followers),
        }

    def hottest(self, max_tokens: int) -> dict[str, Any]:
        """What GET /v1/prefix/hottest answers."""
        now_s = self._now()
        found = [prefix for rank in self._ranks for prefix in rank.hottest(max_tokens, now_s)]
        return {
            "revision": self.settings.revision,
            "incarnation": self._incarnation,
            "prefixes": [_listed(prefix) for prefix in sorted(found, key=lambda each: -each.hits)],
        }

    # What it does

    async def run(self, sight: Engines) -> None:
        self._sight = sight
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.loop.run())
            tasks.create_task(self._watch_sources())
            accompanying: asyncio.Task[None] | None = None
            while True:
                if sight.engine_ready and sight.incarnation != self._incarnation:
                    if accompanying:
                        accompanying.cancel()
                    self._begin(sight.incarnation)
                    accompanying = tasks.create_task(self._accompany())
                if sight.engine_ready:
                    self._look()
                await asyncio.sleep(PERIOD_S)

    def _begin(self, incarnation: str | None) -> None:
        """Another engine is ready, with an empty cache."""
        self._incarnation, self._epoch_s = incarnation, time.time()
        # It may serve already, and only its agent be a new one: then it is not taken out again.
        serves = incarnation is not None and self._remembered() == incarnation
        self._gate = Gate(self.settings.gate_s, opened=serves)
        self._asked = serves or self.settings.peers is None
        self._from_peers, self._ranks, self._followers = (), [], []
        self.loop.renew()
        self._offer()

    def _remembered(self) -> str:
        """The engine whose gate was opened last."""
        try:
            return self._own.memory.read_text()
        except OSError:
            return ""

    def _remember(self, incarnation: str) -> None:
        try:
            self._own.memory.write_text(incarnation)
        except OSError as error:
            LOG.warning(
                "after a restart the agent will close the gate of this engine again",
                extra={"reason": f"{self._own.memory}: {error.strerror}"},
            )

    def _look(self) -> None:
        for line in self._told.news(self.loop.progress):
            LOG.info("warming: %s", line)
        before, self._gate = self._gate, looked(self._gate, self._now(), self._settled)
        if self._gate.opened and not before.opened and self._incarnation:
            self._remember(self._incarnation)
        if self._gate.timed_out and not before.timed_out:
            LOG.warning(
                "the engine is not warm in time, and ready all the same",
                extra={"reason": f"{self.loop.progress.pending} prompts are left"},
            )

    @property
    def _settled(self) -> bool:
        return self._read and self._asked and self.loop.settled

    def _offer(self) -> None:
        # Peers last: what users name is sure to fit.
        self.loop.use((*self.volume.sources, *self._claimed, *self._from_peers))

    async def _idle(self) -> None:
        assert self._sight  # noqa: S101  the loop runs in `run`
        await until_idle(self._sight, Engine(self._own.session, self._own.engine_url))

    async def _watch_sources(self) -> None:
        settings = self.settings
        stamp: object = None
        claims_stamp: object = None
        look = 0
        while True:
            changed = False
            if (now := sources.volume_stamp(settings.folder)) != stamp:
                stamp, changed = now, True
                self.volume = sources.volume(settings.folder)
            if settings.claims and look % CLAIMS_EVERY == 0:
                claimed, now = await asyncio.to_thread(sources.claimed, settings.claims)
                if now != claims_stamp:
                    claims_stamp, changed, self._claimed = now, True, claimed
            if changed and self._incarnation is not None:
                self._offer()
            self._read = True
            look += 1
            await asyncio.sleep(VOLUME_PERIOD_S)

    async def _accompany(self) -> None:
        """While this engine lives: ask its peers once, follow its events."""
        async with asyncio.TaskGroup() as tasks:
            if self.settings.peers:
                tasks.create_task(self._ask_peers(self.settings.peers))
            for publisher in await self._publishers():
                follower = Follower(publisher, Prefixes(), self._cleared, self._now)
                self._ranks.append(follower.prefixes)
                self._followers.append(follower)
                tasks.create_task(follower.run())

    async def _publishers(self) -> list[Publisher]:
        while True:
            try:
                found = publishers(await self._http.info())
            except GoneError:
                await asyncio.sleep(PERIOD_S)
                continue
            if not found:
                LOG.warning("the engine publishes no cache events: a flush goes unnoticed")
            return found

    async def _ask_peers(self, peers: Peers) -> None:
        token = bearer.token_in(self._own.token_file)
        found = await asked(self._own.session, peers, peers.port or self._own.port, token)
        self.skipped += found.skipped
        self.taken_prefixes += len(found.prompts)
        self.taken_tokens += sum(len(prompt.input_ids or ()) for prompt in found.prompts)
        if found.prompts:
            self._from_peers = (_peer_source(found.prompts, peers.max_tokens),)
            self._offer()
        self._asked = True

    def _cleared(self, at_s: float) -> None:
        """The engine has emptied its cache. What it did before it was ready is history."""
        if at_s >= self._epoch_s:
            LOG.info("the engine's cache was emptied: warming again")
            self._epoch_s = time.time()
            self.loop.renew()


def _peer_source(prompts: list[Prompt], max_tokens: int) -> Source:
    def open_() -> Generator[Entry, None, None]:
        yield from enumerate(prompts)

    return Source("peers", "", "", open_, max_tokens)


def _told(failure: Failure) -> dict[str, Any]:
    source = failure.source
    return {
        "configMap": source.name if source.kind == "configMap" else None,
        "claim": source.name if source.kind == "claim" else None,
        "key": source.key,
        "index": failure.index,
        "message": failure.message,
    }


def _listed(prefix: Prefix) -> dict[str, Any]:
    return {
        "input_ids": prefix.input_ids,
        "lora_name": prefix.lora_name,
        "cache_salt": prefix.cache_salt,
        "hits": prefix.hits,
    }
