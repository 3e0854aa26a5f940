"""Who owns which fields of an object, as far as it concerns our own writes."""

from typing import Any

from sglang_controllers.manifest import Manifest
from sglang_controllers.names import FIELD_MANAGER

Fields = dict[str, Any]


def owned_by_apply(entries: list[Manifest]) -> list[Manifest] | None:
    """The entries with all our fields in our `Apply` entry; None: they are there already.

    A POST leaves its fields in an `Update` entry, which server-side apply takes for another
    manager: a field that a later manifest lacks would stay for ever. client-go's csaupgrade
    package does the same for objects that kubectl once made by client-side apply.
    """
    updates = [entry for entry in entries if _ours(entry, "Update")]
    if not updates:
        return None
    fields: Fields = {}
    for entry in entries:
        if _ours(entry, "Apply") or _ours(entry, "Update"):
            fields = _union(fields, entry.get("fieldsV1") or {})
    merged = {**updates[-1], "operation": "Apply", "fieldsV1": fields}
    others = [e for e in entries if not (_ours(e, "Apply") or _ours(e, "Update"))]
    return [merged, *others]


def ownership_patch(live: Manifest) -> list[Manifest] | None:
    """A JSON patch that makes our fields of a live object applied ones; None: nothing to do.

    It fails where the object has changed since it was read: a stale list would take another
    manager's fields away.
    """
    metadata = live["metadata"]
    entries = owned_by_apply(metadata.get("managedFields") or [])
    if entries is None:
        return None
    version = metadata["resourceVersion"]
    return [
        {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
    ]


def _ours(entry: Manifest, operation: str) -> bool:
    return (
        entry.get("manager") == FIELD_MANAGER
        and entry.get("operation") == operation
        and not entry.get("subresource")
    )


def _union(one: Fields, other: Fields) -> Fields:
    """Both field sets in one. A set is a tree of names whose leaves are empty."""
    both = dict(one)
    for name, fields in other.items():
        both[name] = _union(both.get(name, {}), fields)
    return both
