"""Lay the user's pod template over the operator's.

The rules are Kubernetes' strategic merge, as far as a pod template needs it: objects merge field by
field, lists of named things merge by name, other lists are replaced, null removes a field.
"""

from collections.abc import Mapping
from typing import Any

from sglang_controllers import names
from sglang_controllers.manifest import Manifest

MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "hostAliases": "ip",
}
APPENDED = frozenset({"tolerations", "topologySpreadConstraints"})
REPLACED = frozenset({"volumes", "env"})
"""Items that are one of several kinds: a claim laid over an emptyDir must not become both."""

OBJECTS = frozenset({"metadata", "spec", "labels", "annotations"})
FREE_FORM = frozenset({"labels", "annotations", "matchLabels", "nodeSelector"})
"""Maps whose keys are the user's, and say nothing about the shape of what is below."""

OWNED_BY_FIELDS = {
    "command": "the operator starts SGLang itself; remove it",
    "args": "use the typed fields or spec.engine.extraArgs",
    "image": "use spec.engine.image",
}
OWNED_OF_ROUTERS = {
    "command": "the operator starts the router itself; remove it",
    "args": "use the fields of spec.router; remove it",
}
ENGINES_TEMPLATE = "spec.podTemplate"
ROUTERS_TEMPLATE = "spec.router.podTemplate"
OWN_INIT_CONTAINERS = {
    names.DOWNLOAD_CONTAINER: "downloads",
    names.AGENT_CONTAINER: "drains engines",
}
RESERVED_LABEL_PREFIXES = (f"{names.GROUP}/", "app.kubernetes.io/")


def merged_template(base: Manifest, overlay: Mapping[str, Any]) -> Manifest:
    """`base` with `overlay` laid over it; only metadata's labels and annotations are taken."""
    metadata = overlay.get("metadata") or {}
    taken = {k: metadata[k] for k in ("labels", "annotations") if metadata.get(k)}
    return _object(base, {"metadata": taken, "spec": overlay.get("spec") or {}})


def template_problems(overlay: Mapping[str, Any]) -> tuple[str, ...]:
    """What of the user's template cannot be taken over, each with field, rule and fix."""
    return _problems(overlay, ENGINES_TEMPLATE, names.ENGINE_CONTAINER, OWNED_BY_FIELDS)


def router_template_problems(overlay: Mapping[str, Any]) -> tuple[str, ...]:
    """The same for the routers' template."""
    return _problems(overlay, ROUTERS_TEMPLATE, names.ROUTER_CONTAINER, OWNED_OF_ROUTERS)


def _problems(
    overlay: Mapping[str, Any], at: str, main: str, owned: Mapping[str, str]
) -> tuple[str, ...]:
    """`at` is the template's field, `owned` says of fields of the container `main` who sets them."""
    problems = _shape_problems(overlay, at)
    if problems:
        return tuple(problems)
    problems += [
        f"{at}.{field}: a pod template has metadata and spec; write it under {at}.spec, or remove it"
        for field in overlay
        if field not in ("metadata", "spec")
    ]
    metadata, spec = overlay.get("metadata") or {}, overlay.get("spec") or {}
    problems += [
        f"{at}.metadata.labels[{label}]: the operator sets this label; remove it"
        for label in metadata.get("labels") or {}
        if label.startswith(RESERVED_LABEL_PREFIXES)
    ]
    for container in spec.get("containers") or []:
        if container["name"] == main:
            problems += [
                f"{at}.spec.containers[{main}].{field}: {why}"
                for field, why in owned.items()
                if field in container
            ]
    for container in spec.get("initContainers") or []:
        name = container["name"]
        if name in OWN_INIT_CONTAINERS and main == names.ENGINE_CONTAINER:
            problems += [
                f"{at}.spec.initContainers[{name}].{field}: the operator "
                f"{OWN_INIT_CONTAINERS[name]} with it; give the container another name, or remove it"
                for field in OWNED_BY_FIELDS
                if field in container
            ]
    return tuple(problems)


def _object(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> Manifest:
    merged = dict(base)
    for key, value in overlay.items():
        if value is None:
            merged.pop(key, None)
        elif key in FREE_FORM:
            merged[key] = {**(merged.get(key) or {}), **value}
        elif isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = _object(merged[key], value)
        elif key in MERGE_KEYS and isinstance(value, list):
            merged[key] = _named(merged.get(key) or [], value, key)
        elif key in APPENDED:
            merged[key] = [*(merged.get(key) or []), *value]
        else:
            merged[key] = value
    return merged


def _named(base: list[Manifest], overlay: list[Manifest], field: str) -> list[Manifest]:
    key = MERGE_KEYS[field]
    merged = {item[key]: item for item in base}
    for item in overlay:
        under = {} if field in REPLACED else merged.get(item[key], {})
        merged[item[key]] = _object(under, item)
    return list(merged.values())


def _shape_problems(value: Any, path: str, key: str = "") -> list[str]:
    """The API server keeps a podTemplate as it is, so its shape is unknown until looked at."""
    if key in MERGE_KEYS or key in APPENDED:
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            return [f"{path}: got {_short(value)}; must be a list of objects"]
        name = MERGE_KEYS.get(key)
        return [
            f"{path}[{i}]: {name} is missing; add it, lists here merge by {name}"
            for i, item in enumerate(value)
            if name and not isinstance(item.get(name), str | int)
        ] + [p for i, item in enumerate(value) for p in _shape_problems(item, f"{path}[{i}]")]
    if key in OBJECTS and not isinstance(value, Mapping):
        return [f"{path}: got {_short(value)}; must be an object"]
    if key in FREE_FORM:
        return _text_problems(value, path)
    if not isinstance(value, Mapping):
        return []
    return [
        problem
        for name, item in value.items()
        if item is not None
        for problem in _shape_problems(item, f"{path}.{name}", name)
    ]


def _text_problems(value: Any, path: str) -> list[str]:
    if not isinstance(value, Mapping):
        return [f"{path}: got {_short(value)}; must be an object"]
    return [
        f"{path}[{name}]: got {_short(item)}; must be text; put it in quotes"
        for name, item in value.items()
        if not isinstance(item, str)
    ]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
