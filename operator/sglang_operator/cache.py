"""The last known state of every SGLangCluster, its children and its pods.

Fed by watches, by listings and by the answers to our own writes, in any order: an object never
goes back to an older version, and one that is known to be gone never returns.
"""

import sys
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sglang_controllers.manifest import Manifest, ObjectKey
from sglang_controllers.names import CLUSTER_LABEL, KIND
from sglang_controllers.warming.sources import digests_of

GONE_LIMIT = 20_000
"""Uids remembered as gone. It only has to outlast events that are still on their way."""

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Key(NamedTuple):
    """A SGLangCluster's identity in the API server."""

    namespace: str
    name: str


class Place(NamedTuple):
    """Where one object at a time can be: the unit of ordering."""

    kind: str
    namespace: str
    name: str


@dataclass(slots=True)
class Entry:
    """Everything known of one cluster. `cluster` None: only its children were seen."""

    cluster: Manifest | None = None
    children: dict[ObjectKey, Manifest] = field(default_factory=dict)
    pods: dict[str, Manifest] = field(default_factory=dict)


class Cache:
    """Slimmed manifests by cluster. Methods that take an object answer the clusters it changed."""

    def __init__(self) -> None:
        self._objects: dict[Place, Manifest] = {}
        self._owners: dict[Place, Key] = {}
        self._entries: dict[Key, Entry] = {}
        self._gone: OrderedDict[str, int] = OrderedDict()

    def entry(self, key: Key) -> Entry:
        """What is known of a cluster, a copy that later changes leave alone."""
        known = self._entries.get(key, Entry())
        return Entry(known.cluster, dict(known.children), dict(known.pods))

    def clusters(self) -> Iterator[tuple[Key, Manifest]]:
        for key, entry in self._entries.items():
            if entry.cluster is not None:
                yield key, entry.cluster

    def put(self, item: Manifest, key: Key | None = None, *, just_read: bool = False) -> set[Key]:
        """Keep an object unless a newer version of it, or its end, is known.

        `key` is the cluster to count it to, None: the one that its label names. `just_read`
        objects are there whatever was heard before: one that lost our label seems deleted to a
        watch and to a listing.
        """
        place = place_of(item)
        owner = key or key_of(item)
        known = self._objects.get(place)
        if just_read:
            self._gone.pop(uid_of(item), None)
        if version_of(item) < self._gone.get(uid_of(item), 0):
            return set()
        if known and version_of(known) > version_of(item):
            return set()
        if known and version_of(known) == version_of(item) and self._owners.get(place) == owner:
            return set()
        changed = self._forget(place)
        if owner is not None:
            self._keep(place, owner, slim(item))
            changed.add(owner)
        return changed

    def remove(self, item: Manifest, version: int | None = None) -> set[Key]:
        """Forget an object that is gone from the API server since a version.

        `version` None: for good, whatever is heard of it later.
        """
        uid = uid_of(item)
        self._gone[uid] = sys.maxsize if version is None else version
        while len(self._gone) > GONE_LIMIT:
            self._gone.popitem(last=False)
        place = place_of(item)
        known = self._objects.get(place)
        return self._forget(place) if known and uid_of(known) == uid else set()

    def repair(
        self, kind: str, namespace: str | None, items: Collection[Manifest], version: int
    ) -> set[Key]:
        """Take a whole listing of one kind over, and forget what it lacks.

        What became known after the listing's `version` stays. `namespace` None: all of them.
        """
        changed: set[Key] = set()
        for item in items:
            changed |= self.put(item)
        listed = {uid_of(item) for item in items}
        missing = [
            known
            for place, known in self._objects.items()
            if place.kind == kind
            and namespace in (None, place.namespace)
            and uid_of(known) not in listed
            and version_of(known) <= version
        ]
        for known in missing:
            changed |= self.remove(known, version)
        return changed

    def _keep(self, place: Place, owner: Key, item: Manifest) -> None:
        self._objects[place] = item
        self._owners[place] = owner
        entry = self._entries.setdefault(owner, Entry())
        match place.kind:
            case "Pod":
                entry.pods[place.name] = item
            case kind if kind == KIND:
                entry.cluster = item
            case kind:
                entry.children[ObjectKey(kind, place.name)] = item

    def _forget(self, place: Place) -> set[Key]:
        if self._objects.pop(place, None) is None:
            return set()
        owner = self._owners.pop(place)
        entry = self._entries[owner]
        match place.kind:
            case "Pod":
                del entry.pods[place.name]
            case kind if kind == KIND:
                entry.cluster = None
            case kind:
                del entry.children[ObjectKey(kind, place.name)]
        if entry.cluster is None and not entry.children and not entry.pods:
            del self._entries[owner]
        return {owner}


def key_of(item: Manifest) -> Key | None:
    """The cluster an object belongs to; None: it carries no label of ours."""
    metadata = item["metadata"]
    if item["kind"] == KIND:
        return Key(metadata["namespace"], metadata["name"])
    # Anybody may overwrite a label; its controller is what the object cannot lose by a slip.
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller") and owner.get("kind") == KIND:
            return Key(metadata["namespace"], owner["name"])
    name = (metadata.get("labels") or {}).get(CLUSTER_LABEL)
    return Key(metadata["namespace"], name) if name else None


def place_of(item: Manifest) -> Place:
    metadata = item["metadata"]
    return Place(item["kind"], metadata["namespace"], metadata["name"])


def uid_of(item: Manifest) -> str:
    return str(item["metadata"]["uid"])


def version_of(item: Manifest) -> int:
    """A number that grows with every change of an object of that kind.

    Promised by Kubernetes since 1.35, and true of every API server on etcd before.
    """
    return int(item["metadata"]["resourceVersion"])


def slim(item: Manifest) -> Manifest:
    """The object without what planning never reads.

    Kept whole: clusters, Deployments, Services, PodDisruptionBudgets and ServiceAccounts, their
    managedFields excepted. ConfigMaps keep metadata, and digests in place of their content.
    Pods keep metadata, status, node, and per container name, image and resources.
    """
    return _SLIM.get(item["kind"], _whole)(item)


def _whole(item: Manifest) -> Manifest:
    return {**item, "metadata": _metadata(item["metadata"])}


def _config_map(item: Manifest) -> Manifest:
    kept = _some(item, ("apiVersion", "kind", "immutable"))
    if not item.get("immutable"):
        kept["digests"] = digests_of(item)
    return {**kept, "metadata": _metadata(item["metadata"])}


def _pod(item: Manifest) -> Manifest:
    spec: Mapping[str, Any] = item.get("spec") or {}
    kept = _some(spec, ("nodeName", "nodeSelector", "schedulerName", "schedulingGates"))
    for containers in ("initContainers", "containers"):
        if containers in spec:
            kept[containers] = [
                _some(each, ("name", "image", "resources", "restartPolicy"))
                for each in spec[containers]
            ]
    return {
        **_some(item, ("apiVersion", "kind", "status")),
        "metadata": _metadata(item["metadata"]),
        "spec": kept,
    }


def _metadata(metadata: Manifest) -> Manifest:
    kept = {name: value for name, value in metadata.items() if name != "managedFields"}
    annotations = metadata.get("annotations") or {}
    if LAST_APPLIED in annotations:
        kept["annotations"] = {k: v for k, v in annotations.items() if k != LAST_APPLIED}
    return kept


def _some(item: Mapping[str, Any], names: tuple[str, ...]) -> Manifest:
    return {name: item[name] for name in names if name in item}


_SLIM: Mapping[str, Callable[[Manifest], Manifest]] = {"ConfigMap": _config_map, "Pod": _pod}
