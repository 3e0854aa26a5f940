"""Manifests of a SGLangCluster without a cluster: what the operator would create first."""

import difflib
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import yaml

from sglang_controllers.api import InvalidSpec, parse_spec
from sglang_controllers.api.problems import shown
from sglang_controllers.api.schema import NAME_PATTERN, crd
from sglang_controllers.manifest import Manifest
from sglang_controllers.names import API_VERSION, KIND, MAX_CLUSTER_NAME
from sglang_controllers.planner import plan
from sglang_controllers.reasons import Reason
from sglang_controllers.snapshot import Snapshot

REFUSED = (Reason.INVALID_SPEC, Reason.BAD_ENGINE_ARGS)


class RenderError(Exception):
    """What is wrong with the input, one problem per line."""


def render(text: str) -> str:
    """YAML of all objects for the SGLangClusters in a YAML text; RenderError when one is wrong."""
    try:
        documents = [each for each in yaml.safe_load_all(text) if each is not None]
    except yaml.YAMLError as error:
        raise RenderError(f"not YAML: {error}") from error
    clusters = [d for d in documents if isinstance(d, dict) and d.get("kind") == KIND]
    if not clusters:
        raise RenderError(f"no {KIND} in the input; it needs apiVersion: {API_VERSION}")
    problems = [line for each in clusters for line in _problems(each)]
    if problems:
        raise RenderError("\n".join(problems))
    manifests = [m for each in clusters for m in _manifests(each)]
    return yaml.safe_dump_all(manifests, sort_keys=False, explicit_start=True, width=120)


def _manifests(cluster: Manifest) -> Iterator[Manifest]:
    """The objects without their owner, whose uid only the API server knows."""
    for manifest in plan(_snapshot(cluster)).create:
        metadata = {k: v for k, v in manifest["metadata"].items() if k != "ownerReferences"}
        yield {**manifest, "metadata": metadata}


def _snapshot(cluster: Manifest) -> Snapshot:
    """The cluster as if it had just been created. It is not paused: that would show nothing."""
    metadata = {"namespace": "default", **cluster["metadata"], "uid": "-", "generation": 1}
    spec = {**(cluster.get("spec") or {}), "paused": False}
    return Snapshot({**cluster, "metadata": metadata, "spec": spec}, datetime.now(UTC))


def _problems(cluster: Manifest) -> Iterator[str]:
    """What the API server, or the operator after it, would say. Nothing: all is well."""
    metadata = cluster.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str):
        got = "is missing" if name is None else f"got {shown(name)}"
        yield f"metadata.name: {got}; write a name for the {KIND}, in quotes if it is a number"
        return
    for problem in _name_problems(name, cluster.get("apiVersion")):
        yield f"{name}: {problem}"
    spec = cluster.get("spec")
    if not isinstance(spec, dict):
        got = "is missing" if spec is None else f"got {shown(spec)}; must be an object"
        yield f"{name}: spec: {got}; write spec.model.source in it"
        return
    found = False
    for problem in _spec_problems(spec):
        found = True
        yield f"{name}: {problem}"
    if not found:
        yield from _planned_problems(name, cluster)


def _name_problems(name: str, api_version: object) -> Iterator[str]:
    if api_version != API_VERSION:
        yield f'apiVersion: got {shown(api_version)}; write "{API_VERSION}"'
    if len(name) > MAX_CLUSTER_NAME:
        yield f"metadata.name: has {len(name)} characters; at most {MAX_CLUSTER_NAME} are allowed"
    if not re.fullmatch(NAME_PATTERN, name):
        yield (
            f'metadata.name: got "{name}"; small letters, digits and dashes, a letter first, '
            'no dash last; write for example "chat-1"'
        )


def _spec_problems(spec: Manifest) -> Iterator[str]:
    version = crd()["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    yield from unknown_fields(spec, schema, "spec")
    try:
        parse_spec(spec)
    except InvalidSpec as error:
        yield from error.problems


def _planned_problems(name: str, cluster: Manifest) -> Iterator[str]:
    """What only the planner finds: engine arguments, and how podTemplate merges."""
    status = plan(_snapshot(cluster)).status or {}
    ready = next(c for c in status["conditions"] if c["type"] == "Ready")
    if ready["reason"] in REFUSED:
        yield f"{name}: {ready['reason']}: {ready['message']}"


def unknown_fields(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    """Fields that the CRD's schema does not know, with the name that was probably meant."""
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from unknown_fields(item, schema.get("items") or {}, f"{path}[{number}]")
        return
    properties: Mapping[str, Any] = schema.get("properties") or {}
    if not isinstance(value, dict):
        return
    free = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
    for field, inner in value.items():
        if field in properties:
            yield from unknown_fields(inner, properties[field], f"{path}.{field}")
        elif properties and not free:
            near = difflib.get_close_matches(str(field), properties, n=1)
            hint = f'did you mean "{near[0]}"?' if near else f"known: {', '.join(properties)}"
            yield f"{path}.{field}: unknown field; {hint}"
