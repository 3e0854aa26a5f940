"""Why a cluster is or is not ready: one searchable word each, never renamed (docs/troubleshooting)."""

from enum import StrEnum


class Reason(StrEnum):
    """Reasons of conditions and events. docs/troubleshooting.md has an entry for each."""

    SERVING = "Serving"
    """All wanted replicas run the current revision and are ready."""
    SCALED_TO_ZERO = "ScaledToZero"
    """spec.replicas is 0: nothing is wanted and nothing runs."""
    STARTING = "Starting"
    """Engines are being scheduled, pulled or loaded, with no fault seen."""
    ROLLING_OUT = "RollingOut"
    """The current revision replaces an older one, step by step."""
    SCALING_IN = "ScalingIn"
    """More replicas run than are wanted; the surplus is leaving."""
    PAUSED = "Paused"
    """spec.paused is true and something would have to change."""
    INVALID_SPEC = "InvalidSpec"
    """The spec cannot be understood: nothing is changed until it can."""
    BAD_ENGINE_ARGS = "BadEngineArgs"
    """SGLang refuses the engine arguments, or would."""
    CONFLICT = "Conflict"
    """An object with a name we need belongs to somebody else; it is not touched."""
    UNSUPPORTED_BY_CLUSTER = "UnsupportedByCluster"
    """This Kubernetes cluster cannot do what the spec needs."""
    QUOTA_EXCEEDED = "QuotaExceeded"
    """A ResourceQuota does not leave room for the pods."""
    REJECTED = "Rejected"
    """The API server, a policy or a webhook refused an object."""
    IMAGE_PULL = "ImagePull"
    """An image, of the engine or of the model, cannot be pulled."""
    VOLUME = "Volume"
    """A volume cannot be mounted: claim, ConfigMap or Secret missing, or storage failing."""
    CONTAINER_CONFIG = "ContainerConfig"
    """The container runtime refuses to start a container as configured."""
    OUT_OF_MEMORY = "OutOfMemory"
    """The engine ran out of host or accelerator memory."""
    MODEL_GATED = "ModelGated"
    """The hub gives the model only to those who have been admitted, and show a token."""
    MODEL_NOT_FOUND = "ModelNotFound"
    """There is no model at spec.model.source."""
    MODEL_DOWNLOAD = "ModelDownload"
    """The model cannot be downloaded: the hub does not answer, or there is no place for it."""
    ENGINE_HUNG = "EngineHung"
    """SGLang's watchdog ended an engine that made no progress."""
    STARTUP_TIMEOUT = "StartupTimeout"
    """The engine was still loading after engine.startupTimeout, and was restarted."""
    ENGINE_CRASH = "EngineCrash"
    """The engine process ended by itself; the message holds its last error."""
    ROUTER_CRASH = "RouterCrash"
    """A router's process ended by itself; the message holds its last error."""
    WAITING_FOR_GPU = "WaitingForGPU"
    """No node has enough free accelerators for a pod."""
    UNSCHEDULABLE = "Unschedulable"
    """No node fits a pod, for another cause than accelerators."""
    ROUTER_NOT_READY = "RouterNotReady"
    """Engines are ready, but not every router is, or one has not found all engines yet."""
    NODE_LOST = "NodeLost"
    """The node of an engine does not answer; Kubernetes replaces its pods in a while."""
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"
    """No further engine got ready within rollout.progressDeadline, and none shows a fault."""
    WARMING = "Warming"
    """Engines are ready, and their pods wait until prompts are warmed, or only warm them."""
    WARMING_SOURCE_MISSING = "WarmingSourceMissing"
    """A ConfigMap or key that cache.warming names is not there; pods start and serve without it."""
    WARMING_SOURCE_TOO_LARGE = "WarmingSourceTooLarge"
    """The ConfigMaps that cache.warming names hold more than is copied to pods."""


NEEDS_THE_USER = frozenset(
    {
        Reason.INVALID_SPEC,
        Reason.BAD_ENGINE_ARGS,
        Reason.CONFLICT,
        Reason.UNSUPPORTED_BY_CLUSTER,
        Reason.QUOTA_EXCEEDED,
        Reason.REJECTED,
        Reason.IMAGE_PULL,
        Reason.VOLUME,
        Reason.CONTAINER_CONFIG,
        Reason.OUT_OF_MEMORY,
        Reason.MODEL_GATED,
        Reason.MODEL_NOT_FOUND,
        Reason.MODEL_DOWNLOAD,
        Reason.ENGINE_HUNG,
        Reason.STARTUP_TIMEOUT,
        Reason.ENGINE_CRASH,
        Reason.ROUTER_CRASH,
        Reason.UNSCHEDULABLE,
        Reason.PROGRESS_DEADLINE_EXCEEDED,
    }
)
"""Stalled: waiting alone is not expected to help."""
