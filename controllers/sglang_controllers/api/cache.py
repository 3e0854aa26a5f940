"""`spec.cache`: what stays of the KV of earlier requests, and where."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from sglang_controllers.api.files import Word
from sglang_controllers.api.model import Model, Rule, above_zero
from sglang_controllers.api.warming import Warming


class EvictionPolicy(StrEnum):
    """What SGLang 0.5.23 offers; its parser has no others."""

    LRU = "lru"
    LFU = "lfu"
    SLRU = "slru"
    PRIORITY = "priority"
    TLRU = "tlru"


class PrefixCaching(StrEnum):
    ENABLED = "enabled"
    DISABLED = "disabled"


class WritePolicy(StrEnum):
    WRITE_BACK = "write_back"
    WRITE_THROUGH = "write_through"
    WRITE_THROUGH_SELECTIVE = "write_through_selective"


class IoBackend(StrEnum):
    DIRECT = "direct"
    KERNEL = "kernel"
    KERNEL_ASCEND = "kernel_ascend"


class MemoryLayout(StrEnum):
    LAYER_FIRST = "layer_first"
    PAGE_FIRST = "page_first"
    PAGE_FIRST_DIRECT = "page_first_direct"
    PAGE_FIRST_KV_SPLIT = "page_first_kv_split"
    PAGE_HEAD = "page_head"


class PrefetchPolicy(StrEnum):
    BEST_EFFORT = "best_effort"
    WAIT_COMPLETE = "wait_complete"
    TIMEOUT = "timeout"


class Slru(Model):
    """Settings of the policy `slru`."""

    protected_threshold: int | None = Field(default=None, ge=1, le=1_000_000)
    """Uses after which a prefix is kept longer. Default 2."""


class Tlru(Model):
    """Settings of the policy `tlru`, in tokens."""

    threshold: int = Field(ge=1, le=100_000_000)
    """Tokens of a conversation that may be computed again without a slow first token. Must be more
    than `nextPromptEstimate`."""

    next_prompt_estimate: int | None = Field(default=None, ge=0, le=100_000_000)
    """Tokens that a conversation's next prompt is expected to add. Default 0."""

    rules = (
        Rule(
            field="threshold",
            message="must be more than nextPromptEstimate (default 0), else tlru is lru; write a "
            "larger one or use lru",
            cel="self.threshold > (has(self.nextPromptEstimate) ? self.nextPromptEstimate : 0)",
            holds=lambda tlru: tlru.threshold > (tlru.next_prompt_estimate or 0),
        ),
    )


class Eviction(Model):
    policy: Annotated[EvictionPolicy | None, Field(strict=False)] = None
    """Which prefixes go first: `lru` the least recently used, `lfu` the least often used, `slru`
    the least recently used of those used only once, `priority` those of requests with the lowest
    priority, `tlru` those that conversations answer quickly without. Default `lru`."""

    slru: Slru = Field(default_factory=Slru)
    """Settings of the policy `slru`. Default: SGLang's."""

    tlru: Tlru | None = None
    """Settings of the policy `tlru`, which needs them. Default: none."""

    rules = (
        Rule(
            field="slru",
            message="only the policy slru takes it; remove it or write policy: slru",
            cel="!has(self.slru) || !has(self.slru.protectedThreshold) || "
            "(has(self.policy) && self.policy == 'slru')",
            holds=lambda eviction: (
                eviction.slru.protected_threshold is None or eviction.policy is EvictionPolicy.SLRU
            ),
        ),
        Rule(
            field="tlru",
            message="the policy tlru and its settings tlru go together; set both or remove both",
            cel="has(self.tlru) == (has(self.policy) && self.policy == 'tlru')",
            holds=lambda eviction: (
                (eviction.tlru is not None) == (eviction.policy is EvictionPolicy.TLRU)
            ),
        ),
    )


class Storage(Model):
    """A store below host memory that engines may share."""

    backend: Word
    """Kind of store, for example `file`, `mooncake`, `hf3fs` or `nixl`."""

    prefetch_policy: Annotated[PrefetchPolicy | None, Field(strict=False)] = None
    """When reading ahead stops: `best_effort` at once when the request may run, `wait_complete`
    when all is read, `timeout` after a while. Default `timeout`."""


class HiCache(Model):
    """A second level of the KV cache in host memory, and a third in a store."""

    size_gb: int | None = Field(default=None, alias="sizeGB", ge=1, le=100_000)
    """Host memory of each rank, in gigabytes; the pod's memory limit must hold it. Overrides
    `ratio`. Default: by `ratio`."""

    ratio: float | None = Field(default=None, ge=0, le=1000)
    """Host memory of each rank as a multiple of its accelerator's KV cache. Default 2."""

    write_policy: Annotated[WritePolicy | None, Field(strict=False)] = None
    """When KV goes to host memory: `write_through` at once, `write_through_selective` when it was
    used again, `write_back` when it is evicted. Default `write_through`."""

    io_backend: Annotated[IoBackend | None, Field(strict=False)] = None
    """What copies between host and accelerator: `kernel`, `direct`, or `kernel_ascend` on Ascend.
    Default `kernel`."""

    memory_layout: Annotated[MemoryLayout | None, Field(strict=False)] = None
    """Order of KV in host memory. Default `page_first`."""

    storage: Storage | None = None
    """A store below host memory. Default: none."""

    rules = (above_zero("ratio", "2"),)


class Cache(Model):
    eviction: Eviction = Field(default_factory=Eviction)
    """Which cached prefixes make room when the KV cache is full."""

    page_size: int | None = Field(default=None, ge=1, le=1024)
    """Tokens in a page of the KV cache; only whole pages are shared between requests. Default:
    SGLang's choice for the hardware, mostly 1."""

    prefix_caching: Annotated[PrefixCaching | None, Field(strict=False)] = None
    """`disabled` keeps nothing of finished requests. Default `enabled`."""

    hi_cache: HiCache | None = None
    """Hierarchical cache: keeps what the accelerator's memory has no room for. `{}` switches it on
    with SGLang's defaults. Default: off."""

    warming: Warming | None = None
    """Prefills prompts ahead of users' requests. `{}` lets prompts be named later without a
    restart. Default: off."""

    rules = (
        Rule(
            field="hiCache",
            message="needs prefix caching; remove it or remove prefixCaching: disabled",
            cel="!has(self.hiCache) || !has(self.prefixCaching) || "
            "self.prefixCaching != 'disabled'",
            holds=lambda cache: (
                cache.hi_cache is None or cache.prefix_caching is not PrefixCaching.DISABLED
            ),
        ),
        Rule(
            field="warming",
            message="needs prefix caching; remove it or remove prefixCaching: disabled",
            cel="!has(self.warming) || !has(self.prefixCaching) || "
            "self.prefixCaching != 'disabled'",
            holds=lambda cache: (
                cache.warming is None or cache.prefix_caching is not PrefixCaching.DISABLED
            ),
        ),
    )
