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
    """What the statement is about: Ready, Available, Reconciling or Stalled."""

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


class ClusterStatus(Model):
    """What the operator last saw. It writes only on changes."""

    observed_generation: int | None = Field(
        default=None, ge=0, json_schema_extra={"format": "int64"}
    )
    """metadata.generation that this status is about."""

    conditions: list[Condition] | None = Field(
        default=None, max_length=16, json_schema_extra=list_map("type")
    )
    """Ready, Available, and while they hold Reconciling and Stalled."""

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
