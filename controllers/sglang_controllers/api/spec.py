"""`spec`: what a user wants of a SGLangCluster."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from sglang_controllers.api.engine import Engine
from sglang_controllers.api.kubernetes import PodTemplate
from sglang_controllers.api.model import Model, Rule, ShapedBy
from sglang_controllers.api.source import (
    CLAIM_PATTERN,
    FORMS,
    IMAGE_PATH_PATTERN,
    OCI_PATTERN,
    PARENT_PATTERN,
    parse_source,
)

MAX_INT32 = 2**31 - 1


class EvictionPolicy(StrEnum):
    """What of SGLang 0.5.23 works without further settings; `tlru` needs two."""

    LRU = "lru"
    LFU = "lfu"
    SLRU = "slru"
    PRIORITY = "priority"


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


class OverlapMode(StrEnum):
    ENABLED = "enabled"
    DISABLED = "disabled"


class MatchType(StrEnum):
    BFS = "BFS"
    PROB = "PROB"


def _source_holds(model: "ModelFiles") -> bool:
    try:
        parse_source(model.source)
    except ValueError:
        return False
    return True


class ModelFiles(Model):
    source: str = Field(max_length=512)
    """Where the model's files are. `oci://IMAGE` mounts an OCI image as a volume (Kubernetes 1.35,
    or 1.33 with the feature ImageVolume on), `pvc://CLAIM/PATH` a claim of this namespace,
    read-only, and `image:///PATH` is a folder inside the engine's image."""

    served_name: str | None = Field(default=None, pattern=r"^[^:\s]+$", max_length=256)
    """Name under which clients ask for the model. Default: the cluster's name."""

    rules = (
        Rule(
            field="source",
            message=FORMS,
            seen="source",
            cel=f"(self.source.matches(r'{OCI_PATTERN}') || self.source.matches(r'{CLAIM_PATTERN}')"
            f" || self.source.matches(r'{IMAGE_PATH_PATTERN}'))"
            f" && !self.source.matches(r'{PARENT_PATTERN}')",
            holds=_source_holds,
        ),
    )


class Eviction(Model):
    policy: Annotated[EvictionPolicy | None, Field(strict=False)] = None
    """Which prefixes go first: `lru` the least recently used, `lfu` the least often used, `slru`
    the least recently used of those used only once, `priority` those of requests with the lowest
    priority. Default `lru`."""


class Cache(Model):
    eviction: Eviction = Field(default_factory=Eviction)
    """Which cached prefixes make room when the KV cache is full."""

    page_size: int | None = Field(default=None, ge=1, le=1024)
    """Tokens in a page of the KV cache; only whole pages are shared between requests. Default:
    SGLang's choice for the hardware, mostly 1."""


class Overlap(Model):
    mode: Annotated[OverlapMode | None, Field(strict=False)] = None
    """`disabled` prepares a batch only when the one before is done. Default `enabled`."""


class Scheduling(Model):
    policy: Annotated[SchedulingPolicy | None, Field(strict=False)] = None
    """Which waiting request runs next: `fcfs` the first to come; `lpm` the longest cached prefix;
    `dfs-weight` the busiest branch of the prefix tree; `hrrn` long waits and short prompts;
    `shortest-prefill-first` the fewest uncached tokens; `lof` the longest answer; `routing-key`
    the key with most running requests; `random` any. Default `fcfs`."""

    overlap: Overlap = Field(default_factory=Overlap)
    """Whether the scheduler prepares the next batch while the accelerator works on this one."""


class Ngram(Model):
    num_draft_tokens: int | None = Field(default=None, ge=2, le=1024)
    """Tokens verified in each step: the newest one and the drafts after it. Default 12."""

    max_trie_depth: int | None = Field(default=None, ge=2, le=1024)
    """Tokens of context that a match may span. Default 18."""

    min_bfs_breadth: int | None = Field(default=None, ge=1, le=1024)
    """Fewest continuations followed at each match. At most `maxBfsBreadth`. Default 1."""

    max_bfs_breadth: int | None = Field(default=None, ge=1, le=1024)
    """Most continuations followed at each match. 1 drafts a chain, more draft a tree. Default
    10."""

    match_type: Annotated[MatchType | None, Field(strict=False)] = None
    """Which continuations are drafted: `BFS` the latest seen, `PROB` the most frequent. Default
    `BFS`."""

    # More than the deepest trie: SGLang's trie breaks when one insertion does not fit.
    capacity: int | None = Field(default=None, ge=2048, le=1_000_000_000)
    """Nodes of the trie that remembers past answers, about 180 bytes of memory each on
    every rank. Default 10000000 (1.8 GB)."""

    rules = (
        Rule(
            field="minBfsBreadth",
            message="must be at most maxBfsBreadth (default 10); lower it or raise maxBfsBreadth",
            cel="(has(self.minBfsBreadth) ? self.minBfsBreadth : 1) <= "
            "(has(self.maxBfsBreadth) ? self.maxBfsBreadth : 10)",
            holds=lambda ngram: (ngram.min_bfs_breadth or 1) <= (ngram.max_bfs_breadth or 10),
        ),
    )


class Speculative(Model):
    ngram: Ngram | None = None
    """Draft tokens from what this engine answered before; needs no draft model. `{}` switches it
    on with SGLang's defaults. Default: off."""


class ClusterSpec(Model):
    """What runs: a model, how many engines serve it, and how."""

    # The only default of the CRD: /scale and `kubectl scale` need a number to be there.
    replicas: int = Field(
        default=1, ge=0, le=MAX_INT32, json_schema_extra={"default": 1, "format": "int32"}
    )
    """Engines that serve the model. 0 stops all. Default 1. A change restarts nothing."""

    paused: bool = False
    """True makes the operator change nothing but the status, until it is false again. Default
    false."""

    model: ModelFiles
    """The model that is served."""

    engine: Engine = Field(default_factory=Engine)
    """The SGLang engine: its image, accelerators and arguments."""

    cache: Cache = Field(default_factory=Cache)
    """The KV cache of each engine, which lets requests with a common prefix share work."""

    scheduling: Scheduling = Field(default_factory=Scheduling)
    """How each engine orders and overlaps its requests."""

    speculative: Speculative = Field(default_factory=Speculative)
    """Speculative decoding: several tokens drafted cheaply and verified in one step."""

    pod_template: Annotated[dict[str, Any], ShapedBy(PodTemplate)] = Field(default_factory=dict)
