"""ConfigMaps that prompts are read from: which are named, and what is in them."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sglang_controllers.api.warming import CONFIG_MAP_NAME
from sglang_controllers.manifest import Manifest
from sglang_controllers.names import KIND

NAME = re.compile(CONFIG_MAP_NAME)

FIELDS = ("data", "binaryData")
"""Where a ConfigMap has its content; what is in the second is base64."""

JSON_GROWTH = 3
"""Of three bytes in a request, one may be in a ConfigMap: 3 MiB is the limit of the one, 1 MiB that
of the other. Text of control characters alone grows sixfold."""


@dataclass(frozen=True, slots=True)
class File:
    """One key of a ConfigMap, in the `field` of it. `weight`: the bytes that it takes of a slot."""

    field: str
    content: bytes
    """UTF-8: a str takes four times the memory for one emoji in it."""
    weight: int
    digest: str

    @property
    def value(self) -> str:
        return self.content.decode(errors="surrogatepass")


MOST_KEYS = 1_000
"""Of one ConfigMap. With tiny values it may have a hundred thousand, which nobody needs."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a ConfigMap holds, by key.

    `left_out` counts keys beyond MOST_KEYS. `copied`: an operator made it, and a copy of a copy
    would grow with every write; nothing is read from it.
    """

    files: Mapping[str, File]
    left_out: int = 0
    copied: bool = False


def source_of(config_map: Manifest) -> Source:
    owners = (config_map.get("metadata") or {}).get("ownerReferences") or ()
    if any(owner.get("controller") and owner.get("kind") == KIND for owner in owners):
        return Source({}, copied=True)
    held = sorted(
        (key, field, value)
        for field in FIELDS
        for key, value in (config_map.get(field) or {}).items()
    )
    files = {
        key: File(field, _bytes(value), _weight(field, value), digest(value))
        for key, field, value in held[:MOST_KEYS]
    }
    return Source(files, left_out=len(held) - len(files))


def digests_of(config_map: Manifest) -> dict[str, str]:
    """What stands for a ConfigMap's content where that is too much to keep."""
    return {
        key: digest(value)
        for field in FIELDS
        for key, value in (config_map.get(field) or {}).items()
    }


def digest(text: str) -> str:
    return hashlib.sha256(_bytes(text)).hexdigest()[:16]


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _weight(field: str, value: str) -> int:
    if field == "binaryData":
        return len(value) * 3 // 4
    in_a_request = len(json.dumps(value)) // JSON_GROWTH
    return max(len(_bytes(value)), in_a_request)


def is_warming(spec: Mapping[str, Any]) -> bool:
    """Whether a raw spec has `cache.warming`."""
    cache = spec.get("cache")
    return isinstance(cache, Mapping) and cache.get("warming") is not None


def named_config_maps(spec: Mapping[str, Any]) -> frozenset[str]:
    """Names of the ConfigMaps in a raw spec, whatever else is in it.

    They become part of a path, and a spec is older than the rule of its CRD at times.
    """
    found: Any = spec
    for part in ("cache", "warming", "promptsFrom"):
        found = found.get(part) if isinstance(found, Mapping) else None
    names = (
        (item.get("configMap") or {}).get("name")
        for item in (found if isinstance(found, list) else ())
        if isinstance(item, Mapping) and isinstance(item.get("configMap"), Mapping)
    )
    return frozenset(name for name in names if isinstance(name, str) and NAME.fullmatch(name))
