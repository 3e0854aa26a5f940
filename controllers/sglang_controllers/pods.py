"""Reading pods: the few questions that the planner asks of them."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from sglang_controllers import names
from sglang_controllers.manifest import Manifest


def revision_of(manifest: Manifest) -> str:
    return str((manifest["metadata"].get("labels") or {}).get(names.REVISION_LABEL, ""))


def is_alive(pod: Manifest) -> bool:
    """It counts as a unit: not over, and not leaving."""
    phase = (pod.get("status") or {}).get("phase")
    return phase not in ("Succeeded", "Failed") and not pod["metadata"].get("deletionTimestamp")


def is_ready(pod: Manifest) -> bool:
    ready = condition(pod, "Ready")
    return is_alive(pod) and ready is not None and ready.get("status") == "True"


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
