"""Cache -> Snapshot: everything the planner may know at one moment."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sglang_controllers.images import Images
from sglang_controllers.manifest import Manifest, ObjectKey
from sglang_controllers.pods import is_over, is_ready
from sglang_controllers.reports import Drain
from sglang_controllers.snapshot import Snapshot, WriteError
from sglang_controllers.warming.sources import is_warming, named_config_maps
from sglang_operator.cache import Cache, Key, uid_of
from sglang_operator.clock import Clock
from sglang_operator.kube import Kube, KubeError
from sglang_operator.polls import Polls
from sglang_operator.resources import CORE_EVENTS
from sglang_operator.sources import Sources
from sglang_operator.targets import is_router

log = logging.getLogger(__name__)

QUIET_S = 5.0
"""A pod younger than this has no Warning worth a request yet."""

PODS_ASKED = 8
"""Per run, oldest first. One pod's events tell a fault that all share."""

FRESH_S = 5.0
"""For this long the events of a pod are not asked for again."""

CUTS_KEPT = 100
"""Per cluster, of drains that nobody was told of yet."""

_KEPT = (
    "type",
    "reason",
    "message",
    "note",
    "count",
    "series",
    "firstTimestamp",
    "lastTimestamp",
    "eventTime",
    "reportingComponent",
    "source",
)


@dataclass(frozen=True, slots=True)
class _Asked:
    at: datetime
    events: tuple[Manifest, ...]
    failed: bool = False


class Observer:
    """Remembers the events of unready pods for a few seconds; all else comes from the cache."""

    def __init__(  # noqa: PLR0913, PLR0917  all that a snapshot is made of
        self,
        kube: Kube,
        cache: Cache,
        clock: Clock,
        polls: Polls,
        sources: Sources,
        images: Images,
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._clock = clock
        self._polls = polls
        self._sources = sources
        self._images = images
        self._cuts: dict[Key, list[Drain]] = {}
        self._asked: dict[Key, dict[str, _Asked]] = {}

    async def observe(self, key: Key, errors: Mapping[ObjectKey, WriteError]) -> Snapshot | None:
        """The cluster as known now; None: there is no such cluster."""
        cluster = self._cache.entry(key).cluster
        if cluster is None:
            self._asked.pop(key, None)
            self._cuts.pop(key, None)
            self._sources.forget(key)
            return None
        if self._strangers(key):
            await self._polls.ask(key)
        events = await self._events(key)
        sources = await self._sources.read(key, named_config_maps(cluster.get("spec") or {}))
        entry = self._cache.entry(key)  # asking took time
        if entry.cluster is None:
            return None
        reports = self._polls.reports(key)
        return Snapshot(
            cluster=entry.cluster,
            now=self._clock.now(),
            children=dict(sorted(entry.children.items())),
            pods=tuple(pod for _, pod in sorted(entry.pods.items())),
            events=events,
            errors=dict(errors),
            engine_reports=reports.engines,
            router_reports=reports.routers,
            drains=tuple(self._cuts.get(key, ())),
            images=self._images,
            warming_sources=sources,
        )

    def cut(self, key: Key, drain: Drain) -> None:
        """The drain of a pod has cut requests, which the next plans have to know."""
        self._cuts.setdefault(key, []).append(drain)
        del self._cuts[key][:-CUTS_KEPT]

    def told(self, key: Key, drains: tuple[Drain, ...]) -> None:
        """Plans need not know of these any more."""
        left = [drain for drain in self._cuts.get(key, ()) if drain not in drains]
        if left:
            self._cuts[key] = left
        else:
            self._cuts.pop(key, None)

    async def ask(self, key: Key) -> None:
        """Have all pods of a cluster asked anew, for about a second at most."""
        await self._polls.ask(key)

    def _strangers(self, key: Key) -> bool:
        """Whether one that is ready was never asked, as after our own start.

        Of a router it matters which engines it has found, of an engine what it has warmed.
        """
        known, entry = self._polls.reports(key), self._cache.entry(key)
        asked = known.routers.keys() | known.engines.keys()
        warms = is_warming((entry.cluster or {}).get("spec") or {})
        return any(
            is_ready(pod) and uid_of(pod) not in asked
            for pod in entry.pods.values()
            if warms or is_router(pod)
        )

    async def _events(self, key: Key) -> dict[str, tuple[Manifest, ...]]:
        """Events of faults by the uid of their pod, of pods that should be ready and are not."""
        now = self._clock.now()
        pods = self._cache.entry(key).pods.values()
        unready = sorted((p for p in pods if is_unready(p, now)), key=_created)[:PODS_ASKED]
        known = self._asked.get(key, {})
        asked: dict[str, _Asked] = {}
        for pod in unready:
            uid = uid_of(pod)
            before = known.get(uid)
            if before is None or now - before.at >= timedelta(seconds=FRESH_S):
                before = await self._ask(key, uid, before)
            asked[uid] = before
        self._asked[key] = asked
        return {uid: answer.events for uid, answer in asked.items() if answer.events}

    async def _ask(self, key: Key, uid: str, before: _Asked | None) -> _Asked:
        """A pod's events of faults, or those known before where none can be had."""
        selector = f"involvedObject.uid={uid}"
        try:
            listing = await self._kube.list_all(
                CORE_EVENTS, key.namespace, selectors={"fieldSelector": selector}
            )
        except KubeError as error:
            if before is None or not before.failed:  # told once, not with every look
                extra = {"namespace": key.namespace, "cluster": key.name}
                log.warning("events of pod %s not read: %s", uid, error, extra=extra)
            return _Asked(self._clock.now(), before.events if before else (), failed=True)
        telling = (item for item in listing.items if _tells_of_a_fault(item))
        kept = ({k: item[k] for k in _KEPT if k in item} for item in telling)
        return _Asked(self._clock.now(), tuple(kept))


def _tells_of_a_fault(item: Manifest) -> bool:
    """Kubelet calls the end of a container that failed its probe Normal."""
    return item.get("type") == "Warning" or item.get("reason") == "Killing"


def is_unready(pod: Manifest, now: datetime) -> bool:
    """Whether a pod had time to become ready, is not on its way out, and is not ready."""
    if "deletionTimestamp" in pod["metadata"] or is_over(pod):
        return False
    if now - datetime.fromisoformat(_created(pod)) < timedelta(seconds=QUIET_S):
        return False
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return not any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _created(pod: Manifest) -> str:
    return str(pod["metadata"]["creationTimestamp"])
