"""The CRD is the generated one, small, structural, and bounded where CEL looks."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sglang_controllers.api.model import Model
from sglang_controllers.api.schema import crd, crd_yaml, structural_schema
from sglang_controllers.api.settings import SETTINGS
from sglang_controllers.api.source import FORMS
from sglang_controllers.api.spec import ClusterSpec

FILE = Path(__file__).parents[4] / "crds" / "sglang.dev_sglangclusters.yaml"
VERSION = crd()["spec"]["versions"][0]
ROOT: dict[str, Any] = VERSION["schema"]["openAPIV3Schema"]

MAX_BYTES = 200_000
"""Client-side apply stops at 262,144 bytes, its annotation included."""

MAX_DESCRIPTION = 350
"""Characters: three lines of a terminal."""

CHOSEN = {
    "cache.hiCache.storage.backend",
    "speculative.eagle.algorithm",
    "speculative.eagle.draftModel.source",
    "speculative.nextn.draftModel.source",
    "speculative.standalone.draftModel.source",
}
"""Settings without a default: they are required where their object is."""

UNDOCUMENTED = {".apiVersion", ".kind", ".metadata", ".metadata.name"}
"""Fields of every Kubernetes object."""


def schemas(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema below `schema`, itself included, with its path."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from schemas(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from schemas(schema[key], f"{path}[]")


ALL = list(schemas(ROOT))


def keywords(node: Any, *, properties: bool = False) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if not properties:
                yield key
            yield from keywords(value, properties=key == "properties" and not properties)
    elif isinstance(node, list):
        for item in node:
            yield from keywords(item)


def test_the_file_is_what_the_models_generate() -> None:
    assert FILE.read_text() == crd_yaml(), "run `make generate`"


def test_the_file_reads_back_as_the_crd() -> None:
    assert yaml.safe_load(FILE.read_text()) == crd()


def test_the_file_is_small() -> None:
    assert FILE.stat().st_size < MAX_BYTES


def test_generating_twice_gives_the_same() -> None:
    assert crd_yaml() == crd_yaml()


def test_every_field_has_a_type() -> None:
    untyped = [
        path
        for path, schema in ALL
        if "type" not in schema
        and not schema.get("x-kubernetes-int-or-string")
        and not schema.get("x-kubernetes-preserve-unknown-fields")
    ]

    assert untyped == []


def test_only_known_places_preserve_unknown_fields() -> None:
    open_places = [p for p, schema in ALL if "x-kubernetes-preserve-unknown-fields" in schema]

    assert open_places == [
        ".spec.engine.extraArgs[]",
        ".spec.router.podTemplate",
        ".spec.router.podTemplate.spec",
        ".spec.router.podTemplate.spec.containers[]",
        ".spec.podTemplate",
        ".spec.podTemplate.spec",
        ".spec.podTemplate.spec.containers[]",
    ]


def test_every_list_has_a_list_type_and_a_limit() -> None:
    lists = [(path, schema) for path, schema in ALL if schema.get("type") == "array"]

    assert len(lists) >= 6
    for path, schema in lists:
        assert schema.get("x-kubernetes-list-type") in ("atomic", "map"), path
        assert "maxItems" in schema, path


def test_keys_of_list_maps_are_required() -> None:
    maps = [schema for _, schema in ALL if schema.get("x-kubernetes-list-type") == "map"]

    assert len(maps) == 6
    for schema in maps:
        assert set(schema["x-kubernetes-list-map-keys"]) <= set(schema["items"]["required"])


def test_every_string_and_map_has_a_limit() -> None:
    """CEL's cost is estimated from limits; without them the API server refuses the CRD."""
    for path, schema in ALL:
        if schema.get("type") == "string" and "enum" not in schema and path.count(".") > 1:
            assert "maxLength" in schema, path
        if "additionalProperties" in schema:
            assert "maxProperties" in schema, path


@pytest.mark.parametrize("keyword", ["$ref", "$defs", "title", "const", "oneOf", "allOf", "not"])
def test_what_structural_schemas_exclude_does_not_occur(keyword: str) -> None:
    assert keyword not in set(keywords(VERSION["schema"]))


def test_no_null_type_occurs() -> None:
    for path, schema in ALL:
        assert schema.get("type") != "null", path
        assert {"type": "null"} not in schema.get("anyOf", []), path


def test_the_only_default_is_one_replica() -> None:
    assert [(path, s["default"]) for path, s in ALL if "default" in s] == [(".spec.replicas", 1)]


def test_every_field_is_described_briefly() -> None:
    for path, schema in ALL:
        if path and not path.endswith("[]") and path not in UNDOCUMENTED:
            description = schema.get("description", "")
            assert description.endswith("."), path
            assert len(description) <= MAX_DESCRIPTION, path


def test_optional_settings_tell_their_default() -> None:
    spec = ROOT["properties"]["spec"]
    for setting in SETTINGS:
        schema = spec
        for part in setting.field.split("."):
            schema = schema["properties"][part]
        assert "Default" in schema["description"] or setting.field in CHOSEN, setting.field


def test_rules_name_the_field_and_say_what_to_write() -> None:
    rules = [r for _, schema in ALL for r in schema.get("x-kubernetes-validations", [])]

    assert len(rules) == 63
    for rule in rules:
        assert re.search(r"; (write|remove|lower|use|set|name) |remove ", rule["message"]), rule


def test_field_paths_of_rules_exist() -> None:
    for path, schema in ALL:
        for rule in schema.get("x-kubernetes-validations", []):
            target = schema
            for part in filter(None, rule.get("fieldPath", "").split(".")):
                assert part in target["properties"], (path, rule["fieldPath"])
                target = target["properties"][part]


def test_the_source_rule_says_the_same_as_the_operator() -> None:
    rule = ROOT["properties"]["spec"]["properties"]["model"]["x-kubernetes-validations"][0]

    assert rule["message"] == FORMS


def test_fields_of_the_spec_are_in_camel_case() -> None:
    def aliases(model: type[Model]) -> set[str]:
        return {str(field.alias) for field in model.model_fields.values()}

    assert set(structural_schema(ClusterSpec)["properties"]) == aliases(ClusterSpec)
    assert all(
        re.fullmatch(r"[a-z][a-zA-Z0-9]*", path.rpartition(".")[2].removesuffix("[]"))
        for path, _ in ALL
        if path and not path.endswith("[]")
    )


def test_scale_and_columns_point_at_fields() -> None:
    scale = VERSION["subresources"]["scale"]
    paths = [*scale.values(), *(c["jsonPath"] for c in VERSION["additionalPrinterColumns"])]
    known = {path for path, _ in ALL} | {".metadata.creationTimestamp"}

    assert "status" in VERSION["subresources"]
    assert all(re.sub(r"\[\?\(.*?\)\]", "[]", path) in known for path in paths)
