"""Kopf's part: watch, and tell. Handlers put what they see into the cache and a key into the queue.

There is no daemon, timer, finalizer, index or create/update handler here. The first three would
keep objects and namespaces from being deleted while the operator is down, create/update handlers
write annotations into the objects, and an index cannot be repaired when a watch lost an event.
"""

from collections.abc import Callable
from typing import Any

import kopf

from sglang_controllers.manifest import Manifest
from sglang_operator.resources import WATCHED, Resource

Seen = Callable[[Manifest, bool], None]
"""Told an object, and whether it is gone."""


def registry(seen: Seen, login: Callable[..., Any]) -> kopf.OperatorRegistry:
    """Handlers for everything that is watched, bound to one operator."""
    handlers = kopf.OperatorRegistry()
    kopf.on.login(registry=handlers)(login)
    for resource in WATCHED:
        _watch(handlers, resource, seen)
    return handlers


def _watch(handlers: kopf.OperatorRegistry, resource: Resource, seen: Seen) -> None:
    @kopf.on.event(  # type: ignore[arg-type]  # Kopf's protocol wants every keyword spelled out
        resource.group,
        resource.version,
        resource.plural,
        id=resource.plural,
        registry=handlers,
    )
    async def tell(event: dict[str, Any], **_: Any) -> None:
        item = {"apiVersion": resource.api_version, "kind": resource.kind, **event["object"]}
        seen(item, event["type"] == "DELETED")
