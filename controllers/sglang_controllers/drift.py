"""Does a live object still say what we want it to say?"""

from collections.abc import Mapping
from typing import Any

from sglang_controllers.manifest import Manifest

WHOLE = frozenset({"selector"})
"""Fields that are one value: a key that somebody adds to a Service's selector cuts engines off."""


def differs(wanted: Manifest, live: Manifest) -> bool:
    """True when a field of `wanted` is missing or different in `live`.

    Fields and list items that only `live` has are none of our business: the API server's defaults
    and what others set. Owners are compared as a set: others may add theirs.
    """
    owners = (live.get("metadata") or {}).get("ownerReferences") or []
    uids = {owner.get("uid") for owner in owners}
    meta = wanted.get("metadata") or {}
    if any(owner["uid"] not in uids for owner in meta.get("ownerReferences") or []):
        return True
    rest = {k: v for k, v in meta.items() if k != "ownerReferences"}
    return not _within({**wanted, "metadata": rest}, live)


def _within(wanted: Any, live: Any) -> bool:
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(
            value == live.get(key) if key in WHOLE else _within(value, live.get(key))
            for key, value in wanted.items()
        )
    if isinstance(wanted, list) and all(isinstance(item, Mapping) for item in wanted):
        return isinstance(live, list) and all(
            any(_within(item, seen) for seen in live) for item in wanted
        )
    if isinstance(wanted, list):
        return (
            isinstance(live, list)
            and len(wanted) == len(live)
            and all(_within(w, seen) for w, seen in zip(wanted, live, strict=True))
        )
    return bool(wanted == live)
