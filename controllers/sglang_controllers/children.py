"""Which of the objects in a snapshot are the cluster's own."""

from collections.abc import Iterable
from datetime import timedelta

from sglang_controllers import names
from sglang_controllers.manifest import Manifest
from sglang_controllers.ownership import is_ours
from sglang_controllers.pods import moment, revision_of, role_of
from sglang_controllers.resources.subject import Subject
from sglang_controllers.snapshot import Snapshot

DEPLOYMENT = "Deployment"

GARBAGE_S = 60
"""Garbage collection has reached the pods of a deleted Deployment by then."""


def own_deployments(snapshot: Snapshot, subject: Subject) -> tuple[Manifest, ...]:
    """Deployments of the subject's role that are not being deleted, the oldest first."""
    ours = (
        live
        for key, live in snapshot.children.items()
        if key.kind == DEPLOYMENT
        and is_ours(live, subject)
        and not live["metadata"].get("deletionTimestamp")
        and revision_of(live)
        and role_of(live) == subject.role
    )
    return tuple(sorted(ours, key=_age))


def own_pods(snapshot: Snapshot, deployments: Iterable[Manifest]) -> tuple[Manifest, ...]:
    """Pods of these Deployments, not of deleted ones that had the same name, the oldest first.

    Such pods are older than the Deployment and about to be collected. Those that are still there
    after GARBAGE_S were orphaned, and the Deployment has adopted them.
    """
    made = {
        revision_of(live): moment(live["metadata"].get("creationTimestamp")) for live in deployments
    }

    def belongs(pod: Manifest) -> bool:
        if revision_of(pod) not in made:
            return False
        since, born = made[revision_of(pod)], moment(pod["metadata"].get("creationTimestamp"))
        if since is None or born is None or born >= since:
            return True
        return snapshot.now - since > timedelta(seconds=GARBAGE_S)

    return tuple(sorted(filter(belongs, snapshot.pods), key=_age))


def spec_hash_of(deployment: Manifest) -> str | None:
    """The hash of what the Deployment was made from, None where somebody has removed it."""
    annotations = deployment["metadata"].get("annotations") or {}
    found = annotations.get(names.SPEC_HASH_ANNOTATION)
    return str(found) if found else None


def _age(live: Manifest) -> tuple[str, str]:
    return (live["metadata"].get("creationTimestamp") or "", live["metadata"]["name"])
