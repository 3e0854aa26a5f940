"""Whose object is it? A foreign one under a name that we need is never touched."""

from dataclasses import dataclass

from sglang_controllers import names
from sglang_controllers.manifest import Manifest
from sglang_controllers.resources.subject import Subject


def is_ours(live: Manifest, subject: Subject) -> bool:
    owner = _controller(live)
    return owner is not None and owner.get("uid") == subject.uid


def is_predecessors(live: Manifest, subject: Subject) -> bool:
    """It belongs to a deleted cluster of the same name, and garbage collection is on its way."""
    owner = _controller(live)
    return (
        owner is not None
        and owner.get("kind") == names.KIND
        and str(owner.get("apiVersion", "")).startswith(f"{names.GROUP}/")
        and owner.get("name") == subject.name
        and owner.get("uid") != subject.uid
    )


def describe(live: Manifest) -> str:
    """Who owns it, in words for a message."""
    owner = _controller(live)
    if owner is None:
        return "nobody that Kubernetes knows of"
    return f"{owner.get('kind')} {owner.get('name')}"


def _controller(live: Manifest) -> Manifest | None:
    owners = (live.get("metadata") or {}).get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)


@dataclass(frozen=True, slots=True)
class Taken:
    """A name that we need and cannot have."""

    kind: str
    name: str
    owner: str
