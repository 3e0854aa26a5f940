"""Kubernetes events about a SGLangCluster."""

import hashlib
from datetime import UTC, datetime

from sglang_controllers.manifest import Manifest
from sglang_controllers.names import API_VERSION, FIELD_MANAGER, KIND
from sglang_controllers.plan import EventRecord
from sglang_operator.resources import EVENTS

NOTE_LIMIT = 1024
"""Bytes of an event's message, a rule of events.k8s.io/v1."""


def event(cluster: Manifest, record: EventRecord, now: datetime, instance: str) -> Manifest:
    """An event as `kubectl describe` shows it. `instance` names the process that reports."""
    about = cluster["metadata"]
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {**_name(about["name"], record), "namespace": about["namespace"]},
        "eventTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "type": record.type,
        "reason": record.reason,
        "note": shortened(record.message),
        "action": "Reconcile",
        "reportingController": FIELD_MANAGER,
        "reportingInstance": instance,
        "regarding": {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "namespace": about["namespace"],
            "name": about["name"],
            "uid": about["uid"],
        },
    }


def _name(cluster: str, record: EventRecord) -> dict[str, str]:
    """A name of its own for each event, and the same one for what is told once."""
    if not record.once:
        return {"generateName": f"{cluster}-"}
    what = hashlib.sha256(f"{record.reason} {record.once}".encode()).hexdigest()[:16]
    return {"name": f"{cluster}-{what}"}


def shortened(message: str) -> str:
    """The message as far as it fits into an event."""
    encoded = message.encode()
    if len(encoded) <= NOTE_LIMIT:
        return message
    return encoded[: NOTE_LIMIT - 4].decode(errors="ignore") + " ..."
