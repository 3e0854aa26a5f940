"""The cluster's own ConfigMaps, into which those that it names are copied.

Their names are fixed, so that pods mount them whatever the others are called: a new name of a
ConfigMap, as Kustomize gives it with each change, restarts nothing.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sglang_controllers.api.warming import PromptSource
from sglang_controllers.manifest import Manifest
from sglang_controllers.resources.metadata import metadata
from sglang_controllers.resources.subject import Subject
from sglang_controllers.warming.sources import MOST_KEYS, File, Source

SLOTS = 4
SLOT_BYTES = 1_000_000
"""A ConfigMap may hold 1 MiB."""


@dataclass(frozen=True, slots=True)
class Slots:
    """ConfigMaps that are wanted, and what is not in them.

    `hash` tells their content, as agents tell it. `missing` and `too_large` are in words, `copied`
    are names of ConfigMaps that an operator made.
    """

    manifests: tuple[Manifest, ...] = ()
    hash: str = ""
    missing: tuple[str, ...] = ()
    too_large: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Entry:
    """One key of a named ConfigMap."""

    config_map: str
    key: str
    file: File

    @property
    def weight(self) -> int:
        # In the slot's index are both names and what is around them.
        return self.file.weight + len(self.config_map) + len(self.key) + 64


@dataclass(slots=True)
class _Slot:
    entries: list[_Entry] = field(default_factory=list)
    weight: int = 0


def slots_of(
    subject: Subject, prompts: Sequence[PromptSource], sources: Mapping[str, Source | None]
) -> Slots | None:
    """`sources` by name, None for one that is not there. None: one has not been read yet."""
    named = {source.config_map.name for source in prompts if source.config_map}
    if not named <= sources.keys():
        return None
    entries: dict[tuple[str, str], _Entry] = {}
    missing: list[str] = []
    for source in prompts:
        if source.config_map:
            name, key = source.config_map.name, source.config_map.key
            for found in _entries(name, key, sources[name]):
                if isinstance(found, str):
                    missing.append(found)
                else:
                    entries.setdefault((found.config_map, found.key), found)
    filled, too_large = _filled(list(entries.values()))
    too_large += _beyond(prompts, sources)
    hashes = [_hash(slot) for slot in filled]
    return Slots(
        manifests=tuple(
            _manifest(subject, number, slot, hash_)
            for number, (slot, hash_) in enumerate(zip(filled, hashes, strict=True))
        ),
        hash="-".join(hashes),
        missing=tuple(dict.fromkeys(missing)),
        too_large=tuple(dict.fromkeys(too_large)),
        copied=tuple(sorted(name for name in named if (it := sources[name]) and it.copied)),
    )


def slot_name(subject: Subject, number: int) -> str:
    return f"{subject.name}-warming-{number}"


def slot_names(subject: Subject) -> tuple[str, ...]:
    return tuple(slot_name(subject, number) for number in range(SLOTS))


def _entries(name: str, key: str | None, source: Source | None) -> Iterator[_Entry | str]:
    """Entries, and in words what is not there."""
    if source is None:
        yield f"ConfigMap {name}"
    elif key is None:
        yield from (_Entry(name, each, file) for each, file in source.files.items())
    elif key in source.files:
        yield _Entry(name, key, source.files[key])
    elif not source.left_out and not source.copied:
        yield f"key {key} of ConfigMap {name}"


def _beyond(prompts: Sequence[PromptSource], sources: Mapping[str, Source | None]) -> Iterator[str]:
    """In words, what is named of a ConfigMap and was not even read."""
    for named in (each.config_map for each in prompts if each.config_map):
        source = sources[named.name]
        if not source or not source.left_out or named.key in source.files:
            continue
        what = f"key {named.key}" if named.key else f"{source.left_out:,} more keys"
        yield f"{what} of ConfigMap {named.name}, which has more than {MOST_KEYS:,}"


def _filled(entries: Sequence[_Entry]) -> tuple[list[_Slot], list[str]]:
    """Each entry is in the first slot that has room for it, as a whole."""
    slots = [_Slot() for _ in range(SLOTS)]
    too_large = []
    for entry in entries:
        slot = next((s for s in slots if s.weight + entry.weight <= SLOT_BYTES), None)
        if slot is None:
            too_large.append(f"key {entry.key} of ConfigMap {entry.config_map}")
        else:
            slot.entries.append(entry)
            slot.weight += entry.weight
    return [slot for slot in slots if slot.entries], too_large


def _hash(slot: _Slot) -> str:
    told = [[entry.config_map, entry.key, entry.file.digest] for entry in slot.entries]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


def _manifest(subject: Subject, number: int, slot: _Slot, hash_: str) -> Manifest:
    files = [f"s{number}-{place}" for place in range(len(slot.entries))]
    listed = [
        {"configMap": entry.config_map, "key": entry.key, "file": file}
        for entry, file in zip(slot.entries, files, strict=True)
    ]
    index = json.dumps({"hash": hash_, "sources": listed}, separators=(",", ":"))
    held: dict[str, dict[str, str]] = {"data": {f"index-{number}.json": index}}
    for entry, file in zip(slot.entries, files, strict=True):
        held.setdefault(entry.file.field, {})[file] = entry.file.value
    meta = metadata(subject, slot_name(subject, number))
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, **held}
