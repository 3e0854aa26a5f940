"""The CustomResourceDefinition, generated from the API models.

`python -m sglang_controllers.api.schema` writes it to standard output.
"""

import sys
from typing import Any, cast

import yaml
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from sglang_controllers import names
from sglang_controllers.api.model import Model
from sglang_controllers.api.spec import ClusterSpec
from sglang_controllers.api.status import ClusterStatus

Manifest = dict[str, Any]

NAME_PATTERN = "^[a-z]([-a-z0-9]*[a-z0-9])?$"

NAME = {"type": "string", "maxLength": 253}
"""Kubernetes' own limit; ours is a rule, which says what to do."""

FIRST = ("description", "type", "enum", "default", "format", "required", "properties", "items")

DESCRIPTION = "A model served by SGLang engines, one or many, behind one Service."


class StructuralSchema(GenerateJsonSchema):
    """JSON Schema as the API server takes it: no $ref, no title, no null, every list typed."""

    def generate(self, schema: CoreSchema, mode: JsonSchemaMode = "validation") -> JsonSchemaValue:
        whole = super().generate(schema, mode)
        definitions = whole.pop("$defs", {})
        return cast("JsonSchemaValue", _tidied(_inlined(whole, definitions)))

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        # Unset stays unset: a default in the CRD would be written into every object. The one
        # that is wanted is in its field's json_schema_extra.
        return self.generate_inner(schema["schema"])

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def list_schema(self, schema: core_schema.ListSchema) -> JsonSchemaValue:
        return super().list_schema(schema) | {"x-kubernetes-list-type": "atomic"}

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        json_schema = super().dict_schema(schema)
        if json_schema.get("additionalProperties") is True:
            json_schema["additionalProperties"] = {"x-kubernetes-preserve-unknown-fields": True}
        return json_schema

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        return _without_const(super().literal_schema(schema))

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        json_schema = _without_const(super().enum_schema(schema))
        json_schema.pop("description", None)  # for readers of the code
        return json_schema

    def field_title_should_be_set(self, schema: Any) -> bool:
        del schema
        return False


def _without_const(schema: JsonSchemaValue) -> JsonSchemaValue:
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    return schema


def _inlined(node: Any, definitions: dict[str, Any]) -> Any:
    """`node` with each $ref replaced by what it names; the keys beside it win."""
    if isinstance(node, list):
        return [_inlined(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    own = {k: _inlined(v, definitions) for k, v in node.items() if k != "$ref"}
    if "$ref" not in node:
        return own
    target = definitions[node["$ref"].removeprefix("#/$defs/")]
    return _inlined(target, definitions) | own


def _tidied(node: Any, *, properties: bool = False) -> Any:
    """Without titles, descriptions first and on one line. Names of `properties` are left alone."""
    if isinstance(node, list):
        return [_tidied(item) for item in node]
    if not isinstance(node, dict):
        return node
    tidy: dict[str, Any] = {}
    items = node.items() if properties else sorted(node.items(), key=_place)
    for key, value in items:
        if key == "title" and not properties:
            continue
        if key == "description" and not properties:
            tidy[key] = " ".join(value.split())
        else:
            tidy[key] = _tidied(value, properties=key == "properties" and not properties)
    return tidy


def _place(item: tuple[str, Any]) -> int:
    """Order of a schema's keys, so that a reader meets what a field is before its limits."""
    return next((i for i, key in enumerate(FIRST) if key == item[0]), len(FIRST))


def structural_schema(model: type[Model]) -> Manifest:
    """The schema of one model, as part of a CRD."""
    return model.model_json_schema(schema_generator=StructuralSchema)


def crd() -> Manifest:
    """The CustomResourceDefinition of SGLangCluster."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names.PLURAL}.{names.GROUP}"},
        "spec": {
            "group": names.GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": names.KIND,
                "listKind": f"{names.KIND}List",
                "plural": names.PLURAL,
                "singular": names.KIND.lower(),
                "shortNames": ["sglc"],
                "categories": ["sglang"],
            },
            "versions": [_version()],
        },
    }


def _version() -> Manifest:
    return {
        "name": names.VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _root()},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": _columns(),
    }


def _root() -> Manifest:
    longest = names.MAX_CLUSTER_NAME
    return {
        "description": DESCRIPTION,
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object", "properties": {"name": NAME}},
            "spec": structural_schema(ClusterSpec),
            "status": structural_schema(ClusterStatus),
        },
        "x-kubernetes-validations": [
            {
                "rule": f"self.metadata.name.size() <= {longest} && "
                f"self.metadata.name.matches('{NAME_PATTERN}')",
                "message": f"a name has at most {longest} characters: a small letter, then small "
                'letters, digits and dashes, no dash at the end; write for example "chat-1"',
                "fieldPath": ".metadata.name",
            }
        ],
    }


def _columns() -> list[Manifest]:
    ready, unified = '.status.conditions[?(@.type=="Ready")]', '.status.roles[?(@.name=="unified")]'
    return [
        _column("Ready", "string", f"{ready}.status"),
        _column("Reason", "string", f"{ready}.reason"),
        _column("Desired", "integer", ".spec.replicas"),
        _column("Current", "integer", ".status.replicas"),
        _column("Up-to-date", "integer", f"{unified}.updated"),
        _column("Serving", "integer", f"{unified}.ready"),
        _column("Revision", "string", ".status.currentRevision", priority=1),
        _column("Model", "string", ".spec.model.source", priority=1),
        _column("Age", "date", ".metadata.creationTimestamp"),
    ]


def _column(name: str, kind: str, path: str, priority: int = 0) -> Manifest:
    column = {"name": name, "type": kind, "jsonPath": path}
    return column | ({"priority": priority} if priority else {})


def crd_yaml() -> str:
    """The CRD as it is in the repository."""
    head = "# Generated from the API models by `make generate`.\n"
    return head + yaml.safe_dump(crd(), sort_keys=False, width=100, allow_unicode=True)


if __name__ == "__main__":
    sys.stdout.write(crd_yaml())
