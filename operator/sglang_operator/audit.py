"""Lists everything from time to time: repairs the cache and proves that watches deliver.

A watch can die in silence, or lose the end of an object when it has to start over. Kopf's own
indices could not be put right from here, which is why the cache is ours.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from sglang_controllers.manifest import Manifest
from sglang_operator.cache import Cache, Key, uid_of, version_of
from sglang_operator.clock import Clock
from sglang_operator.kube import Kube, KubeError, Listing
from sglang_operator.resources import WATCHED, Resource
from sglang_operator.settings import Settings

log = logging.getLogger(__name__)

FIRST_RETRY_S = 2.0
"""Until the first complete audit nothing works, so it is not left to the next resync."""


class Watch(NamedTuple):
    """One stream of events. `namespace` None: of all namespaces."""

    kind: str
    namespace: str | None


class Deliveries:
    """What one watch has delivered, and what it owes.

    A version that one audit saw listed must have been delivered by the next: each audit calls
    `check` with what it lists.
    """

    def __init__(self, started: float) -> None:
        self.proven_at = started
        self._delivered: dict[str, int] = {}
        self._recent: set[str] = set()
        self._owed: dict[str, int] = {}
        self._overdue: dict[str, int] = {}

    def delivered(self, uid: str, version: int) -> None:
        """The watch brought this version of an object."""
        self._delivered[uid] = max(version, self._delivered.get(uid, 0))
        self._recent.add(uid)

    def check(self, listed: dict[str, int], now: float) -> None:
        """Compare with a new listing: versions by uid."""
        # What is gone meanwhile proves nothing: a watch that started over never sees it.
        self._overdue = {
            uid: version
            for uid, version in self._owed.items()
            if uid in listed and self._delivered.get(uid, 0) < version
        }
        if not self._overdue:
            self.proven_at = now
        self._owed = listed
        # What was delivered while the listing was on its way may not be in it yet.
        kept = listed.keys() | self._recent
        self._delivered = {uid: v for uid, v in self._delivered.items() if uid in kept}
        self._recent = set()

    @property
    def stalled(self) -> bool:
        """Something that two audits ago was new has not been delivered yet."""
        return any(self._delivered.get(uid, 0) < v for uid, v in self._overdue.items())


class Audit:
    """`changed` is told every cluster whose known state an audit had to correct."""

    def __init__(
        self,
        kube: Kube,
        cache: Cache,
        settings: Settings,
        clock: Clock,
        changed: Callable[[Key], None],
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._scopes = settings.scopes
        self._period_s = settings.resync_s
        self._clock = clock
        self._changed = changed
        started = clock.monotonic()
        self._watches = {
            Watch(resource.kind, scope): Deliveries(started)
            for resource in WATCHED
            for scope in settings.scopes
        }
        self._told: list[str] = []
        self._unlisted: set[Watch] = set()
        self.synced = asyncio.Event()
        """Every resource has been listed once: the cache can be planned on."""

    def delivered(self, item: Manifest) -> None:
        """A watch brought this object, whatever the event said about it."""
        namespace = item["metadata"]["namespace"] if None not in self._scopes else None
        watch = self._watches.get(Watch(item["kind"], namespace))
        if watch is not None:
            watch.delivered(uid_of(item), version_of(item))

    def stalled(self) -> list[str]:
        """Watches that are alive at most in appearance, by name."""
        return [
            f"{watch.kind} in {watch.namespace or 'all namespaces'}"
            for watch, deliveries in self._watches.items()
            if deliveries.stalled
        ]

    def ages(self) -> dict[tuple[str, str], float]:
        """Seconds since each watch was last proven to deliver, by kind and namespace."""
        now = self._clock.monotonic()
        return {
            (watch.kind, watch.namespace or ""): now - deliveries.proven_at
            for watch, deliveries in self._watches.items()
        }

    async def run(self) -> None:
        """Audit for ever."""
        while True:
            complete = await self.once()
            if complete:
                self.synced.set()
            await asyncio.sleep(self._period_s if self.synced.is_set() else FIRST_RETRY_S)

    async def once(self) -> bool:
        """One audit of everything; whether all of it could be listed."""
        complete = True
        for resource in WATCHED:
            for scope in self._scopes:
                complete = await self._audit(resource, scope) and complete
        stalled = self.stalled()
        if stalled != self._told:
            log.error("watches have stalled: %s", ", ".join(stalled) or "none any more")
            self._told = stalled
        return complete

    async def _audit(self, resource: Resource, scope: str | None) -> bool:
        watch = Watch(resource.kind, scope)
        selector = resource.label_selector
        selectors = {"labelSelector": selector} if selector else {}
        try:
            listing = await self._kube.list_all(resource, scope, selectors=selectors)
        except KubeError as error:
            if watch not in self._unlisted:  # told once, not with every audit
                log.warning("%s not listed: %s", resource.plural, error)
                self._unlisted.add(watch)
            return False
        self._unlisted.discard(watch)
        self._compare(watch, listing)
        return True

    def _compare(self, watch: Watch, listing: Listing) -> None:
        changed = self._cache.repair(watch.kind, watch.namespace, listing.items, listing.version)
        if changed and self.synced.is_set():
            log.info("%s: %d clusters differed from the cache", watch.kind, len(changed))
        for key in sorted(changed):
            self._changed(key)
        versions = {uid_of(item): version_of(item) for item in listing.items}
        self._watches[watch].check(versions, self._clock.monotonic())
