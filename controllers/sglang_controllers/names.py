"""Every name that users, the API server or other programs see, written once."""

GROUP = "sglang.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "SGLangCluster"
PLURAL = "sglangclusters"

FIELD_MANAGER = "sglang-operator"

CLUSTER_LABEL = f"{GROUP}/cluster"
ROLE_LABEL = f"{GROUP}/role"
REVISION_LABEL = f"{GROUP}/revision"

SPEC_HASH_ANNOTATION = f"{GROUP}/spec-hash"
"""On a Deployment: the whole hash of the spec it was made from. Its name holds a short form."""

MANIFEST_HASH_ANNOTATION = f"{GROUP}/manifest-hash"
"""On objects applied whole: hash of what was applied, so that a dropped field is noticed."""

ENGINE_CONTAINER = "engine"
DOWNLOAD_CONTAINER = "download"
AGENT_CONTAINER = "agent"
ROUTER_CONTAINER = "router"
ROUTER_ROLE = "router"
ENGINE_PORT = 30000
ENGINE_PORT_NAME = "http"
AGENT_PORT = 30001
AGENT_PORT_NAME = "agent"
ROUTER_PORT = 8000
ROUTER_METRICS_PORT = 29000
ROUTER_METRICS_PORT_NAME = "metrics"
ROUTER_LIST_PORT = 29001
ROUTER_LIST_PORT_NAME = "workers"
ROUTER_KEY_VARIABLE = "SGLANG_ROUTER_API_KEY"
"""Where the launcher in images/router reads the API key."""
SERVICE_PORT = 8000

MODEL_MOUNT = "/model"
DRAFT_MOUNT = "/draft-model"
LORA_MOUNT = "/lora"
CACHE_MOUNT = "/cache"
MODEL_CACHE_VOLUME = "model-cache"
MODEL_CACHE_MOUNT = "/model-cache"
"""What was downloaded. Nothing but the download itself writes there."""
AGENT_MOUNT = "/run/sglang-agent"
"""Engine and agent share it: the agent's Unix socket is there."""
TOKEN_MOUNT = "/run/secrets/sglang-agent"  # noqa: S105  a folder
TOKEN_KEY = "token"  # noqa: S105  the name of a key
HUB_LINKS = f"{CACHE_MOUNT}/models"
"""Links from where the engine looks to the downloaded commit."""

WARMING_MOUNT = "/run/sglang-warming"
"""In the agent's container: copies of the ConfigMaps that prompts are read from."""
WARMING_CLAIMS_MOUNT = "/warming"
WARMING_ANNOTATION = f"{GROUP}/warming"
"""On an engine's pod: a change of it makes kubelet bring the copies up to date at once."""

MAX_CLUSTER_NAME = 52
"""Characters. The longest name derived from it is a Service's, which may have 63."""

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
"""Kubernetes' annotation: of ready pods, a ReplicaSet deletes the one with the lowest first."""
