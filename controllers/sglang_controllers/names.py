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
ENGINE_PORT = 30000
ENGINE_PORT_NAME = "http"
AGENT_PORT = 30001
AGENT_PORT_NAME = "agent"
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
HUB_LINKS = f"{CACHE_MOUNT}/models"
"""Links from where the engine looks to the downloaded commit."""

MAX_CLUSTER_NAME = 52
"""Characters. The longest name derived from it is a Service's, which may have 63."""
