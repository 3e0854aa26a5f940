"""From what is to what should be, one step at a time: `plan` is pure and never raises.

A second run on the outcome of the first plans nothing. Everything is decided from the objects in
the snapshot: there is no memory between runs, so a crash or a missed event costs nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sglang_controllers.actions import CONFIG_MAP, Actions, stepped, written
from sglang_controllers.arguments import engine_arguments
from sglang_controllers.children import DEPLOYMENT, own_deployments, own_pods
from sglang_controllers.diagnosis import Finding, lacks_room
from sglang_controllers.manifest import Manifest, ObjectKey, key_of
from sglang_controllers.plan import Plan
from sglang_controllers.pods import condition, is_alive, is_ready, moment, revision_of, uid_of
from sglang_controllers.reasons import Reason
from sglang_controllers.refusals import QUOTA, conflict, refusal
from sglang_controllers.resources.arguments_config_map import arguments_config_map
from sglang_controllers.resources.deployment import deployment
from sglang_controllers.resources.disruption_budget import disruption_budget
from sglang_controllers.resources.service import agents_service, engines_service, service
from sglang_controllers.resources.service_account import service_account
from sglang_controllers.resources.subject import Subject
from sglang_controllers.resources.token_secret import token_secret
from sglang_controllers.rollout import (
    SURGE_PATIENCE_S,
    Goal,
    Step,
    Units,
    goal_of,
    next_step,
)
from sglang_controllers.router_rollout import router_objects, router_steps
from sglang_controllers.routing import Routing, points_to
from sglang_controllers.snapshot import Snapshot
from sglang_controllers.status import Verdict, next_status
from sglang_controllers.understanding import Current, replicas_of, routing_of, understood
from sglang_controllers.warming.slots import Slots, slot_names, slots_of
from sglang_controllers.warming.steps import warming_steps
from sglang_controllers.warming.told import Warmth, warmth

LOOK_AGAIN_S = 10
"""While a cluster is not ready: events, which say why, are not watched but asked for."""

SOON_S = 2
"""While routers have yet to find engines, or pods to see their prompts, which no event tells."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A snapshot, read: what is wanted, and what there is of it.

    `current` is None when the spec is not understood, `runnable` also when it cannot be run.
    `routable` is there as long as what is wrong is about new engines only. `behind` are those whom the
    cluster's Service should point to.
    """

    snapshot: Snapshot
    subject: Subject
    current: Current | None
    runnable: Current | None
    routable: Current | None
    behind: Subject
    deployments: tuple[Manifest, ...]
    pods: tuple[Manifest, ...]
    routing: Routing


def plan(snapshot: Snapshot) -> Plan:
    """The writes that bring the cluster one step nearer to its spec, and its status."""
    meta = snapshot.cluster["metadata"]
    if meta.get("deletionTimestamp"):
        return Plan()  # garbage collection removes what the cluster owns
    subject = Subject(meta["namespace"], meta["name"], meta["uid"])
    raw = snapshot.cluster.get("spec") or {}
    deployments = own_deployments(snapshot, subject)
    pods = own_pods(snapshot, deployments)
    current, problems = understood(raw, deployments)
    routing = routing_of(snapshot, subject, current)
    # Engines that run need their routers, whatever the next ones lack. A first one makes none yet.
    keeps = problems is not None and problems.reason is Reason.BAD_ENGINE_ARGS and deployments
    routable = current if problems is None or keeps else None
    wanted = routable.spec.router if routable else None
    scene = Scene(
        snapshot,
        subject,
        current,
        None if problems else current,
        routable,
        points_to(wanted, subject, snapshot.children, routing),
        deployments,
        pods,
        routing,
    )
    desired = current.spec.replicas if current else replicas_of(raw)
    goal = goal_of(current.spec.rollout, desired) if current else Goal(desired)
    slots = _slots(scene)
    steps = _actions(scene, _step(goal, scene))
    prompts, unseen = _prompts(scene, slots, steps)
    copies = {ObjectKey(CONFIG_MAP, name) for name in slot_names(subject)}
    # A copy that cannot be made is told in Warmed: engines serve without.
    about_copies = _refused(snapshot, prompts, copies)
    actions = replace(prompts, taken=(), awaited=()).joined(steps)
    errors = {key: error for key, error in snapshot.errors.items() if key not in copies}
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
        routing=scene.routing,
        behind_routers=scene.behind.role != subject.role,
        paused=paused,
        held_back=bool(actions.create or actions.apply or actions.delete),
        # Prompts that come while engines serve make nothing wait.
        missing=tuple(map(key_of, steps.create)),
        warmth=_warmth(scene, slots, about_copies),
    )
    status, events, reason = next_status(replace(snapshot, errors=errors), verdict)
    asks = actions.ask and not paused
    searching = not paused and (
        reason is Reason.ROUTER_NOT_READY or unseen or any(map(routing.lacks, pods))
    )
    return Plan(
        create=() if paused else (*_token(scene, actions), *actions.create),
        apply=() if paused else actions.apply,
        delete=() if paused else actions.delete,
        status=status,
        events=events,
        ask=asks or searching,
        again_after_s=0 if asks else SOON_S if searching else _again_after_s(reason, slots),
        aside=() if paused else tuple(sorted(_names(prompts) & {key.name for key in copies})),
    )


def _names(actions: Actions) -> set[str]:
    """Of objects that are made or changed."""
    manifests = (*actions.create, *(apply.manifest for apply in actions.apply))
    return {manifest["metadata"]["name"] for manifest in manifests}


def _refused(snapshot: Snapshot, prompts: Actions, copies: set[ObjectKey]) -> Finding | None:
    """Why prompts are not copied, the first reason; None: they are."""
    if prompts.taken:
        return conflict(prompts.taken[0])
    errors = sorted(item for item in snapshot.errors.items() if item[0] in copies)
    return refusal(*errors[0]) if errors else None


def _again_after_s(reason: Reason, slots: Slots | None) -> float | None:
    rests = reason in (Reason.SERVING, Reason.SCALED_TO_ZERO) and slots is not None
    return None if rests else LOOK_AGAIN_S


def _slots(scene: Scene) -> Slots | None:
    """None: it is not known yet what is to be in them."""
    if scene.current is None:
        return None
    warming = scene.current.spec.cache.warming
    prompts = warming.prompts_from if warming else ()
    return slots_of(scene.subject, prompts, scene.snapshot.warming_sources)


def _prompts(scene: Scene, slots: Slots | None, steps: Actions) -> tuple[Actions, bool]:
    """Prompts on their way into pods. They are there before the first pod starts."""
    if slots is None or scene.current is None:
        return Actions(), False
    # Of two applies to one pod, the second would undo the first.
    taken = {a.manifest["metadata"]["name"] for a in steps.apply if a.manifest["kind"] == "Pod"}
    pods = [pod for pod in scene.pods if pod["metadata"]["name"] not in taken]
    return warming_steps(scene.snapshot, scene.subject, slots, scene.current.revision.name, pods)


def _warmth(scene: Scene, slots: Slots | None, refused: Finding | None) -> Warmth | None:
    warming = scene.current.spec.cache.warming if scene.current else None
    if scene.current is None or warming is None:
        return None
    revision, reports = scene.current.revision.name, scene.snapshot.engine_reports
    return warmth(warming, slots, revision, scene.pods, reports, refused)


def _actions(scene: Scene, step: Step) -> Actions:
    snapshot, subject = scene.snapshot, scene.subject
    actions = written(snapshot, subject, [*_standing(scene), *_of_the_revision(scene, step)])
    actions = actions.joined(stepped(snapshot, subject, step, scene.runnable, scene.pods))
    return actions.joined(_router_actions(scene))


def _router_actions(scene: Scene) -> Actions:
    snapshot, subject, spec = scene.snapshot, scene.subject, scene.routable
    if spec is None:
        return Actions()  # routers stay as they are
    live = own_deployments(snapshot, subject.router)
    objects = router_objects(subject, spec.spec, scene.routing, live, snapshot.images)
    actions = written(snapshot, subject, objects)
    if actions.taken:  # nothing may run with, or give rights to, what is somebody else's
        return Actions(taken=actions.taken)
    serve = any(map(is_ready, scene.pods))
    apply, gone = router_steps(subject, scene.routing, live, snapshot.children, engines_serve=serve)
    return actions.joined(Actions(apply=apply, delete=gone))


def _standing(scene: Scene) -> list[Manifest]:
    """Objects that exist once a cluster, also while its spec cannot be run."""
    subject = scene.subject
    if scene.current is None:
        return [service_account(subject)]
    spec = scene.current.spec
    peers = spec.cache.warming.from_peers if spec.cache.warming else None
    return [
        service_account(subject),
        service(subject, spec.service, scene.behind),
        engines_service(subject),
        # When nobody wants it any more it stays: engines that still run may ask it, and it costs
        # nothing.
        *([agents_service(subject)] if peers else []),
        disruption_budget(subject, spec.disruption),
    ]


def _of_the_revision(scene: Scene, step: Step) -> list[Manifest]:
    """Objects of the current revision, its Deployment only where it is to be made."""
    current, subject = scene.runnable, scene.subject
    if current is None:
        return []
    name, images = current.revision.name, scene.snapshot.images
    arguments = engine_arguments(current.spec, cluster_name=subject.name)
    wanted = [arguments_config_map(subject, name, arguments)]
    if step.new and name not in map(revision_of, scene.deployments):
        replicas = step.new.wanted
        wanted.append(deployment(subject, current.spec, current.revision, replicas, images))
    return wanted


def _token(scene: Scene, actions: Actions) -> tuple[Manifest, ...]:
    """The agents' Secret, which cannot be looked at: for a first Deployment, or when one lacks it."""
    reports = (
        scene.snapshot.engine_reports.get(uid_of(pod)) for pod in scene.pods if is_alive(pod)
    )
    lacks = any(report is not None and not report.has_token for report in reports)
    makes = any(key_of(manifest).kind == DEPLOYMENT for manifest in actions.create)
    return (token_secret(scene.subject),) if lacks or (makes and not scene.deployments) else ()


def _step(goal: Goal, scene: Scene) -> Step:
    """What the rollout asks for next, counted in pods."""
    pods, now = scene.pods, scene.snapshot.now
    units = {revision_of(live): _units(live, pods) for live in scene.deployments}
    if scene.runnable is None:
        return next_step(goal, None, tuple(units.values()), no_room=False)
    name = scene.runnable.revision.name
    new = units.pop(name, Units(name, 0, 0))
    # A new engine that a router has not found yet takes nobody's place. An old one that a router
    # does not list still serves those of the other routers.
    found = [pod for pod in pods if scene.routing.seen(pod)]
    new = replace(new, ready=_ready(name, found))
    no_room = _short_of_room(name, pods, now) or _short_of_quota(name, scene.deployments, now)
    return next_step(goal, new, tuple(units.values()), no_room=no_room)


def _units(live: Manifest, pods: Iterable[Manifest]) -> Units:
    revision = revision_of(live)
    wanted = (live.get("spec") or {}).get("replicas", 1)
    return Units(revision, wanted, _ready(revision, pods))


def _ready(revision: str, pods: Iterable[Manifest]) -> int:
    return sum(1 for pod in pods if revision_of(pod) == revision and is_ready(pod))


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
