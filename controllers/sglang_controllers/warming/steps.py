"""Writes that bring prompts into the pods: slots first, then marks on the pods."""

from collections.abc import Iterable

from sglang_controllers.actions import Actions, annotated, written
from sglang_controllers.manifest import Manifest, ObjectKey, key_of
from sglang_controllers.names import WARMING_ANNOTATION
from sglang_controllers.ownership import is_ours
from sglang_controllers.plan import Delete
from sglang_controllers.resources.subject import Subject
from sglang_controllers.snapshot import Snapshot
from sglang_controllers.warming.marks import marks
from sglang_controllers.warming.slots import Slots, slot_names


def warming_steps(
    snapshot: Snapshot,
    subject: Subject,
    slots: Slots,
    revision: str,
    pods: Iterable[Manifest],
) -> tuple[Actions, bool]:
    """Writes, and whether pods have to be asked again soon for what they show."""
    # Nothing can be written to one that somebody made immutable: it is made anew.
    wanted_slots = [manifest for manifest in slots.manifests if not _is_frozen(snapshot, manifest)]
    actions = written(snapshot, subject, wanted_slots)
    kept = {manifest["metadata"]["name"] for manifest in wanted_slots}
    gone = tuple(
        Delete(key.kind, key.name, live["metadata"]["uid"])
        for key in (ObjectKey("ConfigMap", name) for name in slot_names(subject))
        if (live := snapshot.children.get(key)) is not None
        and key.name not in kept
        and is_ours(live, subject)
        and not live["metadata"].get("deletionTimestamp")
    )
    if gone:  # deletions come last, and a pod that is marked before them shows what goes
        return actions.joined(Actions(delete=gone)), False
    pods = tuple(pods)
    wanted = marks(pods, snapshot.engine_reports, revision, slots.hash, snapshot.now)
    apply = tuple(
        annotated(pod, subject.namespace, {WARMING_ANNOTATION: wanted.new[pod["metadata"]["name"]]})
        for pod in pods
        if pod["metadata"]["name"] in wanted.new
    )
    return actions.joined(Actions(apply=apply)), wanted.unseen


def _is_frozen(snapshot: Snapshot, slot: Manifest) -> bool:
    return bool(snapshot.children.get(key_of(slot), {}).get("immutable"))
