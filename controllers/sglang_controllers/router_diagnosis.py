"""What is wrong with a router's pod, in the words of `spec.router`."""

from collections.abc import Sequence

from sglang_controllers import names
from sglang_controllers.diagnosis import (
    CONFIG_WAITS,
    IMAGE_WAITS,
    NOT_STARTED,
    Finding,
    node_lost,
    unplaced,
)
from sglang_controllers.engine_errors import telling_line
from sglang_controllers.manifest import Manifest
from sglang_controllers.reasons import Reason
from sglang_controllers.redaction import excerpt

CONTAINER = f"spec.router.podTemplate.spec.containers[{names.ROUTER_CONTAINER}]"


def router_fault(pod: Manifest, events: Sequence[Manifest]) -> Finding | None:
    """The first fault that a user has to deal with, None when the router is just starting."""
    lost = node_lost(pod, events)
    if lost:
        return lost
    if message := unplaced(pod):
        return Finding(
            Reason.UNSCHEDULABLE,
            f"a router finds no node: {excerpt(message)}. Routers need no accelerator: set "
            "tolerations and nodeSelector in spec.router.podTemplate.spec, or lower "
            "spec.router.resources",
        )
    for status in (pod.get("status") or {}).get("containerStatuses") or []:
        finding = None if status.get("ready") else _container_fault(pod, status)
        if finding:
            return finding
    return _mount_fault(events) if _waits(pod) else None


def _container_fault(pod: Manifest, status: Manifest) -> Finding | None:
    waiting = (status.get("state") or {}).get("waiting") or {}
    said, name = excerpt(waiting.get("message") or ""), status.get("name")
    if waiting.get("reason") in IMAGE_WAITS:
        return Finding(
            Reason.IMAGE_PULL,
            f"cannot pull the routers' image {status.get('image') or ''}: {said}. Name one that the "
            f"nodes can pull in {CONTAINER}.image, or in router.image of the operator's chart, "
            "which holds for routers that are made later",
        )
    if waiting.get("reason") in CONFIG_WAITS:
        return Finding(
            Reason.CONTAINER_CONFIG,
            f"container {name} of a router cannot start: {said or waiting['reason']}. Check "
            "spec.router.apiKeySecretRef and spec.router.podTemplate",
        )
    # One that runs again has healed: that it is not ready may be for want of engines.
    for when in ("state", "lastState") if waiting else ("state",):
        ended = (status.get(when) or {}).get("terminated")
        if not ended:
            continue
        last = excerpt(telling_line(ended.get("message") or "")) or "it left no message"
        if ended.get("reason") in NOT_STARTED:
            return Finding(
                Reason.CONTAINER_CONFIG,
                f"the runtime cannot start container {name} of a router: {last}. Check "
                f"{CONTAINER}.image",
            )
        if names.ROUTER_KEY_VARIABLE in last:
            return Finding(
                Reason.ROUTER_CRASH,
                f"a router cannot use its API key: {last}. Correct the key of the Secret that "
                "spec.router.apiKeySecretRef names",
            )
        if ended.get("exitCode") != 0 or when == "lastState":
            return Finding(
                Reason.ROUTER_CRASH,
                f"container {name} of a router ended with exit code {ended.get('exitCode')}: {last}. "
                f"Its log: kubectl logs {pod['metadata']['name']} -c {name} --previous",
            )
    return None


def _waits(pod: Manifest) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    return all((status.get("state") or {}).get("waiting") for status in statuses)


def _mount_fault(events: Sequence[Manifest]) -> Finding | None:
    for event in events:
        if event.get("reason") in ("FailedMount", "FailedAttachVolume", "FailedMapVolume"):
            said = excerpt(event.get("message") or "")
            return Finding(
                Reason.VOLUME, f"a router: {said}. Check volumes in spec.router.podTemplate"
            )
    return None
