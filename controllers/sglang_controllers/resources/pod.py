"""The engine's pod template."""

import math
from typing import Any, assert_never

from sglang_controllers import names
from sglang_controllers.api import ClusterSpec
from sglang_controllers.api.duration import duration_s
from sglang_controllers.api.source import ClaimPath, HubModel, ImagePath, OciImage
from sglang_controllers.arguments import engine_arguments
from sglang_controllers.images import Images
from sglang_controllers.manifest import Manifest
from sglang_controllers.mounts import Files, all_files, downloads
from sglang_controllers.parallelism import devices
from sglang_controllers.podtemplate import merged_template
from sglang_controllers.resources.agent import (
    MOUNT,
    agent_container,
    agent_volumes,
    grace_period_s,
    pre_stop,
)
from sglang_controllers.resources.download import cache_mount, cache_volume, download_container
from sglang_controllers.resources.metadata import labels, selector
from sglang_controllers.resources.subject import Subject

COMMAND = ("python3", "-m", "sglang.launch_server")

DEFAULT_ENGINE_VERSION = "0.5.23"
DEFAULT_ENGINE_REPOSITORY = "docker.io/lmsysorg/sglang"
DEFAULT_ACCELERATOR = "nvidia.com/gpu"
DEFAULT_SHARED_MEMORY = "8Gi"
DEFAULT_STARTUP_TIMEOUT = "30m"

ENGINE_UID = 1000

READY_PATH = "/ready"
"""Answers in milliseconds from SGLang's state. /health generates a token: it takes a second at
least, and 20 s on a busy engine, which would lose it its traffic."""

CLAIM_GROUP = {"fsGroup": ENGINE_UID, "fsGroupChangePolicy": "OnRootMismatch"}

PROBE_TIMEOUT_S = 25
"""A process that is starved of CPU, as at start-up beside others, is slow even to say so."""

PROBE_PERIOD_S = 5

CACHES = {
    "HOME": names.CACHE_MOUNT,
    "XDG_CACHE_HOME": names.CACHE_MOUNT,
    "HF_HOME": f"{names.CACHE_MOUNT}/huggingface",
    "TRITON_CACHE_DIR": f"{names.CACHE_MOUNT}/triton",
    "TORCHINDUCTOR_CACHE_DIR": f"{names.CACHE_MOUNT}/torchinductor",
    "FLASHINFER_WORKSPACE_BASE": names.CACHE_MOUNT,
}
"""Everything that writes caches, pointed at a volume that uid 1000 may write."""


def pod_template(subject: Subject, spec: ClusterSpec, revision: str, images: Images) -> Manifest:
    engine = _engine(subject, spec)
    base = {
        "metadata": {"labels": labels(subject, revision)},
        "spec": {
            "serviceAccountName": subject.service_account,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            # SGLang ends itself by SIGKILL when a worker process fails. Process 1 of a container
            # is spared by the kernel, goes on to exit 0, and kubelet keeps no log of a success.
            "shareProcessNamespace": True,
            "terminationGracePeriodSeconds": grace_period_s(spec),
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": ENGINE_UID,
                "runAsGroup": ENGINE_UID,
                # A new claim belongs to root.
                **(CLAIM_GROUP if spec.model.cache.pvc and downloads(spec) else {}),
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "topologySpreadConstraints": _spread(subject, revision),
            **_tolerations(spec),
            "initContainers": [
                *([download_container(spec, engine)] if downloads(spec) else []),
                agent_container(subject, spec, revision, images.agent, engine["securityContext"]),
            ],
            "containers": [engine],
            "volumes": _volumes(subject, spec),
        },
    }
    return merged_template(base, spec.pod_template)


def _engine(subject: Subject, spec: ClusterSpec) -> Manifest:
    ready = {
        "httpGet": {"path": READY_PATH, "port": names.ENGINE_PORT_NAME},
        "timeoutSeconds": PROBE_TIMEOUT_S,
        "periodSeconds": PROBE_PERIOD_S,
    }
    startup_s = duration_s(spec.engine.startup_timeout or DEFAULT_STARTUP_TIMEOUT)
    return {
        "name": names.ENGINE_CONTAINER,
        "image": engine_image(spec),
        "command": list(COMMAND),
        "args": list(engine_arguments(spec, cluster_name=subject.name)),
        "env": _environment(spec),
        "ports": [{"name": names.ENGINE_PORT_NAME, "containerPort": names.ENGINE_PORT}],
        "resources": _resources(spec),
        "startupProbe": ready | {"failureThreshold": math.ceil(startup_s / PROBE_PERIOD_S)},
        # No liveness probe: SGLang's own watchdog ends a hung engine, and a probe that shares
        # the engine with its users would kill a busy one.
        "readinessProbe": ready | {"failureThreshold": 3},
        "lifecycle": {"preStop": pre_stop(spec)},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": _mounts(spec),
    }


def engine_image(spec: ClusterSpec) -> str:
    version = spec.engine.version or DEFAULT_ENGINE_VERSION
    return spec.engine.image or f"{DEFAULT_ENGINE_REPOSITORY}:v{version}"


def accelerator(spec: ClusterSpec) -> tuple[str, int]:
    """Extended resource and how many of it each pod holds; 0 for none."""
    wanted = spec.engine.accelerator
    count = devices(spec) if wanted.count is None else wanted.count
    return wanted.resource_name or DEFAULT_ACCELERATOR, count


def _resources(spec: ClusterSpec) -> dict[str, Any]:
    name, count = accelerator(spec)
    held = {name: str(count)} if count else {}
    resources = {
        # Kubernetes wants requests and limits of an extended resource to be equal.
        kind: {**(spec.engine.resources.get(kind) or {}), **held}
        for kind in ("requests", "limits")
    }
    return {kind: amounts for kind, amounts in resources.items() if amounts}


def _tolerations(spec: ClusterSpec) -> dict[str, Any]:
    """GPU pools are commonly tainted with the name of the resource they offer."""
    name, count = accelerator(spec)
    if not count:
        return {}
    return {"tolerations": [{"key": name, "operator": "Exists", "effect": "NoSchedule"}]}


def _spread(subject: Subject, revision: str) -> list[Manifest]:
    """A node that is lost takes as few engines along as can be.

    A wish, not a condition: a pod that fits on one node only is better than none. It counts one
    revision: with the old pods counted in, a rollout may put all new ones on one node. And nothing
    about zones: the scheduler ignores nodes that lack a label of any of a pod's constraints.
    """
    return [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": selector(subject, revision)},
        }
    ]


def _environment(spec: ClusterSpec) -> list[Manifest]:
    # Every source that exists is local: a hub must not be asked, least of all by mistake.
    ours = {**CACHES, "HF_HUB_OFFLINE": "1"}
    theirs = {item["name"] for item in spec.engine.env}
    return [{"name": k, "value": v} for k, v in ours.items() if k not in theirs] + [
        dict(item) for item in spec.engine.env
    ]


def _volumes(subject: Subject, spec: ClusterSpec) -> list[Manifest]:
    size = spec.engine.shared_memory or DEFAULT_SHARED_MEMORY
    return [
        {"name": "cache", "emptyDir": {}},
        {"name": "tmp", "emptyDir": {}},
        *agent_volumes(subject, spec),
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": size}},
        *(volume for files in all_files(spec) for volume in _volume(files)),
        *([cache_volume(spec.model.cache)] if downloads(spec) else []),
    ]


def _volume(files: Files) -> list[Manifest]:
    match files.source:
        case OciImage(reference):
            return [{"name": files.volume, "image": {"reference": reference}}]
        case ClaimPath(claim, _):
            held = {"claimName": claim, "readOnly": True}
            return [{"name": files.volume, "persistentVolumeClaim": held}]
        case ImagePath() | HubModel():
            return []
        case _:
            assert_never(files.source)


def _mounts(spec: ClusterSpec) -> list[Manifest]:
    return [
        {"name": "cache", "mountPath": names.CACHE_MOUNT},
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108  the container's own
        {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108
        MOUNT,
        *(mount for files in all_files(spec) for mount in _mount(files)),
        *([cache_mount(spec.model.cache) | {"readOnly": True}] if downloads(spec) else []),
    ]


def _mount(files: Files) -> list[Manifest]:
    mount = {"name": files.volume, "mountPath": files.mount, "readOnly": True}
    match files.source:
        case OciImage():
            return [mount]
        case ClaimPath(_, path):
            return [mount | ({"subPath": path} if path else {})]
        case ImagePath() | HubModel():
            return []
        case _:
            assert_never(files.source)
