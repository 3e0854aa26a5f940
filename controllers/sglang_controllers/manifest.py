"""Kubernetes objects as the API server gives or takes them."""

from typing import Any, NamedTuple

Manifest = dict[str, Any]


class ObjectKey(NamedTuple):
    """A child object's identity inside its cluster's namespace."""

    kind: str
    name: str


def key_of(manifest: Manifest) -> ObjectKey:
    return ObjectKey(manifest["kind"], manifest["metadata"]["name"])
