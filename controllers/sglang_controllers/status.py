"""What status says, by kstatus' rules: Ready always, Reconciling and Stalled only when true.

Counts and messages change on transitions only, so that a cluster at rest is never written to.
"""

from dataclasses import dataclass
from typing import Any

from sglang_controllers.diagnosis import Finding, diagnosis
from sglang_controllers.manifest import Manifest, ObjectKey
from sglang_controllers.ownership import Taken
from sglang_controllers.plan import EventRecord
from sglang_controllers.pods import condition, is_alive, is_downloading, is_ready, revision_of
from sglang_controllers.reasons import NEEDS_THE_USER, Reason
from sglang_controllers.refusals import refusal, refused_pods
from sglang_controllers.resources.metadata import selector
from sglang_controllers.resources.subject import Subject
from sglang_controllers.snapshot import Snapshot

CONDITIONS = frozenset({"Ready", "Available", "Reconciling", "Stalled"})
"""Types of conditions that are ours. Others may add theirs."""

TEMPLATE_VERSIONS = "deployment.kubernetes.io/revision"

EVENT_MESSAGE_LIMIT = 1000
"""The API server takes 1,024 characters."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the planner found out, for status to say.

    `floor` ready replicas are enough to be available. `revision` is None when the spec cannot be
    understood. `missing` are objects still to be made.
    """

    subject: Subject
    desired: int
    floor: int
    revision: str | None
    problem: tuple[Reason, tuple[str, ...]] | None
    taken: tuple[Taken, ...]
    awaited: tuple[ObjectKey, ...]
    pods: tuple[Manifest, ...]
    paused: bool
    missing: tuple[ObjectKey, ...]


@dataclass(frozen=True, slots=True)
class Counts:
    """Pods of the role: `updated` and `fresh` (updated and ready) are of the current revision."""

    desired: int
    current: int
    updated: int
    ready: int
    fresh: int


def next_status(
    snapshot: Snapshot, verdict: Verdict
) -> tuple[Manifest | None, tuple[EventRecord, ...], bool]:
    """The whole new status (None: as it is), events about the change, and whether all is well."""
    counts = _counts(verdict)
    finding = _finding(snapshot, verdict, counts)
    old = snapshot.cluster.get("status") or {}
    conditions = _conditions(snapshot, counts, verdict.floor, finding)
    status = {
        "observedGeneration": snapshot.cluster["metadata"].get("generation", 0),
        "conditions": conditions,
        "replicas": counts.current,
        "selector": ",".join(f"{k}={v}" for k, v in selector(verdict.subject).items()),
        "roles": [
            {
                "name": verdict.subject.role,
                "desired": counts.desired,
                "current": counts.current,
                "updated": counts.updated,
                "ready": counts.ready,
            }
        ],
    }
    if verdict.revision:
        status["currentRevision"] = verdict.revision
        status["roles"][0]["revision"] = verdict.revision
    settled = finding.reason in (Reason.SERVING, Reason.SCALED_TO_ZERO)
    return (None if _says(old, status) else status), _events(old, finding), settled


def _says(old: Manifest, status: Manifest) -> bool:
    """Whether `old` says the same already, whatever others have added to it."""
    ours = {key: old.get(key) for key in status}
    mine = [c for c in old.get("conditions") or [] if c.get("type") in CONDITIONS]
    ours["conditions"] = sorted(mine, key=_type)
    return ours == status | {"conditions": sorted(status["conditions"], key=_type)}


def _type(found: Manifest) -> str:
    return str(found.get("type"))


def _counts(verdict: Verdict) -> Counts:
    alive = [pod for pod in verdict.pods if is_alive(pod)]
    updated = [pod for pod in alive if revision_of(pod) == verdict.revision]
    return Counts(
        desired=verdict.desired,
        current=len(alive),
        updated=len(updated),
        ready=sum(map(is_ready, alive)),
        fresh=sum(map(is_ready, updated)),
    )


def _finding(snapshot: Snapshot, verdict: Verdict, counts: Counts) -> Finding:
    """The one thing that a user should read first."""
    if verdict.problem:
        reason, messages = verdict.problem
        return Finding(reason, "; ".join(messages))
    if verdict.taken:
        first = verdict.taken[0]
        return Finding(
            Reason.CONFLICT,
            f"{first.kind} {first.name} belongs to {first.owner} and is left alone. Delete or "
            "rename it, or give the SGLangCluster another name",
        )
    if snapshot.errors:
        return _worst([refusal(*item) for item in sorted(snapshot.errors.items())])
    if verdict.paused and (verdict.missing or not _complete(counts)):
        return Finding(
            Reason.PAUSED,
            f"spec.paused is true: {_replicas(counts.ready)} ready, {counts.desired} wanted, and "
            "nothing is changed until it is false",
        )
    if _complete(counts) and not verdict.missing and not verdict.awaited:
        if counts.desired == 0:
            return Finding(Reason.SCALED_TO_ZERO, "spec.replicas is 0: no engine runs")
        verb = "serves" if counts.fresh == 1 else "serve"
        message = f"{_replicas(counts.fresh)} of the current revision {verb}"
        return Finding(Reason.SERVING, message + _meddled(snapshot, verdict))
    return _fault(snapshot, verdict) or _progress(verdict, counts)


def _meddled(snapshot: Snapshot, verdict: Verdict) -> str:
    """A word about a pod template that is not the one we wrote.

    The Deployment controller counts its versions; we write one and never another.
    """
    for key, live in snapshot.children.items():
        if key.kind == "Deployment" and revision_of(live) == verdict.revision:
            versions = (live["metadata"].get("annotations") or {}).get(TEMPLATE_VERSIONS, "1")
            if versions != "1":
                return (
                    f", with a pod template that somebody else has changed in Deployment {key.name}"
                    " and that the next change of the spec replaces"
                )
    return ""


def _complete(counts: Counts) -> bool:
    return counts.desired == counts.current == counts.updated == counts.fresh


def _fault(snapshot: Snapshot, verdict: Verdict) -> Finding | None:
    """The worst fault among the current revision's pods and its Deployment."""
    found: list[Finding] = []
    for pod in verdict.pods:
        if revision_of(pod) == verdict.revision and is_alive(pod) and not is_ready(pod):
            fault = diagnosis(pod, snapshot.events.get(pod["metadata"].get("uid", ""), ()))
            if fault:
                found.append(fault)
    for key, live in snapshot.children.items():
        if key.kind == "Deployment" and revision_of(live) == verdict.revision:
            found += _not_made(live)
            found += _too_slow(live)
    return _worst(found) if found else None


def _worst(found: list[Finding]) -> Finding:
    """The one that stands first among the reasons, which are in the order of what to mend first."""
    order = list(Reason)
    return min(found, key=lambda fault: (order.index(fault.reason), fault.message))


def _not_made(deployment: Manifest) -> list[Finding]:
    """Pods that the API server refused to the ReplicaSet: quota, policies, webhooks."""
    failure = condition(deployment, "ReplicaFailure")
    if not failure or failure.get("status") != "True":
        return []
    return [refused_pods(failure.get("message") or "")]


def _too_slow(deployment: Manifest) -> list[Finding]:
    """No pod has got ready for too long, and none says why."""
    progress = condition(deployment, "Progressing")
    if not progress or progress.get("reason") != "ProgressDeadlineExceeded":
        return []
    seconds = (deployment.get("spec") or {}).get("progressDeadlineSeconds")
    return [
        Finding(
            Reason.PROGRESS_DEADLINE_EXCEEDED,
            f"no further engine got ready for {seconds} s and none shows a fault. Look into its "
            "log, where the time goes; if it takes so long, raise spec.rollout.progressDeadline",
        )
    ]


def _progress(verdict: Verdict, counts: Counts) -> Finding:
    if verdict.awaited:
        key = verdict.awaited[0]
        return Finding(
            Reason.STARTING,
            f"waiting for {key.kind} {key.name} of a deleted SGLangCluster of this name to go",
        )
    if _complete(counts):
        key = verdict.missing[0]
        return Finding(Reason.STARTING, f"{key.kind} {key.name} is being made")
    if counts.current > counts.updated:
        return Finding(
            Reason.ROLLING_OUT,
            f"revision {verdict.revision}: {counts.fresh} of {counts.desired} replicas updated and "
            f"ready, {counts.current - counts.updated} of older revisions left",
        )
    if counts.current > counts.desired:
        return Finding(
            Reason.SCALING_IN, f"{_replicas(counts.current)} run, {counts.desired} are wanted"
        )
    message = f"{counts.fresh} of {_replicas(counts.desired)} ready"
    if any(revision_of(pod) == verdict.revision and is_downloading(pod) for pod in verdict.pods):
        message += ", a model is being downloaded"
    return Finding(Reason.STARTING, message)


def _replicas(count: int) -> str:
    return f"{count} replica{'' if count == 1 else 's'}"


def _conditions(
    snapshot: Snapshot, counts: Counts, floor: int, finding: Finding
) -> list[dict[str, Any]]:
    ready = finding.reason in (Reason.SERVING, Reason.SCALED_TO_ZERO)
    stalled = finding.reason in NEEDS_THE_USER
    message = finding.message
    if not ready and counts.ready and counts.ready > counts.fresh:
        older = counts.ready - counts.fresh
        verb = "serves" if older == 1 else "serve"
        message += f". {_replicas(older)} of older revisions still {verb}"
    available = counts.ready >= floor
    wanted = [
        ("Ready", ready, finding.reason, message),
        (
            "Available",
            available,
            "MinimumReplicasReady" if available else "MinimumReplicasNotReady",
            f"{counts.ready} of {_replicas(counts.desired)} ready, {floor} needed",
        ),
    ]
    if stalled:
        wanted.append(("Stalled", True, finding.reason, message))
    elif not ready and finding.reason is not Reason.PAUSED:
        wanted.append(("Reconciling", True, finding.reason, message))
    return [_condition(snapshot, *parts) for parts in wanted]


def _condition(
    snapshot: Snapshot, type_: str, holds: bool, reason: str, message: str
) -> dict[str, Any]:
    status = "True" if holds else "False"
    old = _old_condition(snapshot.cluster.get("status") or {}, type_)
    since = snapshot.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    if old and old.get("status") == status and old.get("lastTransitionTime"):
        since = old["lastTransitionTime"]
    return {
        "type": type_,
        "status": status,
        "observedGeneration": snapshot.cluster["metadata"].get("generation", 0),
        "lastTransitionTime": since,
        "reason": str(reason),
        "message": message,
    }


def _old_condition(status: Manifest, type_: str) -> dict[str, Any] | None:
    return next((c for c in status.get("conditions") or [] if c.get("type") == type_), None)


def _events(old: Manifest, finding: Finding) -> tuple[EventRecord, ...]:
    before = _old_condition(old, "Ready")
    if before and before.get("reason") == finding.reason:
        return ()
    message = finding.message[:EVENT_MESSAGE_LIMIT]
    if finding.reason in NEEDS_THE_USER:
        return (EventRecord("Warning", str(finding.reason), message),)
    return (EventRecord("Normal", str(finding.reason), message),)
