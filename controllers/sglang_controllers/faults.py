"""The worst of what is wrong with pods and Deployments of the current revisions."""

from sglang_controllers.children import DEPLOYMENT
from sglang_controllers.diagnosis import Finding, diagnosis
from sglang_controllers.manifest import Manifest
from sglang_controllers.pods import condition, is_alive, is_ready, revision_of, role_of, uid_of
from sglang_controllers.reasons import Reason
from sglang_controllers.refusals import refused_pods
from sglang_controllers.resources.subject import Subject
from sglang_controllers.router_diagnosis import router_fault
from sglang_controllers.routing import Routing
from sglang_controllers.snapshot import Snapshot


def worst_fault(
    snapshot: Snapshot,
    subject: Subject,
    revision: str | None,
    pods: tuple[Manifest, ...],
    routing: Routing,
) -> Finding | None:
    """`pods` are the engines' of all revisions. None: no fault is seen."""
    found: list[Finding] = []
    for pod in pods:
        if revision_of(pod) == revision and is_alive(pod) and not is_ready(pod):
            fault = diagnosis(pod, snapshot.events.get(uid_of(pod), ()))
            found += [fault] if fault else []
    for live in _deployments(snapshot, subject, revision):
        found += [*_not_made(live), *_too_slow(live)]
    for pod in routing.updated:
        if not is_ready(pod):
            fault = router_fault(pod, snapshot.events.get(uid_of(pod), ()))
            found += [fault] if fault else []
    routers = routing.revision.name if routing.revision else None
    for live in _deployments(snapshot, subject.router, routers):
        found += _not_made(live)
    return worst(found) if found else None


def _deployments(snapshot: Snapshot, subject: Subject, revision: str | None) -> list[Manifest]:
    return [
        live
        for key, live in snapshot.children.items()
        if key.kind == DEPLOYMENT
        and role_of(live) == subject.role
        and revision_of(live) == revision
    ]


def worst(found: list[Finding]) -> Finding:
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
