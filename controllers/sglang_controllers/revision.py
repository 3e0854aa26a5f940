"""Which pods belong together: a revision is a hash of what the spec says about pods.

The hash is part of names in users' clusters: tests/golden/revisions.yaml holds specs and their
hashes, and only ever grows.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

TEMPLATE_VERSION = 2
"""Raised when the pod builder changes, so that new pods of an old spec get a name of their own."""

REVISION_LENGTH = 10
"""Hexadecimal digits in names: 40 bits, and a counter for the collision that never happens."""

NOT_ABOUT_PODS = (
    ("replicas",),
    ("paused",),
    ("router",),
    ("service",),
    ("rollout",),
    ("disruption",),
    ("engine", "startupTimeout"),
    ("engine", "allowUnknownVersion"),
    ("cache", "warming", "promptsFrom", "configMap"),
)
"""Paths of the spec that restart nothing. Items of lists have no part in a path."""

LISTS_OF_BOTH = (("cache", "warming", "promptsFrom"),)
"""Lists in which some items are about pods and others are not."""

MEANT_WHEN_EMPTY = (
    ("speculative", "ngram"),
    ("speculative", "nextn"),
    ("cache", "hiCache"),
    ("cache", "warming"),
    ("cache", "warming", "gate"),
    ("scheduling", "priority"),
    ("podTemplate",),
)
"""Paths where `{}` says something; elsewhere an empty object is the same as an absent one."""


@dataclass(frozen=True, slots=True)
class Revision:
    """`name` is the short form used in object names, `spec_hash` the whole SHA-256 in hex."""

    name: str
    spec_hash: str


def spec_hash(spec: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON of the pod-affecting part of a raw spec."""
    text = json.dumps(_pruned(spec, ()), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def router_hash(router: Mapping[str, Any]) -> str:
    """SHA-256 of what a raw `spec.router` says about its pods."""
    about_pods = {k: v for k, v in router.items() if k not in ("enabled", "replicas")}
    return spec_hash(about_pods)


def new_revision(whole: str, taken: Collection[str]) -> Revision:
    """A revision for a spec hash that has no Deployment yet, avoiding names of others."""
    counter = 0
    while True:
        name = _name(f"{TEMPLATE_VERSION}:{whole}" + (f":{counter}" if counter else ""))
        if name not in taken:
            return Revision(name, whole)
        counter += 1


def usual_names(whole: str) -> frozenset[str]:
    """Names that this version and earlier ones give to a spec hash."""
    return frozenset(_name(f"{version}:{whole}") for version in range(1, TEMPLATE_VERSION + 1))


def _name(seed: str) -> str:
    return hashlib.sha256(seed.encode()).hexdigest()[:REVISION_LENGTH]


def _pruned(value: Any, path: tuple[str, ...]) -> Any:
    if path in LISTS_OF_BOTH and isinstance(value, list):
        return [inner for item in value if (inner := _pruned(item, path))]
    if not isinstance(value, Mapping) or path[:1] == ("podTemplate",):
        return value
    kept: dict[str, Any] = {}
    for key, item in value.items():
        below = (*path, key)
        if below in NOT_ABOUT_PODS:
            continue
        inner = _pruned(item, below)
        if inner is None or (inner in ({}, []) and below not in MEANT_WHEN_EMPTY):
            continue
        kept[key] = inner
    return kept
