"""From objects that are wanted to writes, and the writes that a rollout's step asks for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sglang_controllers.children import DEPLOYMENT, own_deployments, spec_hash_of
from sglang_controllers.drift import differs
from sglang_controllers.manifest import Manifest, ObjectKey, key_of
from sglang_controllers.names import DELETION_COST, WARMING_ANNOTATION
from sglang_controllers.ownership import Taken, describe, is_ours, is_predecessors
from sglang_controllers.plan import Apply, Delete
from sglang_controllers.pods import is_over, revision_of
from sglang_controllers.resources.deployment import deployment_step, progress_deadline_s
from sglang_controllers.resources.subject import Subject
from sglang_controllers.rollout import Step, Units
from sglang_controllers.scale_in import deletion_costs, must_ask
from sglang_controllers.snapshot import Snapshot
from sglang_controllers.understanding import Current
from sglang_controllers.warming.slots import slot_names
from sglang_controllers.warming.sources import FIELDS, digests_of

CONFIG_MAP = "ConfigMap"


@dataclass(frozen=True, slots=True)
class Actions:
    """Writes, and what stands in their way.

    `awaited` are objects of a deleted predecessor. `ask`: agents have to be asked first.
    """

    create: tuple[Manifest, ...] = ()
    apply: tuple[Apply, ...] = ()
    delete: tuple[Delete, ...] = ()
    taken: tuple[Taken, ...] = ()
    awaited: tuple[ObjectKey, ...] = ()
    ask: bool = False

    def joined(self, other: "Actions") -> "Actions":
        return Actions(
            (*self.create, *other.create),
            (*self.apply, *other.apply),
            (*self.delete, *other.delete),
            (*self.taken, *other.taken),
            (*self.awaited, *other.awaited),
            self.ask or other.ask,
        )


def written(snapshot: Snapshot, subject: Subject, wanted: Iterable[Manifest]) -> Actions:
    """Create what is missing, apply what differs, and leave alone what is somebody else's."""
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
        elif manifest.get("immutable"):  # a ConfigMap: labels and owner are left to mend
            mended = {k: manifest[k] for k in ("apiVersion", "kind", "metadata")}
            if differs(mended, live):
                apply.append(Apply(mended, live["metadata"]["uid"], complete=False))
        elif differs(_as_known(manifest), live):
            apply.append(Apply(manifest, live["metadata"]["uid"], complete=True))
    return Actions(tuple(create), tuple(apply), (), tuple(taken), tuple(awaited))


def _as_known(manifest: Manifest) -> Manifest:
    """What a snapshot would have of it: of a ConfigMap's content the digests."""
    if manifest["kind"] != CONFIG_MAP:
        return manifest
    kept = {name: value for name, value in manifest.items() if name not in FIELDS}
    return kept | {"digests": digests_of(manifest)}


def stepped(
    snapshot: Snapshot,
    subject: Subject,
    step: Step,
    current: Current | None,
    pods: Sequence[Manifest],
) -> Actions:
    """Scale the engines' Deployments; remove older ones that are empty, with their ConfigMap.

    `current` is None when the spec cannot be run.
    """
    live_revisions = {revision_of(live): live for live in own_deployments(snapshot, subject)}
    actions = Actions()
    for units in (*((step.new,) if step.new else ()), *step.old):
        live = live_revisions.get(units.revision)
        if live:
            mine = [pod for pod in pods if revision_of(pod) == units.revision]
            manifest = _deployment_step(subject, units, live, current)
            actions = actions.joined(_scaled(snapshot, manifest, live, mine))
    return actions.joined(Actions(delete=_emptied(snapshot, subject, step, live_revisions)))


def _scaled(
    snapshot: Snapshot, manifest: Manifest, live: Manifest, pods: Sequence[Manifest]
) -> Actions:
    """One Deployment's scale. Before fewer are asked for, the pods to lose first are marked."""
    if not differs(manifest, live):
        return Actions()
    scale = Apply(manifest, live["metadata"]["uid"], complete=False)
    wanted = manifest["spec"]["replicas"]
    if wanted >= (live.get("spec") or {}).get("replicas", 1):
        return Actions(apply=(scale,))
    if must_ask(pods, snapshot.engine_reports, wanted, snapshot.now):
        return Actions(ask=True)
    costs = deletion_costs(pods, snapshot.engine_reports, wanted)
    namespace = manifest["metadata"]["namespace"]
    marks = (
        annotated(pod, namespace, {DELETION_COST: str(costs[pod["metadata"]["name"]])})
        for pod in pods
        if pod["metadata"]["name"] in costs
    )
    return Actions(apply=(*marks, scale))


def annotated(pod: Manifest, namespace: str, new: Mapping[str, str]) -> Apply:
    """Set annotations of a pod. An apply removes what it does not name: ours are all named."""
    there = pod["metadata"].get("annotations") or {}
    ours = {name: there[name] for name in (DELETION_COST, WARMING_ANNOTATION) if name in there}
    name = pod["metadata"]["name"]
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "annotations": {**ours, **new}},
    }
    return Apply(manifest, pod["metadata"]["uid"], complete=False)


def _deployment_step(
    subject: Subject, units: Units, live: Manifest, current: Current | None
) -> Manifest:
    deadline, whole = (live.get("spec") or {}).get("progressDeadlineSeconds"), spec_hash_of(live)
    if current and units.revision == current.revision.name:
        deadline, whole = progress_deadline_s(current.spec), current.revision.spec_hash
    return deployment_step(subject, units.revision, units.wanted, whole, deadline)


def _emptied(
    snapshot: Snapshot, subject: Subject, step: Step, live_revisions: Mapping[str, Manifest]
) -> tuple[Delete, ...]:
    kept = {step.new.revision} if step.new else set()
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
        and key.name not in slot_names(subject)
        and is_ours(live, subject)
        and not live["metadata"].get("deletionTimestamp")
        and revision_of(live) not in kept
        and (
            revision_of(live) in empty
            or (key.kind == CONFIG_MAP and step.new and revision_of(live) not in live_revisions)
        )
    ]
    return tuple(sorted(gone, key=lambda delete: (delete.kind, delete.name)))
