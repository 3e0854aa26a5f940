"""`spec.router`: what stands between clients and engines."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from sglang_controllers.api.kubernetes import ALL_OTHER_FIELDS, Argument, Quantities
from sglang_controllers.api.model import Model, Rule, ShapedBy, each_once, list_map
from sglang_controllers.names import ROUTER_CONTAINER

MAX_ROUTERS = 100


class RoutingPolicy(StrEnum):
    CACHE_AWARE = "cache_aware"
    LEAST_LOAD = "least_load"
    POWER_OF_TWO = "power_of_two"
    PREFIX_HASH = "prefix_hash"
    CONSISTENT_HASHING = "consistent_hashing"
    ROUND_ROBIN = "round_robin"
    RANDOM = "random"


class ApiKey(Model):
    """A key of a Secret in the cluster's namespace. The operator itself never reads it."""

    name: str = Field(min_length=1, max_length=253)
    """Name of the Secret."""

    key: str = Field(min_length=1, max_length=253)
    """Key in the Secret's data."""


class RouterResources(Model):
    """CPU and memory of each router. Default: 100m and 256Mi requested, no limits."""

    requests: Quantities = Field(default_factory=dict)
    """What the scheduler reserves on a node."""

    limits: Quantities = Field(default_factory=dict)
    """What the container may not exceed."""


class RouterContainer(Model):
    """A container of the routers' pods. Every field of a Kubernetes container may be set."""

    model_config = ConfigDict(json_schema_extra=ALL_OTHER_FIELDS)

    name: str = Field(min_length=1, max_length=63)
    """The router's container is named `router`. Any other name adds a container."""

    command: list[Argument] | None = Field(default=None, max_length=64)
    """Entry point, for added containers only."""

    args: list[Argument] | None = Field(default=None, max_length=256)
    """Arguments, for added containers only."""

    rules = (
        Rule(
            field="",
            message="the operator writes command and args of the container router; remove them",
            cel=f"self.name != '{ROUTER_CONTAINER}' || !(has(self.command) || has(self.args))",
            holds=lambda container: (
                container.name != ROUTER_CONTAINER
                or not container.model_fields_set & {"command", "args"}
            ),
        ),
    )


class RouterPodSpec(Model):
    """Pod spec. Every field of a Kubernetes pod may be set."""

    model_config = ConfigDict(json_schema_extra=ALL_OTHER_FIELDS)

    containers: Annotated[list[RouterContainer], each_once("name")] | None = Field(
        default=None, max_length=32, json_schema_extra=list_map("name")
    )
    """Containers, merged by name; their env merges by name, their volumeMounts by mountPath."""


class RouterPodTemplate(Model):
    """Whatever else the routers' pods need, for example an image of your own for `router`.

    Merged over the operator's pod template: containers, volumes and env by name, mounts by path.
    """

    model_config = ConfigDict(json_schema_extra=ALL_OTHER_FIELDS)

    spec: RouterPodSpec | None = None
    """Pod spec. Every field of a Kubernetes pod may be set."""


class Router(Model):
    enabled: bool | None = None
    """False leaves the router out: then the cluster's Service points to the engines, and its choice
    among them knows nothing of their load or caches. Default true."""

    replicas: int | None = Field(default=None, ge=1, le=MAX_ROUTERS)
    """Routers, each of which knows all engines. Default 2."""

    policy: Annotated[RoutingPolicy | None, Field(strict=False)] = None
    """How a router chooses an engine. `cache_aware` prefers one that has seen the prompt's prefix,
    as long as load stays even. Default `cache_aware`."""

    api_key_secret_ref: ApiKey | None = None
    """Where the key is that clients have to send, as `Authorization: Bearer <key>`. The routers
    enforce it; who reaches the pods or the Service of the engines needs none. Routers read the key
    when they start. Default: none."""

    resources: Annotated[dict[str, Any], ShapedBy(RouterResources)] = Field(default_factory=dict)

    pod_template: Annotated[dict[str, Any], ShapedBy(RouterPodTemplate)] = Field(
        default_factory=dict
    )

    rules = (
        Rule(
            field="apiKeySecretRef",
            message="the router enforces the key, and enabled is false; remove one of the two",
            cel="!(has(self.apiKeySecretRef) && has(self.enabled) && !self.enabled)",
            holds=lambda router: (
                not (router.api_key_secret_ref is not None and router.enabled is False)
            ),
        ),
    )
