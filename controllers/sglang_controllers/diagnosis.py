"""What is wrong with a pod, from its status and the events that tell of faults.

Each check answers one question and gives a finding or None. Messages name the object and the next
act, and hold nothing that changes while the fault stays the same.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sglang_controllers import names
from sglang_controllers.download_errors import download_finding
from sglang_controllers.engine_errors import engine_finding
from sglang_controllers.manifest import Manifest
from sglang_controllers.pods import condition, moment
from sglang_controllers.reasons import Reason
from sglang_controllers.redaction import excerpt


@dataclass(frozen=True, slots=True)
class Finding:
    reason: Reason
    message: str


Check = Callable[[Manifest, Sequence[Manifest]], Finding | None]

IMAGE_WAITS = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
CONFIG_WAITS = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "PreCreateHookError",
    }
)
NOT_STARTED = frozenset({"StartError", "ContainerCannotRun"})
"""Reasons of a container that has ended without running, as for a missing program."""

BACK_OFF = re.compile(r'^Back-off pulling image "[^"]*"(: ErrImagePull)?:? ?')
ROOM = re.compile(
    r"Insufficient |Too many pods|anti-affinity rules|free ports|topology spread constraints"
    r"|cannot allocate all claims|exceed max volume count"
)
"""The scheduler's words for what the leaving of another pod can cure."""

AGENT_FIX = (
    "The operator brings it along: set agent.image in its chart to one that the nodes can pull, then "
    "change something of the pods, for example an annotation in spec.podTemplate"
)

OBSTACLES = (
    (
        re.compile(r"untolerated taint"),
        "tolerate the taint in spec.podTemplate.spec.tolerations",
    ),
    (
        re.compile(r"node affinity/selector"),
        "correct nodeSelector and affinity in spec.podTemplate.spec, or label a node",
    ),
    (
        re.compile(r"Insufficient (cpu|memory|ephemeral-storage)"),
        "lower spec.engine.resources.requests or add a larger node",
    ),
    (
        re.compile(r"anti-affinity|topology spread"),
        "relax anti-affinity and topologySpreadConstraints in spec.podTemplate.spec",
    ),
    (re.compile(r"were unschedulable"), "uncordon a node"),
)
"""The scheduler's words for what keeps pods off nodes, and what to do about each."""

VOLUME_ELSEWHERE = re.compile(r"volume node affinity conflict|exceed max volume count")

PREEMPTION = re.compile(r"[,.]? (preemption:|no new claims to deallocate)")
IMAGE_EVENT = re.compile(r'image "(?P<image>[^"\s:]+(:[^"\s]+)?)"')
"""Kubelet's wording; engine and model images (OCI volumes) share it."""


def diagnosis(pod: Manifest, events: Sequence[Manifest]) -> Finding | None:
    """The first fault that a user has to deal with, None when the pod is just starting."""
    for check in CHECKS:
        finding = check(pod, events)
        if finding:
            return finding
    return None


def node_lost(pod: Manifest, events: Sequence[Manifest]) -> Finding | None:
    """The node controller, and only it, unsets Ready without a reason while containers are ready."""
    del events
    ready, containers = condition(pod, "Ready"), condition(pod, "ContainersReady")
    if not ready or ready.get("status") != "False" or ready.get("reason"):
        return None
    if not containers or containers.get("status") != "True":
        return None
    node = (pod.get("spec") or {}).get("nodeName")
    return Finding(
        Reason.NODE_LOST,
        f"node {node} does not answer. Kubernetes replaces its pods when their toleration of "
        "node.kubernetes.io/unreachable ends, by default after 5 minutes. To replace them at once, "
        f"make sure that the node is off and run: kubectl delete node {node}",
    )


def image_pull(pod: Manifest, events: Sequence[Manifest]) -> Finding | None:
    for status in _container_statuses(pod):
        waiting = (status.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") in IMAGE_WAITS:
            cause = BACK_OFF.sub("", waiting.get("message") or "")
            named = IMAGE_EVENT.search(waiting.get("message") or "")
            image = named["image"] if named else status.get("image") or status.get("name", "")
            if status.get("name") == names.AGENT_CONTAINER:
                return Finding(
                    Reason.IMAGE_PULL, f"cannot pull image {image}{_said(cause)}. {AGENT_FIX}"
                )
            return _image_finding(image, cause)
    for event in _newest_first(events) if _being_made(pod) else ():
        message = event.get("message") or ""
        if event.get("reason") == "Failed" and "pull image" in message:
            named = IMAGE_EVENT.search(message)
            return _image_finding(named["image"] if named else "", message)
    return None


def _said(cause: str) -> str:
    return f": {excerpt(cause)}" if cause else ""


def _image_finding(image: str, cause: str) -> Finding:
    return Finding(
        Reason.IMAGE_PULL,
        f"cannot pull image {image}{_said(cause)}. Check its name and tag, and pull secrets in "
        "spec.podTemplate.spec.imagePullSecrets",
    )


def container_config(pod: Manifest, events: Sequence[Manifest]) -> Finding | None:
    del events
    for status in _container_statuses(pod):
        waiting = (status.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") in CONFIG_WAITS:
            said = excerpt(waiting.get("message") or waiting["reason"])
            token = status.get("name") == names.DOWNLOAD_CONTAINER
            where = "spec.model.tokenSecretRef, " if token else ""
            return Finding(
                Reason.CONTAINER_CONFIG,
                f"container {status.get('name')} cannot start: {said}. Check {where}spec.engine.env "
                "and spec.podTemplate",
            )
    return None


def engine_exit(pod: Manifest, events: Sequence[Manifest]) -> Finding | None:
    """The last exit of a container that is not ready now, whatever it is doing meanwhile."""
    for status in _container_statuses(pod):
        if status.get("ready") or _is_back_at_once(status):
            continue
        for when in ("state", "lastState"):
            ended = (status.get(when) or {}).get("terminated")
            if ended and _killed_by_startup_probe(status, ended, events):
                return Finding(
                    Reason.STARTUP_TIMEOUT,
                    "the engine was not ready within engine.startupTimeout and is started again. "
                    "If its log shows that it was still loading, raise spec.engine.startupTimeout "
                    "and change something of its pods, for example an annotation in "
                    f"spec.podTemplate: kubectl logs {pod['metadata']['name']} --previous",
                )
            if ended and ended.get("reason") in NOT_STARTED:
                return _not_started(status, ended)
            if ended and (ended.get("exitCode") != 0 or when == "lastState"):
                name = status.get("name") or ""
                if name == names.DOWNLOAD_CONTAINER:
                    return Finding(*download_finding(ended, pod["metadata"]["name"]))
                return Finding(*engine_finding(name, ended, pod["metadata"]["name"]))
    return None


def _is_back_at_once(status: Manifest) -> bool:
    """An agent that has ended is started again, and the engine goes on meanwhile."""
    waits = (status.get("state") or {}).get("waiting") or {}
    return status.get("name") == names.AGENT_CONTAINER and not waits.get("reason")


def _not_started(status: Manifest, ended: Manifest) -> Finding:
    said = excerpt(ended.get("message") or "it gives no reason")
    return Finding(
        Reason.CONTAINER_CONFIG,
        f"the runtime cannot start container {status.get('name')}: {said}. The image must hold "
        "SGLang and python3: check spec.engine.image",
    )


def _killed_by_startup_probe(status: Manifest, ended: Manifest, events: Sequence[Manifest]) -> bool:
    """Kubelet has told, during this run of the container, that it kills it for that.

    It counts repeats in one event, whose last time may belong to the run after this one.
    """
    since, until = moment(ended.get("startedAt")), moment(ended.get("finishedAt"))
    kill = f"Container {status.get('name')} failed startup probe"
    for event in events:
        if event.get("reason") == "Killing" and kill in (event.get("message") or ""):
            last = moment(event.get("lastTimestamp") or event.get("eventTime"))
            first = moment(event.get("firstTimestamp")) or last
            if not (first and last and since and until) or (first <= until and since <= last):
                return True
    return False


def volume(pod: Manifest, events: Sequence[Manifest]) -> Finding | None:
    for event in _newest_first(events) if _being_made(pod) else ():
        if event.get("reason") in ("FailedMount", "FailedAttachVolume", "FailedMapVolume"):
            said = excerpt(event.get("message") or "")
            kept = f'volume "{names.MODEL_CACHE_VOLUME}"' in said
            where = "spec.model.cache" if kept else "spec.model.source"
            return Finding(Reason.VOLUME, f"{said}. Check {where} and volumes in spec.podTemplate")
    return None


def unschedulable(pod: Manifest, events: Sequence[Manifest]) -> Finding | None:
    del events
    message = unplaced(pod)
    if message is None:
        return None
    if "unbound immediate PersistentVolumeClaims" in message:
        # The scheduler goes on with ". not found", which is not about the claim.
        return Finding(
            Reason.VOLUME,
            f"{excerpt(message).removesuffix('. not found')}. The claim is there, but has no volume "
            "yet: kubectl describe pvc says why",
        )
    if "persistentvolumeclaim" in message.lower():
        return Finding(
            Reason.VOLUME,
            f"{excerpt(message).removesuffix('. not found')}. Create the claim, or correct its name in "
            "spec.model.source, spec.model.cache, spec.cache.warming.promptsFrom or "
            "spec.podTemplate",
        )
    fixes = [fix for cause, fix in OBSTACLES if cause.search(message)]
    short = [name for name in accelerators(pod) if f"Insufficient {name}" in message]
    if short:
        each = ", ".join(f"{accelerators(pod)[name]} {name}" for name in short)
        others = f" If the other nodes have them: {', or '.join(fixes)}." if fixes else ""
        return Finding(
            Reason.WAITING_FOR_GPU,
            f"a pod needs {each} on one node: {excerpt(message)}.{others} Free or add accelerators, "
            "lower spec.replicas, or correct spec.engine.accelerator where no node has so many",
        )
    if VOLUME_ELSEWHERE.search(message):
        return Finding(
            Reason.VOLUME,
            f"{excerpt(message)}. Its volume is tied to other nodes: use a claim that these nodes "
            "can mount, or let the pod run where the volume is",
        )
    fixes = fixes or ["check spec.engine.resources and spec.podTemplate"]
    return Finding(Reason.UNSCHEDULABLE, f"{excerpt(message)}. {_sentence(fixes)}")


def _sentence(fixes: Sequence[str]) -> str:
    text = ", or ".join(fixes)
    return text[0].upper() + text[1:]


def unplaced(pod: Manifest) -> str | None:
    """The scheduler's message about a pod that it cannot place, None when it can or has."""
    scheduled = condition(pod, "PodScheduled")
    if not scheduled or scheduled.get("status") != "False":
        return None
    if scheduled.get("reason") != "Unschedulable":
        return None
    # What preemption could do is said at length after it, and changes without a change of cause.
    return PREEMPTION.split(scheduled.get("message") or "no node fits the pod")[0]


def lacks_room(pod: Manifest) -> bool:
    """Whether some node would take the pod if another pod left it."""
    message = unplaced(pod)
    return message is not None and ROOM.search(message) is not None


def accelerators(pod: Manifest) -> dict[str, str]:
    """Extended resources that the pod asks for, with their amounts."""
    wanted: dict[str, str] = {}
    for container in (pod.get("spec") or {}).get("containers") or []:
        limits = (container.get("resources") or {}).get("limits") or {}
        wanted |= {name: str(amount) for name, amount in limits.items() if "/" in name}
    return wanted


CHECKS: tuple[Check, ...] = (
    node_lost,
    engine_exit,
    image_pull,
    container_config,
    unschedulable,
    volume,
)
"""In the order of the life of a pod, backwards: what came last explains most."""


def _container_statuses(pod: Manifest) -> list[Manifest]:
    status = pod.get("status") or {}
    return [
        *(status.get("initContainerStatuses") or []),
        *(status.get("containerStatuses") or []),
    ]


def _being_made(pod: Manifest) -> bool:
    """No container has run yet. Later, events of the beginning tell of faults that have healed."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    return all((status.get("state") or {}).get("waiting") for status in statuses) and not any(
        status.get("lastState") for status in statuses
    )


def _newest_first(events: Sequence[Manifest]) -> list[Manifest]:
    def seen(event: Manifest) -> str:
        return str(
            event.get("lastTimestamp")
            or event.get("eventTime")
            or (event.get("metadata") or {}).get("creationTimestamp")
            or ""
        )

    return sorted(events, key=seen, reverse=True)
