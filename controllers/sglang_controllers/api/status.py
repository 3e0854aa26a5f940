"""`status`: what a SGLangCluster says about itself. The schema only; the planner writes it."""

from enum import StrEnum

from pydantic import Field

from sglang_controllers.api.model import Model, list_map

MAX_MESSAGE = 32768
"""As in metav1.Condition."""


class ConditionStatus(StrEnum):
    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(Model):
    """One statement about the cluster, as in metav1.Condition."""

    type: str = Field(max_length=316)
    """What the statement is about: Ready, Available, Reconciling, Stalled or Warmed."""

    status: ConditionStatus
    """Whether it holds."""

    observed_generation: int | None = Field(
        default=None, ge=0, json_schema_extra={"format": "int64"}
    )
    """metadata.generation that the statement is about."""

    last_transition_time: str = Field(max_length=64, json_schema_extra={"format": "date-time"})
    """When `status` last changed."""

    reason: str = Field(
        pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$", min_length=1, max_length=1024
    )
    """Why, in one word that the documentation explains."""

    message: str = Field(max_length=MAX_MESSAGE)
    """Why, in a sentence that says what to do."""


class RoleStatus(Model):
    """Counts of one role's engines."""

    name: str = Field(max_length=63)
    """The role. `unified` engines do the whole work of a request."""

    revision: str | None = Field(default=None, max_length=63)
    """Revision that the role is on or on its way to."""

    desired: int | None = Field(default=None, ge=0, json_schema_extra={"format": "int32"})
    """Engines wanted."""

    current: int | None = Field(default=None, ge=0, json_schema_extra={"format": "int32"})
    """Engines that exist, of any revision."""

    updated: int | None = Field(default=None, ge=0, json_schema_extra={"format": "int32"})
    """Engines of the wanted revision."""

    ready: int | None = Field(default=None, ge=0, json_schema_extra={"format": "int32"})
    """Engines that answer requests, of any revision."""


class FailedPrompt(Model):
    """A prompt that cannot be warmed, or a whole source. The agent's log says why."""

    config_map: str | None = Field(default=None, max_length=253)
    """ConfigMap that it is in."""

    persistent_volume_claim: str | None = Field(default=None, max_length=253)
    """Claim that it is in."""

    key: str | None = Field(default=None, max_length=1024)
    """Key of the ConfigMap, or file of the claim."""

    index: int | None = Field(default=None, ge=0, json_schema_extra={"format": "int64"})
    """Its place in there, from 0. Not set: the whole is meant."""


class WarmingStatus(Model):
    """Prompts that are warmed, as far as engines are done. Live figures are in metrics."""

    pods: int | None = Field(default=None, ge=0, json_schema_extra={"format": "int32"})
    """Engines of the current revision."""

    warmed: int | None = Field(default=None, ge=0, json_schema_extra={"format": "int32"})
    """Those of them that are done with all current prompts."""

    prompts: int | None = Field(default=None, ge=0, json_schema_extra={"format": "int32"})
    """Prompts that an engine that is done has tried."""

    failed: int | None = Field(default=None, ge=0, json_schema_extra={"format": "int32"})
    """Those of them that it cannot warm."""

    tokens: int | None = Field(default=None, ge=0, json_schema_extra={"format": "int64"})
    """Tokens that it had computed for them when something else here changed last."""

    failures: list[FailedPrompt] | None = Field(default=None, max_length=20)
    """Where these are, the first 20."""


class ClusterStatus(Model):
    """What the operator last saw. It writes only on changes."""

    observed_generation: int | None = Field(
        default=None, ge=0, json_schema_extra={"format": "int64"}
    )
    """metadata.generation that this status is about."""

    conditions: list[Condition] | None = Field(
        default=None, max_length=16, json_schema_extra=list_map("type")
    )
    """Ready, Available, while they hold Reconciling and Stalled, and with `cache.warming` Warmed."""

    replicas: int | None = Field(default=None, ge=0, json_schema_extra={"format": "int32"})
    """Engines that exist. Read by `kubectl get` and autoscalers."""

    selector: str | None = Field(default=None, max_length=1024)
    """Label selector of the engines' pods, for autoscalers."""

    current_revision: str | None = Field(default=None, max_length=63)
    """Revision of the current spec, on its way or there."""

    roles: list[RoleStatus] | None = Field(
        default=None, max_length=8, json_schema_extra=list_map("name")
    )
    """Counts by role."""

    warming: WarmingStatus | None = None
    """What engines say of `spec.cache.warming`."""
