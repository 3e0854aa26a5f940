"""Reading pods: the few questions that the planner asks of them."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from sglang_controllers import names
from sglang_controllers.manifest import Manifest


def revision_of(manifest: Manifest) -> str:
    """The revision an object belongs to, empty when it has none.

    It is read from where nobody can change it: a Deployment's selector, a ConfigMap's name. Labels
    of these can be edited by hand. A pod has nothing but its label.
    """
    match manifest.get("kind"):
        case "Deployment":
            labels = ((manifest.get("spec") or {}).get("selector") or {}).get("matchLabels")
        case "ConfigMap":
            return str(manifest["metadata"]["name"]).rpartition("-")[2]
        case _:
            labels = manifest["metadata"].get("labels")
    return str((labels or {}).get(names.REVISION_LABEL, ""))


def role_of(deployment: Manifest) -> str:
    """The role of a Deployment's pods, read from where nobody can change it."""
    labels = ((deployment.get("spec") or {}).get("selector") or {}).get("matchLabels") or {}
    return str(labels.get(names.ROLE_LABEL, ""))


def worker_url(pod: Manifest) -> str | None:
    """How routers list the engine of a pod; None: it has no address yet."""
    address = (pod.get("status") or {}).get("podIP")
    if not address:
        return None
    host = f"[{address}]" if ":" in address else address
    return f"http://{host}:{names.ENGINE_PORT}"


def uid_of(pod: Manifest) -> str:
    return str(pod["metadata"].get("uid", ""))


def is_over(pod: Manifest) -> bool:
    """It has ended for good, and holds nothing. An evicted pod stays so until somebody deletes it."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def is_alive(pod: Manifest) -> bool:
    """It counts as a unit: not over, and not leaving."""
    return not is_over(pod) and not pod["metadata"].get("deletionTimestamp")


def is_ready(pod: Manifest) -> bool:
    ready = condition(pod, "Ready")
    return is_alive(pod) and ready is not None and ready.get("status") == "True"


def is_downloading(pod: Manifest) -> bool:
    statuses = (pod.get("status") or {}).get("initContainerStatuses") or []
    return is_alive(pod) and any(
        status.get("name") == names.DOWNLOAD_CONTAINER and "running" in (status.get("state") or {})
        for status in statuses
    )


def condition(manifest: Manifest, type_: str) -> Manifest | None:
    """The status condition of that type, None when the object has none."""
    found: Iterable[Any] = (manifest.get("status") or {}).get("conditions") or []
    return next((c for c in found if c.get("type") == type_), None)


def moment(text: str | None) -> datetime | None:
    """A Kubernetes timestamp, None when there is none or it cannot be read."""
    if not text:
        return None
    try:
        seen = datetime.fromisoformat(text)
    except ValueError:
        return None
    return seen if seen.tzinfo else seen.replace(tzinfo=UTC)
