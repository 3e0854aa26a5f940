"""The container that fetches models from a hub before the engine starts, and where they are kept."""

from importlib.resources import files

from sglang_controllers import names
from sglang_controllers.api import ClusterSpec
from sglang_controllers.api.files import ModelCache
from sglang_controllers.manifest import Manifest
from sglang_controllers.mounts import downloads

SCRIPT = files("sglang_controllers").joinpath("scripts/fetch_models.py").read_text()

OFFLINE = "HF_HUB_OFFLINE"
TOKEN = "HF_TOKEN"  # noqa: S105  its name
ENDPOINT = "HF_ENDPOINT"


def download_container(spec: ClusterSpec, engine: Manifest) -> Manifest:
    """Runs in the engine's image, which has the hub's client, with the engine's environment."""
    wanted = [
        argument
        for model, link in downloads(spec)
        for argument in (f"{model.repository}@{model.revision}", link)
    ]
    return {
        "name": names.DOWNLOAD_CONTAINER,
        "image": engine["image"],
        "command": ["python3", "-c", SCRIPT],
        "args": [names.MODEL_CACHE_MOUNT, *wanted],
        "env": _environment(spec, engine),
        "resources": _resources(engine),
        "securityContext": engine["securityContext"],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            *(mount for mount in engine["volumeMounts"] if mount["name"] in ("cache", "tmp")),
            cache_mount(spec.model.cache),
        ],
    }


def cache_volume(cache: ModelCache) -> Manifest:
    if cache.pvc:
        held: Manifest = {"persistentVolumeClaim": {"claimName": cache.pvc.claim_name}}
    elif cache.host_path:
        # A folder that kubelet makes would be root's, and the engine is not root.
        held = {"hostPath": {"path": cache.host_path.path, "type": "Directory"}}
    else:
        limit = cache.empty_dir.size_limit if cache.empty_dir else None
        held = {"emptyDir": {"sizeLimit": limit} if limit is not None else {}}
    return {"name": names.MODEL_CACHE_VOLUME, **held}


def cache_mount(cache: ModelCache) -> Manifest:
    mount = {"name": names.MODEL_CACHE_VOLUME, "mountPath": names.MODEL_CACHE_MOUNT}
    path = cache.pvc.path.strip("/") if cache.pvc and cache.pvc.path else ""
    return mount | ({"subPath": path} if path else {})


def _resources(engine: Manifest) -> Manifest:
    """A quota wants every container to say what it takes. A pod takes the larger of both."""
    resources = {
        kind: {name: amount for name, amount in amounts.items() if "/" not in name}
        for kind, amounts in engine["resources"].items()
    }
    return {kind: amounts for kind, amounts in resources.items() if amounts}


def _environment(spec: ClusterSpec, engine: Manifest) -> list[Manifest]:
    ours: list[Manifest] = []
    if spec.model.hub_endpoint:
        ours.append({"name": ENDPOINT, "value": spec.model.hub_endpoint})
    if spec.model.token_secret_ref:
        key = spec.model.token_secret_ref.model_dump(by_alias=True, exclude_none=True)
        ours.append({"name": TOKEN, "valueFrom": {"secretKeyRef": key}})
    theirs = [item for item in engine["env"] if item["name"] != OFFLINE]
    named = {item["name"] for item in theirs}
    return [item for item in ours if item["name"] not in named] + theirs
