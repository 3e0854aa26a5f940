"""From what is to what should be, one step at a time: `plan` is pure and never raises.

A second run on the outcome of the first plans nothing. Everything is decided from the objects in
the snapshot: there is no memory between runs, so a crash or a missed event costs nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sglang_controllers import names
from sglang_controllers.api import ClusterSpec, InvalidSpec, parse_spec
from sglang_controllers.arguments import argument_problems, engine_arguments
from sglang_controllers.diagnosis import lacks_room
from sglang_controllers.drift import differs
from sglang_controllers.manifest import Manifest, ObjectKey, key_of
from sglang_controllers.ownership import Taken, describe, is_ours, is_predecessors
from sglang_controllers.plan import Apply, Delete, Plan
from sglang_controllers.pods import condition, is_alive, is_over, is_ready, moment, revision_of
from sglang_controllers.podtemplate import template_problems
from sglang_controllers.reasons import Reason
from sglang_controllers.refusals import QUOTA
from sglang_controllers.resources.arguments_config_map import arguments_config_map
from sglang_controllers.resources.deployment import (
    deployment,
    deployment_step,
    progress_deadline_s,
)
from sglang_controllers.resources.disruption_budget import disruption_budget
from sglang_controllers.resources.service import service
from sglang_controllers.resources.service_account import service_account
from sglang_controllers.resources.subject import Subject
from sglang_controllers.revision import Revision, new_revision, spec_hash, usual_names
from sglang_controllers.rollout import (
    SURGE_PATIENCE_S,
    Goal,
    Step,
    Units,
    goal_of,
    next_step,
)
from sglang_controllers.snapshot import Snapshot
from sglang_controllers.status import Verdict, next_status

LOOK_AGAIN_S = 10
"""While a cluster is not ready: events, which say why, are not watched but asked for."""

GARBAGE_S = 60
"""Garbage collection has reached the pods of a deleted Deployment by then."""

DEPLOYMENT = "Deployment"
CONFIG_MAP = "ConfigMap"


@dataclass(frozen=True, slots=True)
class Problems:
    """Why the current spec cannot be run at all."""

    reason: Reason
    messages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Current:
    """The spec, understood, and the revision it stands for."""

    spec: ClusterSpec
    revision: Revision


@dataclass(frozen=True, slots=True)
class Actions:
    create: tuple[Manifest, ...] = ()
    apply: tuple[Apply, ...] = ()
    delete: tuple[Delete, ...] = ()
    taken: tuple[Taken, ...] = ()
    awaited: tuple[ObjectKey, ...] = ()
    """Objects of a deleted predecessor, still in the way."""


def plan(snapshot: Snapshot) -> Plan:
    """The writes that bring the cluster one step nearer to its spec, and its status."""
    meta = snapshot.cluster["metadata"]
    if meta.get("deletionTimestamp"):
        return Plan()  # garbage collection removes what the cluster owns
    subject = Subject(meta["namespace"], meta["name"], meta["uid"])
    raw = snapshot.cluster.get("spec") or {}
    current, problems = _understood(raw, snapshot, subject)
    desired = current.spec.replicas if current else _replicas(raw)
    goal = goal_of(current.spec.rollout, desired) if current else Goal(desired)
    deployments = _own_deployments(snapshot, subject)
    pods = _own_pods(snapshot, deployments)
    runnable = current if not problems else None
    step = _step(goal, runnable, deployments, pods, snapshot.now)
    actions = _actions(snapshot, subject, runnable, step, _standing(subject, current))
    paused = raw.get("paused") is True
    verdict = Verdict(
        subject=subject,
        desired=desired,
        floor=goal.floor,
        revision=current.revision.name if current else None,
        problem=(problems.reason, problems.messages) if problems else None,
        taken=actions.taken,
        awaited=actions.awaited,
        pods=pods,
        paused=paused,
        missing=tuple(key_of(manifest) for manifest in actions.create),
    )
    status, events, settled = next_status(snapshot, verdict)
    return Plan(
        create=() if paused else actions.create,
        apply=() if paused else actions.apply,
        delete=() if paused else actions.delete,
        status=status,
        events=events,
        again_after_s=None if settled else LOOK_AGAIN_S,
    )


def _understood(
    raw: Mapping[str, object], snapshot: Snapshot, subject: Subject
) -> tuple[Current | None, Problems | None]:
    try:
        spec = parse_spec(raw)
    except InvalidSpec as error:
        return None, Problems(Reason.INVALID_SPEC, error.problems)
    current = Current(spec, _revision(raw, snapshot, subject))
    if wrong := template_problems(spec.pod_template):
        return current, Problems(Reason.INVALID_SPEC, wrong)
    if wrong := argument_problems(spec):
        return current, Problems(Reason.BAD_ENGINE_ARGS, wrong)
    return current, None


def _replicas(raw: Mapping[str, object]) -> int:
    """Wanted replicas of a spec that is otherwise not understood."""
    replicas = raw.get("replicas", 1)
    return replicas if isinstance(replicas, int) and replicas >= 0 else 1


def _revision(raw: Mapping[str, object], snapshot: Snapshot, subject: Subject) -> Revision:
    """The revision of a spec: the one it was given when its Deployment was made, if it has one."""
    whole = spec_hash(raw)
    taken: set[str] = set()
    usual = usual_names(whole)
    for live in _own_deployments(snapshot, subject):
        made_from = spec_hash_of(live)
        # Without the annotation, which somebody has removed, the name is as good a witness.
        if made_from == whole or (made_from is None and revision_of(live) in usual):
            return Revision(revision_of(live), whole)
        taken.add(revision_of(live))
    return new_revision(whole, taken)


def spec_hash_of(deployment_: Manifest) -> str | None:
    annotations = deployment_["metadata"].get("annotations") or {}
    found = annotations.get(names.SPEC_HASH_ANNOTATION)
    return str(found) if found else None


def _own_deployments(snapshot: Snapshot, subject: Subject) -> tuple[Manifest, ...]:
    """Our Deployments that are not being deleted, the oldest first."""
    ours = (
        live
        for key, live in snapshot.children.items()
        if key.kind == DEPLOYMENT
        and is_ours(live, subject)
        and not live["metadata"].get("deletionTimestamp")
        and revision_of(live)
    )
    return tuple(sorted(ours, key=_age))


def _deployment_step(
    subject: Subject, units: Units, live: Manifest, current: Current | None
) -> Manifest:
    deadline, whole = (live.get("spec") or {}).get("progressDeadlineSeconds"), spec_hash_of(live)
    if current and units.revision == current.revision.name:
        deadline, whole = progress_deadline_s(current.spec), current.revision.spec_hash
    return deployment_step(subject, units.revision, units.wanted, whole, deadline)


def _age(live: Manifest) -> tuple[str, str]:
    return (live["metadata"].get("creationTimestamp") or "", live["metadata"]["name"])


def _own_pods(snapshot: Snapshot, deployments: Iterable[Manifest]) -> tuple[Manifest, ...]:
    """Pods of our Deployments, not of deleted ones that had the same name.

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


def _step(
    goal: Goal,
    current: Current | None,
    deployments: tuple[Manifest, ...],
    pods: tuple[Manifest, ...],
    now: datetime,
) -> Step:
    """What the rollout asks for next, counted in pods."""
    units = {revision_of(live): _units(live, pods) for live in deployments}
    if current is None:
        return next_step(goal, None, tuple(units.values()), no_room=False)
    name = current.revision.name
    new = units.pop(name, Units(name, 0, 0))
    no_room = _short_of_room(name, pods, now) or _short_of_quota(name, deployments, now)
    return next_step(goal, new, tuple(units.values()), no_room=no_room)


def _units(live: Manifest, pods: Iterable[Manifest]) -> Units:
    revision = revision_of(live)
    ready = sum(1 for pod in pods if revision_of(pod) == revision and is_ready(pod))
    return Units(revision, (live.get("spec") or {}).get("replicas", 1), ready)


def _short_of_room(revision: str, pods: Iterable[Manifest], now: datetime) -> bool:
    """A pod of the revision has waited long enough for a node with room."""
    for pod in pods:
        if revision_of(pod) != revision or not is_alive(pod) or not lacks_room(pod):
            continue
        if _lasts(condition(pod, "PodScheduled"), now):
            return True
    return False


def _short_of_quota(revision: str, deployments: Iterable[Manifest], now: datetime) -> bool:
    """A quota has kept a pod of the revision from being made for long enough."""
    for live in deployments:
        failure = condition(live, "ReplicaFailure")
        if revision_of(live) == revision and failure and failure.get("status") == "True":
            return QUOTA in (failure.get("message") or "") and _lasts(failure, now)
    return False


def _lasts(found: Manifest | None, now: datetime) -> bool:
    """The condition has been so for SURGE_PATIENCE_S."""
    since = moment((found or {}).get("lastTransitionTime"))
    return since is None or now - since >= timedelta(seconds=SURGE_PATIENCE_S)


def _standing(subject: Subject, current: Current | None) -> list[Manifest]:
    """Objects that exist once a cluster, also while its spec cannot be run."""
    if current is None:
        return [service_account(subject)]
    spec = current.spec
    return [
        service_account(subject),
        service(subject, spec.service),
        disruption_budget(subject, spec.disruption),
    ]


def _actions(
    snapshot: Snapshot,
    subject: Subject,
    current: Current | None,
    step: Step,
    standing: list[Manifest],
) -> Actions:
    """What to write. `current` is None when the spec cannot be run."""
    wanted = list(standing)
    live_revisions = {revision_of(live): live for live in _own_deployments(snapshot, subject)}
    if current and step.new and current.revision.name not in live_revisions:
        arguments = engine_arguments(current.spec, cluster_name=subject.name)
        wanted += [
            arguments_config_map(subject, current.revision.name, arguments),
            deployment(subject, current.spec, current.revision, step.new.wanted, snapshot.images),
        ]
    elif current:
        arguments = engine_arguments(current.spec, cluster_name=subject.name)
        wanted.append(arguments_config_map(subject, current.revision.name, arguments))
    create, apply, taken, awaited = [], [], [], []
    for manifest in wanted:
        key = key_of(manifest)
        live = snapshot.children.get(key)
        if live is None:
            create.append(manifest)
        elif is_predecessors(live, subject) or live["metadata"].get("deletionTimestamp"):
            awaited.append(key)
        elif not is_ours(live, subject):
            taken.append(Taken(*key, describe(live)))
        elif key.kind == CONFIG_MAP:  # its data is immutable: labels and owner are left to mend
            mended = {k: manifest[k] for k in ("apiVersion", "kind", "metadata")}
            if differs(mended, live):
                apply.append(Apply(mended, live["metadata"]["uid"], complete=False))
        elif differs(manifest, live):
            apply.append(Apply(manifest, live["metadata"]["uid"], complete=True))
    scaled, gone = _stepped(snapshot, subject, step, live_revisions, current)
    return Actions(
        tuple(create), (*apply, *scaled), gone, taken=tuple(taken), awaited=tuple(awaited)
    )


def _stepped(
    snapshot: Snapshot,
    subject: Subject,
    step: Step,
    live_revisions: Mapping[str, Manifest],
    current: Current | None,
) -> tuple[tuple[Apply, ...], tuple[Delete, ...]]:
    """Scale existing Deployments; remove older ones that are empty, with their ConfigMap.

    `current` is None when the spec cannot be run.
    """
    new = (step.new,) if step.new else ()
    apply = []
    for units in (*new, *step.old):
        live = live_revisions.get(units.revision)
        if live:
            manifest = _deployment_step(subject, units, live, current)
            if differs(manifest, live):
                apply.append(Apply(manifest, live["metadata"]["uid"], complete=False))
    kept = {units.revision for units in new}
    # Without a usable spec there is no telling which revision will be wanted next.
    empty = {
        units.revision
        for units in step.old
        if step.new
        and units.wanted == 0
        and not any(revision_of(p) == units.revision and not is_over(p) for p in snapshot.pods)
        and (live_revisions[units.revision].get("spec") or {}).get("replicas") == 0
    }
    gone = [
        Delete(key.kind, key.name, live["metadata"]["uid"])
        for key, live in snapshot.children.items()
        if key.kind in (DEPLOYMENT, CONFIG_MAP)
        and is_ours(live, subject)
        and not live["metadata"].get("deletionTimestamp")
        and revision_of(live) not in kept
        and (
            revision_of(live) in empty
            or (key.kind == CONFIG_MAP and step.new and revision_of(live) not in live_revisions)
        )
    ]
    return tuple(apply), tuple(sorted(gone, key=lambda delete: (delete.kind, delete.name)))
