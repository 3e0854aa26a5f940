"""Objects for tests: each builder shows only what the test is about."""

from datetime import UTC, datetime
from typing import Any

from sglang_controllers import names
from sglang_controllers.manifest import Manifest

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
MODEL = {"source": "oci://registry.example/smollm2:1"}


def a_cluster(name: str = "chat", uid: str = "uid-1", **spec: Any) -> Manifest:
    """An SGLangCluster; keywords are fields of its spec."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": uid,
            "generation": 1,
            "creationTimestamp": "2026-11-29T11:00:00Z",
        },
        "spec": {"replicas": 1, "model": dict(MODEL), **spec},
    }


def a_pod(revision: str = "r1", name: str = "pod-1", **status: Any) -> Manifest:
    """A pod of the cluster `chat`; keywords are fields of its status."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "creationTimestamp": "2026-11-29T12:00:00Z",
            "labels": {
                names.CLUSTER_LABEL: "chat",
                names.ROLE_LABEL: "unified",
                names.REVISION_LABEL: revision,
            },
        },
        "spec": {
            "containers": [{"name": "engine", "resources": {"limits": {"nvidia.com/gpu": "2"}}}]
        },
        "status": {"phase": "Pending", **status},
    }


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    """Container statuses of an engine that waits."""
    state = {"waiting": {"reason": reason, "message": message}}
    return {"containerStatuses": [{"name": "engine", "ready": False, "state": state}]}


def ended(code: int, message: str = "", reason: str = "Error") -> dict[str, Any]:
    """Container statuses of an engine that ended and waits for its next start."""
    last = {"terminated": {"exitCode": code, "reason": reason, "message": message}}
    return {
        "containerStatuses": [
            {
                "name": "engine",
                "ready": False,
                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s"}},
                "lastState": last,
            }
        ]
    }


def download_ended(message: str, code: int = 1) -> dict[str, Any]:
    """Container statuses of a pod whose download failed and waits for its next try."""
    last = {"terminated": {"exitCode": code, "reason": "Error", "message": message}}
    waits = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s"}}
    before = {"waiting": {"reason": "PodInitializing"}}
    return {
        "initContainerStatuses": [
            {"name": "download", "ready": False, "state": waits, "lastState": last}
        ],
        "containerStatuses": [{"name": "engine", "ready": False, "state": before}],
    }


def unplaceable(message: str, since: str = "2026-11-29T11:59:50Z") -> dict[str, Any]:
    """Conditions of a pod that the scheduler cannot place."""
    return {
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": message,
                "lastTransitionTime": since,
            }
        ]
    }
