"""What the planner answers: the writes that bring a cluster one step nearer to its spec."""

from dataclasses import dataclass
from typing import Literal

from sglang_controllers.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Apply:
    """A server-side apply of an existing object, guarded by its uid.

    `complete` says that the manifest is all we ever set on the object, so that fields missing
    from it may be removed. A Deployment is applied in part only (replicas and metadata): its pod
    template is written once, at creation.
    """

    manifest: Manifest
    uid: str
    complete: bool


@dataclass(frozen=True, slots=True)
class Delete:
    """A deletion with a uid precondition; dependents follow in the background."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class EventRecord:
    """A Kubernetes event about the cluster: written on transitions only.

    `once` names what happened where status does not remember it: it is told only once.
    """

    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    once: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Writes in the order of the fields. `status` is the whole new status, None: unchanged.

    `aside` are names of ConfigMaps among them that nothing else waits for.

    `ask` wants every agent and router of the cluster asked before the next look, which comes
    `again_after_s` seconds later; None: only when something changes.
    """

    create: tuple[Manifest, ...] = ()
    apply: tuple[Apply, ...] = ()
    delete: tuple[Delete, ...] = ()
    status: Manifest | None = None
    events: tuple[EventRecord, ...] = ()
    ask: bool = False
    again_after_s: float | None = None
    aside: tuple[str, ...] = ()
