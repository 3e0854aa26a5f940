"""The pieces of Kubernetes' own API that a SGLangCluster holds, as far as they are checked."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.config import JsonDict

from sglang_controllers.api.model import Model, Rule, as_stored, each_once, list_map
from sglang_controllers.names import ENGINE_CONTAINER

QUANTITY_PATTERN = (
    r"^\+?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+"
    r"(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
"""Kubernetes' own, as its generated CRDs have it, less what is below zero."""

MAX_QUANTITY = 32
QUANTITY_RULE = 'must be a quantity; write "500m" for half a core, "8Gi" for 8 GiB'


def _quantity(value: Any) -> Any:
    text = str(value) if type(value) in (int, str) else ""
    if len(text) > MAX_QUANTITY or not re.fullmatch(QUANTITY_PATTERN, text, re.ASCII):
        raise ValueError(QUANTITY_RULE)
    return value


Quantity = Annotated[
    int | str,
    BeforeValidator(_quantity),
    WithJsonSchema(
        {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "maxLength": MAX_QUANTITY,
            # In place of a pattern and a minimum, which the API server would answer with.
            "x-kubernetes-validations": [
                {
                    "rule": f"type(self) == int ? self >= 0 : self.matches(r'{QUANTITY_PATTERN}')",
                    "message": QUANTITY_RULE,
                }
            ],
        }
    ),
]

AMOUNT_PATTERN = r"^([0-9]{1,9}|(100|[0-9]{1,2})%)$"
AMOUNT_RULE = 'must be a whole number or a percentage; write 1 or "25%"'


def _amount(value: Any) -> Any:
    if type(value) is int and 0 <= value < 10**9:
        return value
    if not isinstance(value, str) or not re.fullmatch(AMOUNT_PATTERN, value, re.ASCII):
        raise ValueError(AMOUNT_RULE)
    return value


Amount = Annotated[
    int | str,
    BeforeValidator(_amount),
    WithJsonSchema(
        {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "maxLength": 9,
            "x-kubernetes-validations": [
                {
                    "rule": "type(self) == int ? self >= 0 && self < 1000000000 : "
                    f"self.matches(r'{AMOUNT_PATTERN}')",
                    "message": AMOUNT_RULE,
                }
            ],
        }
    ),
]
"""So many replicas, or that part of them."""

Argument = Annotated[str, Field(max_length=65536)]

ALL_OTHER_FIELDS: JsonDict = {"x-kubernetes-preserve-unknown-fields": True}

WithoutNulls = BeforeValidator(lambda raw: as_stored(raw) if isinstance(raw, dict) else raw)
"""The API server drops nulls from maps, too."""

Quantities = Annotated[dict[str, Quantity], Field(max_length=16), WithoutNulls]

Annotations = Annotated[
    dict[str, Annotated[str, Field(max_length=65536)]], Field(max_length=64), WithoutNulls
]


class Resources(Model):
    """CPU and memory of the engine's container, as in a pod.

    Accelerators are asked for with `spec.engine.accelerator`.
    """

    requests: Quantities = Field(default_factory=dict)
    """What the scheduler reserves on a node, for example {cpu: "8", memory: 64Gi}."""

    limits: Quantities = Field(default_factory=dict)
    """What the container may not exceed. More memory than this ends it with OutOfMemory."""


class KeySelector(Model):
    """One key of a ConfigMap or Secret in the cluster's namespace."""

    name: str = Field(min_length=1, max_length=253)
    """Name of the object."""

    key: str = Field(min_length=1, max_length=253)
    """Key in the object's data."""

    optional: bool | None = None
    """True starts the engine also when the object or its key is missing. Default false."""


class FieldSelector(Model):
    """A field of the pod."""

    field_path: str = Field(min_length=1, max_length=256)
    """For example `metadata.name` or `status.podIP`."""

    api_version: str | None = Field(default=None, max_length=64)
    """Version of the path's schema. Default `v1`."""


class ResourceFieldSelector(Model):
    """A resource of the engine's container."""

    resource: str = Field(min_length=1, max_length=253)
    """For example `limits.memory`."""

    container_name: str | None = Field(default=None, max_length=63)
    """Container that is asked. Default: the engine."""

    divisor: Quantity | None = None
    """Unit of the answer. Default 1."""


class EnvVarSource(Model):
    """Where a variable's value is read from: exactly one of the fields."""

    config_map_key_ref: KeySelector | None = None
    """A key of a ConfigMap."""

    secret_key_ref: KeySelector | None = None
    """A key of a Secret. The operator itself never reads it."""

    field_ref: FieldSelector | None = None
    """A field of the pod."""

    resource_field_ref: ResourceFieldSelector | None = None
    """A resource of the engine's container."""

    rules = (
        Rule(
            field="",
            message="name exactly one of configMapKeyRef, secretKeyRef, fieldRef, "
            "resourceFieldRef; remove the others",
            cel="[has(self.configMapKeyRef), has(self.secretKeyRef), has(self.fieldRef), "
            "has(self.resourceFieldRef)].filter(one, one).size() == 1",
            holds=lambda source: len(source.model_fields_set) == 1,
        ),
    )


class EnvVar(Model):
    """An environment variable, as in a pod."""

    name: str = Field(pattern=r"^[-._a-zA-Z][-._a-zA-Z0-9]*$", max_length=256)
    """Name of the variable."""

    value: str | None = Field(default=None, max_length=32768)
    """Its value. Default: empty."""

    value_from: EnvVarSource | None = None
    """Where its value is read from instead, for example a Secret."""

    rules = (
        Rule(
            field="",
            message="value and valueFrom exclude each other; remove one",
            cel="!(has(self.value) && has(self.valueFrom))",
            holds=lambda variable: variable.value is None or variable.value_from is None,
        ),
    )


class Container(Model):
    """A container of the pod template. Every field of a Kubernetes container may be set."""

    model_config = ConfigDict(json_schema_extra=ALL_OTHER_FIELDS)

    name: str = Field(min_length=1, max_length=63)
    """The engine's container is named `engine`. Any other name adds a container."""

    command: list[Argument] | None = Field(default=None, max_length=64)
    """Entry point, for added containers only."""

    args: list[Argument] | None = Field(default=None, max_length=256)
    """Arguments, for added containers only."""

    image: str | None = Field(default=None, max_length=1024)
    """Image, for added containers only."""

    rules = (
        Rule(
            field="",
            message="the operator writes command, args and image of the container engine; use "
            "spec.engine.extraArgs and spec.engine.image",
            cel=f"self.name != '{ENGINE_CONTAINER}' || "
            "!(has(self.command) || has(self.args) || has(self.image))",
            holds=lambda container: (
                container.name != ENGINE_CONTAINER
                or not container.model_fields_set & {"command", "args", "image"}
            ),
        ),
    )


class PodTemplateSpec(Model):
    """Pod spec. Every field of a Kubernetes pod may be set."""

    model_config = ConfigDict(json_schema_extra=ALL_OTHER_FIELDS)

    containers: Annotated[list[Container], each_once("name")] | None = Field(
        default=None, max_length=32, json_schema_extra=list_map("name")
    )
    """Containers, merged by name; their env merges by name, their volumeMounts by mountPath."""


class PodTemplate(Model):
    """Whatever else pods need, for example spec.nodeSelector, spec.affinity, spec.volumes.

    Merged over the operator's pod template: containers, volumes and env by name, mounts by path.
    """

    model_config = ConfigDict(json_schema_extra=ALL_OTHER_FIELDS)

    spec: PodTemplateSpec | None = None
    """Pod spec. Every field of a Kubernetes pod may be set."""
