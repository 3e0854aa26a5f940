"""How a cluster is reached, replaced and disturbed. Nothing here restarts an engine."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from sglang_controllers.api.duration import DURATION_PATTERN, duration_s
from sglang_controllers.api.kubernetes import Amount, Annotations
from sglang_controllers.api.model import Model, Rule

MAX_DEADLINE_S = 7 * 24 * 3600

NOTHING = (0, "0", "0%")


class ServiceType(StrEnum):
    CLUSTER_IP = "ClusterIP"
    NODE_PORT = "NodePort"
    LOAD_BALANCER = "LoadBalancer"


class Service(Model):
    type: Annotated[ServiceType | None, Field(strict=False)] = None
    """`ClusterIP` is reached from inside the Kubernetes cluster only, `NodePort` at every node's
    address, `LoadBalancer` at an address of its own. Default `ClusterIP`."""

    annotations: Annotations = Field(default_factory=dict)
    """Annotations of the Service, for example for a load balancer's controller. Default: none."""


def _deadline_holds(rollout: "Rollout") -> bool:
    if rollout.progress_deadline is None:
        return True
    try:
        return 0 < duration_s(rollout.progress_deadline) <= MAX_DEADLINE_S
    except ValueError:
        return False


class Rollout(Model):
    max_surge: Amount | None = None
    """Most replicas above `replicas` while a change rolls out, as a number or a percentage
    (rounded up). Each needs accelerators of its own. Default 1."""

    max_unavailable: Amount | None = None
    """Most replicas that a rollout may take away before their successors are ready, as a number or
    a percentage (rounded down). It is used only when no surge fits, so 0 waits until one does.
    Default 1."""

    progress_deadline: str | None = Field(default=None, max_length=20)
    """How long a rollout may take for its next replica before the status says
    ProgressDeadlineExceeded, in hours, minutes and seconds. At most 168h. Nothing is undone or
    restarted. Default: `engine.startupTimeout`, a gate's `timeout` and 10 minutes."""

    rules = (
        Rule(
            field="",
            message="maxSurge and maxUnavailable cannot both be 0, for then nothing could move; "
            "write 1 for one of them",
            cel="!(has(self.maxSurge) && has(self.maxUnavailable) && "
            "string(self.maxSurge) in ['0', '0%'] && string(self.maxUnavailable) in ['0', '0%'])",
            holds=lambda rollout: (
                not (rollout.max_surge in NOTHING and rollout.max_unavailable in NOTHING)
            ),
        ),
        Rule(
            field="progressDeadline",
            seen="progressDeadline",
            message='a duration needs units (h, m or s), more than 0s and at most 168h; write "1h"',
            cel="!has(self.progressDeadline) || "
            f"(self.progressDeadline.matches('{DURATION_PATTERN}') "
            "&& duration(self.progressDeadline) > duration('0s') "
            "&& duration(self.progressDeadline) <= duration('168h'))",
            holds=_deadline_holds,
        ),
    )


class Disruption(Model):
    max_unavailable: Amount | None = None
    """Most replicas that node drains and other evictions may take away at a time, as a number or a
    percentage (rounded up). 0 blocks drains. Default 1."""
