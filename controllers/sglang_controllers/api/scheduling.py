"""`spec.scheduling`: which requests run, when, and how many at a time."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from sglang_controllers.api.model import Model, Rule


class SchedulingPolicy(StrEnum):
    """What an engine of SGLang 0.5.23 starts with.

    Its parser also takes `priority`, on which the scheduler then dies.
    """

    FCFS = "fcfs"
    LPM = "lpm"
    DFS_WEIGHT = "dfs-weight"
    HRRN = "hrrn"
    SHORTEST_PREFILL_FIRST = "shortest-prefill-first"
    LOF = "lof"
    ROUTING_KEY = "routing-key"
    RANDOM = "random"


BY_PRIORITY = (None, SchedulingPolicy.FCFS, SchedulingPolicy.LOF)
"""The policies that order requests of the same priority."""


class OverlapMode(StrEnum):
    ENABLED = "enabled"
    DISABLED = "disabled"


class Preemption(StrEnum):
    ENABLED = "enabled"
    DISABLED = "disabled"


class PriorityOrder(StrEnum):
    HIGH_FIRST = "high-first"
    LOW_FIRST = "low-first"


class Overlap(Model):
    mode: Annotated[OverlapMode | None, Field(strict=False)] = None
    """`disabled` prepares a batch only when the one before is done. Default `enabled`."""


class Priority(Model):
    """Requests carry a number, and those with the highest run first."""

    default: int | None = Field(default=None, ge=-(2**31), le=2**31 - 1)
    """Priority of requests that carry none. Default: below every other."""

    order: Annotated[PriorityOrder | None, Field(strict=False)] = None
    """`low-first` runs the lowest numbers first. Default `high-first`."""

    preemption: Annotated[Preemption | None, Field(strict=False)] = None
    """`disabled` lets running requests finish before one of higher priority. Default
    `enabled`."""

    preemption_threshold: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """Difference in priority from which a waiting request replaces a running one. Default 10."""


class Scheduling(Model):
    policy: Annotated[SchedulingPolicy | None, Field(strict=False)] = None
    """Which waiting request runs next: `fcfs` the first to come; `lpm` the longest cached prefix;
    `dfs-weight` the busiest branch of the prefix tree; `hrrn` long waits and short prompts;
    `shortest-prefill-first` the fewest uncached tokens; `lof` the longest answer; `routing-key`
    the key with most running requests; `random` any. Default `fcfs`."""

    overlap: Overlap = Field(default_factory=Overlap)
    """Whether the scheduler prepares the next batch while the accelerator works on this one."""

    conservativeness: float | None = Field(default=None, ge=0, le=1000)
    """How much room for answers a request must find before it starts. Raise it when requests are
    often retracted, lower it when the KV cache stays empty. Default 1."""

    max_running_requests: int | None = Field(default=None, ge=1, le=1_000_000)
    """Requests that an engine works on at a time. Default: as many as fit the KV cache, 48 with
    speculative decoding."""

    max_queued_requests: int | None = Field(default=None, ge=1, le=1_000_000)
    """Requests that wait; further ones are refused with 503. Default: no limit."""

    chunked_prefill_size: int | None = Field(default=None, ge=-1, le=10_000_000)
    """Tokens of a prompt that are computed in one batch, a multiple of `cache.pageSize`; -1 never
    splits a prompt. Default: by the accelerator's memory, 2048 to 16384."""

    priority: Priority | None = None
    """Runs requests by the priority that they carry. `{}` switches it on. Default: off."""

    rules = (
        Rule(
            field="priority",
            message="works with the policies fcfs and lof; remove it or write one of them",
            cel="!has(self.priority) || !has(self.policy) || self.policy in ['fcfs', 'lof']",
            holds=lambda scheduling: (
                scheduling.priority is None or scheduling.policy in BY_PRIORITY
            ),
        ),
    )
