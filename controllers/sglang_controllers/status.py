"""What status says, by kstatus' rules: Ready always, Reconciling and Stalled only when true.

Counts and messages change on transitions only, so that a cluster at rest is never written to.
"""

from dataclasses import dataclass
from typing import Any, Literal

from sglang_controllers import names
from sglang_controllers.diagnosis import Finding
from sglang_controllers.faults import worst, worst_fault
from sglang_controllers.manifest import Manifest, ObjectKey
from sglang_controllers.ownership import Taken
from sglang_controllers.plan import EventRecord
from sglang_controllers.pods import is_alive, is_downloading, is_ready, revision_of
from sglang_controllers.reasons import NEEDS_THE_USER, Reason
from sglang_controllers.refusals import conflict, refusal
from sglang_controllers.reports import CUT
from sglang_controllers.resources.metadata import selector
from sglang_controllers.resources.subject import Subject
from sglang_controllers.routing import Routing
from sglang_controllers.snapshot import Snapshot
from sglang_controllers.warming.told import QUIET, Warmth

CONDITIONS = frozenset({"Ready", "Available", "Reconciling", "Stalled", "Warmed"})
"""Types of conditions that are ours. Others may add theirs."""

TEMPLATE_VERSIONS = "deployment.kubernetes.io/revision"

EVENT_MESSAGE_LIMIT = 1000
"""The API server takes 1,024 characters."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the planner found out, for status to say.

    `floor` ready replicas are enough to be available. `revision` is None when the spec cannot be
    understood. `behind_routers`: the cluster's Service points to them. `missing` are objects still
    to be made, `held_back` says that there is anything to write. `warmth` None: nothing is warmed.
    """

    subject: Subject
    desired: int
    floor: int
    revision: str | None
    problem: tuple[Reason, tuple[str, ...]] | None
    taken: tuple[Taken, ...]
    awaited: tuple[ObjectKey, ...]
    pods: tuple[Manifest, ...]
    routing: Routing
    behind_routers: bool
    paused: bool
    held_back: bool
    missing: tuple[ObjectKey, ...]
    warmth: Warmth | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """Pods of the role: `updated` and `fresh` (updated and ready) are of the current revision.

    `reached`: ready ones that clients get to, as far as is known.
    """

    desired: int
    current: int
    updated: int
    ready: int
    fresh: int
    reached: int


def next_status(
    snapshot: Snapshot, verdict: Verdict
) -> tuple[Manifest | None, tuple[EventRecord, ...], Reason]:
    """The whole new status (None: as it is), events about the change, and why it is so."""
    counts = _counts(verdict)
    finding = _finding(snapshot, verdict, counts)
    old = snapshot.cluster.get("status") or {}
    conditions = _conditions(snapshot, verdict, counts, finding)
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
    if verdict.warmth:
        status["warming"] = _summary(old, verdict.warmth)
    events = (
        *_events(old, finding),
        *_warming_events(old, verdict.warmth),
        *cut_drains(snapshot),
    )
    return (None if _says(old, status) else status), events, finding.reason


def _says(old: Manifest, status: Manifest) -> bool:
    """Whether `old` says the same already, whatever others have added to it."""
    ours = {key: old.get(key) for key in ("warming", *status)}
    mine = [c for c in old.get("conditions") or [] if c.get("type") in CONDITIONS]
    ours["conditions"] = sorted(mine, key=_type)
    wanted = {"warming": None} | status
    return ours == wanted | {"conditions": sorted(status["conditions"], key=_type)}


def _summary(old: Manifest, warmth: Warmth) -> Manifest:
    """Prompts that are repeated count their tokens anew: those of the last change are told."""
    before = old.get("warming") or {}
    same = {**warmth.summary, "tokens": before.get("tokens")} == {"tokens": None} | before
    return before if same else warmth.summary


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
        reached=sum(
            1
            for pod in alive
            if is_ready(pod) and (not verdict.behind_routers or verdict.routing.reaches(pod))
        ),
    )


def _finding(snapshot: Snapshot, verdict: Verdict, counts: Counts) -> Finding:
    """The one thing that a user should read first."""
    if verdict.problem:
        reason, messages = verdict.problem
        return Finding(reason, "; ".join(messages))
    if verdict.taken:
        return conflict(verdict.taken[0])
    if snapshot.errors:
        return worst([refusal(*item) for item in sorted(snapshot.errors.items())])
    if verdict.paused and (verdict.held_back or not _complete(counts)):
        return Finding(
            Reason.PAUSED,
            f"spec.paused is true: {_replicas(counts.ready)} ready, {counts.desired} wanted, and "
            "nothing is changed until it is false",
        )
    if _complete(counts) and not verdict.missing and not verdict.awaited:
        if counts.desired == 0:
            return Finding(Reason.SCALED_TO_ZERO, "spec.replicas is 0: no engine runs")
        unrouted = _unrouted(snapshot, verdict)
        if unrouted is None:
            verb = "serves" if counts.fresh == 1 else "serve"
            message = f"{_replicas(counts.fresh)} of the current revision {verb}"
            return Finding(Reason.SERVING, message + _meddled(snapshot, verdict))
        return _fault(snapshot, verdict) or unrouted
    return _fault(snapshot, verdict) or _progress(verdict, counts)


def _unrouted(snapshot: Snapshot, verdict: Verdict) -> Finding | None:
    """What keeps clients from all engines, which are ready; None: nothing does."""
    routing, reason = verdict.routing, Reason.ROUTER_NOT_READY
    if not routing.enabled:
        return None
    if not routing.complete:
        ready = sum(map(is_ready, routing.updated))
        message = f"{ready} of {_routers(routing.wanted)} ready"
        if routing.older:
            message += f", {len(routing.older)} with older settings left"
        return Finding(reason, message)
    engines = [pod for pod in verdict.pods if is_ready(pod)]
    unseen = [pod["metadata"]["name"] for pod in engines if not routing.seen(pod)]
    if unseen:
        return Finding(reason, f"not every router has found engine {unseen[0]} yet")
    # A router that does not answer has seen all engines, unless they or it are new.
    if routing.proved(engines) or _serves(snapshot):
        return None
    return Finding(
        reason,
        "routers are ready, but one does not tell the operator which engines it has found: "
        f"let the operator reach port {names.ROUTER_LIST_PORT} of their pods",
    )


def _serves(snapshot: Snapshot) -> bool:
    """Status says Serving, of this generation."""
    status = snapshot.cluster.get("status") or {}
    ready = _old_condition(status, "Ready") or {}
    generation = snapshot.cluster["metadata"].get("generation", 0)
    return ready.get("reason") == Reason.SERVING and (ready.get("observedGeneration") == generation)


def _routers(count: int) -> str:
    return f"{count} router{'' if count == 1 else 's'}"


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
    return worst_fault(snapshot, verdict.subject, verdict.revision, verdict.pods, verdict.routing)


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
        lacking = [pod["metadata"]["name"] for pod in verdict.pods if verdict.routing.lacks(pod)]
        return Finding(
            Reason.ROLLING_OUT,
            f"revision {verdict.revision}: {counts.fresh} of {counts.desired} replicas updated and "
            f"ready, {counts.current - counts.updated} of older revisions left"
            + (f"; not every router has found engine {lacking[0]} yet" if lacking else ""),
        )
    if counts.current > counts.desired:
        return Finding(
            Reason.SCALING_IN, f"{_replicas(counts.current)} run, {counts.desired} are wanted"
        )
    message = f"{counts.fresh} of {_replicas(counts.desired)} ready"
    warmth = verdict.warmth
    if warmth and warmth.gated:
        waits = "waits until its prompts are" if warmth.gated == 1 else "wait until prompts are"
        return Finding(
            Reason.WARMING, f"{message}, {warmth.gated} {waits} warmed, at most {warmth.gate}"
        )
    if any(revision_of(pod) == verdict.revision and is_downloading(pod) for pod in verdict.pods):
        message += ", a model is being downloaded"
    return Finding(Reason.STARTING, message)


def _replicas(count: int) -> str:
    return f"{count} replica{'' if count == 1 else 's'}"


def _conditions(
    snapshot: Snapshot, verdict: Verdict, counts: Counts, finding: Finding
) -> list[dict[str, Any]]:
    floor = verdict.floor
    ready = finding.reason in (Reason.SERVING, Reason.SCALED_TO_ZERO)
    stalled = finding.reason in NEEDS_THE_USER
    message = finding.message
    if not ready and counts.ready and counts.ready > counts.fresh:
        older = counts.ready - counts.fresh
        verb = "serves" if older == 1 else "serve"
        message += f". {_replicas(older)} of older revisions still {verb}"
    available = counts.reached >= floor
    unreached = counts.ready - counts.reached
    wanted = [
        ("Ready", ready, finding.reason, message),
        (
            "Available",
            available,
            "MinimumReplicasReady" if available else "MinimumReplicasNotReady",
            f"{counts.ready} of {_replicas(counts.desired)} ready"
            + (f", {unreached} of them through no router" if unreached else "")
            + f", {floor} needed",
        ),
    ]
    if stalled:
        wanted.append(("Stalled", True, finding.reason, message))
    elif not ready and finding.reason is not Reason.PAUSED:
        wanted.append(("Reconciling", True, finding.reason, message))
    told = [(type_, str(holds), why, words) for type_, holds, why, words in wanted]
    if verdict.warmth:
        warmed = verdict.warmth.condition
        told.append(("Warmed", warmed.status, warmed.reason, warmed.message))
    return [_condition(snapshot, *parts) for parts in told]


def _condition(
    snapshot: Snapshot, type_: str, status: str, reason: str, message: str
) -> dict[str, Any]:
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


def cut_drains(snapshot: Snapshot) -> tuple[EventRecord, ...]:
    """What was lost is told, once for each pod: no later status shows it."""
    return tuple(
        EventRecord(
            "Warning",
            "DrainCut",
            f"pod {drain.pod} was stopped after {drain.seconds:.0f} s, with requests in flight: "
            f"{'an unknown number' if drain.in_flight is None else drain.in_flight}. "
            "engine.drainTimeout was over; raise it if they should have ended",
            once=drain.uid,
        )
        for drain in snapshot.drains
        if drain.outcome == CUT
    )


def _events(old: Manifest, finding: Finding) -> tuple[EventRecord, ...]:
    before = _old_condition(old, "Ready")
    if before and before.get("reason") == finding.reason:
        return ()
    message = finding.message[:EVENT_MESSAGE_LIMIT]
    if finding.reason in NEEDS_THE_USER:
        return (EventRecord("Warning", str(finding.reason), message),)
    return (EventRecord("Normal", str(finding.reason), message),)


def _warming_events(old: Manifest, warmth: Warmth | None) -> tuple[EventRecord, ...]:
    if warmth is None:
        return ()
    told, before = warmth.condition, _old_condition(old, "Warmed")
    if told.reason in QUIET or (before and before.get("reason") == told.reason):
        return ()
    type_: Literal["Normal", "Warning"] = "Normal" if told.status == "True" else "Warning"
    return (EventRecord(type_, told.reason, told.message[:EVENT_MESSAGE_LIMIT]),)
