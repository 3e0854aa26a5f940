"""ConfigMaps of users that hold prompts: read when a cluster names them, read again when they change.

What has changed is learned from a watch of metadata: no content of any other ConfigMap gets here,
and nothing is watched while no cluster names one.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

from sglang_controllers.manifest import Manifest
from sglang_controllers.warming.sources import Source, source_of
from sglang_operator.cache import Key, version_of
from sglang_operator.kube import ApiError, Kube, KubeError
from sglang_operator.resources import BY_KIND

log = logging.getLogger(__name__)

CONFIG_MAPS = BY_KIND["ConfigMap"]

ATTEMPTS = 5
"""To read one while it changes."""

FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 30.0

GONE = 410
"""The API server does not remember what happened since that version."""


class Place(NamedTuple):
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class _Known:
    """`source` None: there is no such ConfigMap, and `version` is 0."""

    version: int
    source: Source | None


class Sources:
    """`changed` is told each cluster that names a ConfigMap which has come, changed or gone."""

    def __init__(
        self, kube: Kube, scopes: Collection[str | None], changed: Callable[[Key], None]
    ) -> None:
        self._kube = kube
        self._changed = changed
        self._named: dict[Key, frozenset[str]] = {}
        self._known: dict[Place, _Known] = {}
        self._heard: dict[Place, int] = {}
        self._wanted = {scope: asyncio.Event() for scope in scopes}
        self._unwanted = {scope: asyncio.Event() for scope in scopes}
        self._complained: set[object] = set()

    async def read(self, key: Key, names: frozenset[str]) -> dict[str, Source | None]:
        """What the ConfigMaps hold that a cluster names, None for one that is not there.

        Where one cannot be read, it is missing, and others with it.
        """
        self._name(key, names)
        read: dict[str, Source | None] = {}
        for name in sorted(names):
            place = Place(key.namespace, name)
            known = self._known.get(place) or await self._get(place)
            if known is None:
                break  # the others would keep a worker waiting, and are of no use without it
            read[name] = known.source
        return read

    def forget(self, key: Key) -> None:
        """The cluster is gone."""
        self._name(key, frozenset())

    async def run(self) -> None:
        """Watch for ever, as far as anything is named."""
        async with asyncio.TaskGroup() as scopes:
            for scope in self._wanted:
                scopes.create_task(self._watch(scope))

    def _name(self, key: Key, names: frozenset[str]) -> None:
        if self._named.get(key, frozenset()) == names:
            return
        self._named.pop(key, None)
        if names:
            self._named[key] = names
        places = {Place(k.namespace, name) for k, each in self._named.items() for name in each}
        for known in (self._known, self._heard):
            for place in known.keys() - places:
                del known[place]
        self._complained -= {each for each in self._complained if isinstance(each, Place)} - places
        for scope in self._wanted:
            wanted = any(scope in (None, place.namespace) for place in places)
            for event, holds in (
                (self._wanted[scope], wanted),
                (self._unwanted[scope], not wanted),
            ):
                event.set() if holds else event.clear()

    async def _get(self, place: Place) -> _Known | None:
        """What is there now. What changes meanwhile is read once more."""
        for _ in range(ATTEMPTS):
            heard = self._heard.get(place)
            try:
                live = await self._kube.get(CONFIG_MAPS, *place)
                known = _Known(version_of(live), source_of(live))
            except ApiError as error:
                if error.status != 404:
                    self._complain(place, error)
                    return None
                known = _Known(0, None)
            except KubeError as error:
                self._complain(place, error)
                return None
            self._complained.discard(place)
            if self._heard.get(place) == heard:
                self._known[place] = known
                return known
        return None

    def _complain(self, what: object, error: KubeError) -> None:
        if what not in self._complained:  # told once, not with every try
            named = (
                f"ConfigMap {what.name}" if isinstance(what, Place) else "metadata of ConfigMaps"
            )
            log.warning("%s not read: %s", named, error)
            self._complained.add(what)

    async def _watch(self, scope: str | None) -> None:
        while True:
            await self._wanted[scope].wait()
            following = asyncio.create_task(self._follow(scope))
            unwanted = asyncio.create_task(self._unwanted[scope].wait())
            try:
                await asyncio.wait({following, unwanted}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (following, unwanted):
                    task.cancel()
                # Not awaited one by one: whose cancellation that raises could not be told apart.
                await asyncio.wait({following, unwanted})
            if not following.cancelled():
                following.result()

    async def _follow(self, scope: str | None) -> None:
        """Hear of every change, whatever happens to the connection."""
        version: int | None = None
        retry_s = FIRST_RETRY_S
        while True:
            try:
                if version is None:
                    version = await self._list(scope)
                async for event in self._kube.watch_metadata(CONFIG_MAPS, scope, version):
                    version = self._take(event)
                    retry_s = FIRST_RETRY_S
            except KubeError as error:
                if isinstance(error, ApiError) and error.status == GONE:
                    version = None
                else:
                    self._complain(scope, error)
                pause_s, retry_s = retry_s, min(retry_s * 2, LONGEST_RETRY_S)
            else:
                self._complained.discard(scope)
                pause_s = FIRST_RETRY_S
            # Also after a watch that just ended: a proxy may end each of them at once.
            await asyncio.sleep(pause_s)

    async def _list(self, scope: str | None) -> int:
        """Compare everything named with what is there; the answer is the version of that."""
        listing = await self._kube.list_metadata(CONFIG_MAPS, scope)
        there = {_place(item): version_of(item) for item in listing.items}
        for place in self._places():
            if scope in (None, place.namespace):
                self._hear(place, there.get(place, 0))
        return listing.version

    def _take(self, event: Manifest) -> int:
        """The version that the watch has come to."""
        item = event["object"]
        place = _place(item)
        if event["type"] != "BOOKMARK" and place in self._places():
            self._hear(place, 0 if event["type"] == "DELETED" else version_of(item))
        return version_of(item)

    def _places(self) -> set[Place]:
        return {Place(key.namespace, name) for key, names in self._named.items() for name in names}

    def _hear(self, place: Place, version: int) -> None:
        """Whatever is known of it in another version is not known any more."""
        self._heard[place] = version
        known = self._known.get(place)
        if known is None or known.version == version:
            return
        del self._known[place]
        for key, names in self._named.items():
            if key.namespace == place.namespace and place.name in names:
                self._changed(key)


def _place(item: Manifest) -> Place:
    metadata = item["metadata"]
    return Place(metadata.get("namespace", ""), metadata.get("name", ""))
