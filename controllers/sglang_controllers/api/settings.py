"""Which field is which argument of SGLang 0.5.23: the one table of typed settings.

It drives the arguments of engines, the check of `extraArgs` against typed fields, the settings
reference and the conversion of launch commands.
"""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic.alias_generators import to_snake

from sglang_controllers.api.spec import ClusterSpec


class Kind(StrEnum):
    """How a field's value becomes an argument."""

    VALUE = "value"
    """`--flag=<the field's value>`"""

    LIST = "list"
    """`--flag` and each item of the field as a token of its own; nothing for an empty list"""

    JSON = "json"
    """`--flag=<the object as JSON>`, its keys in SGLang's notation; nothing for an empty object"""

    SWITCH = "switch"
    """`--flag` when the field's value is `value`, else nothing"""

    PRESENCE = "presence"
    """`--flag=<value>` when the field is there, even if empty; `--flag` without a `value`"""

    FOLDER = "folder"
    """`--flag=<where the files of the field's source are in the engine's container>`"""

    FOLDERS = "folders"
    """`--flag` and `<name>=<folder>` for each item of the field"""


@dataclass(frozen=True, slots=True)
class Setting:
    """`field` is its path below `spec`, `aliases` are other flags of the same argument.

    `within` names an object of the spec. The flag is the field's only while that object is there,
    because other features use the flag too; empty: it is always the field's. `claims` are values
    of the flag, in capitals, that are the field's even without that object.
    """

    field: str
    flag: str
    kind: Kind = Kind.VALUE
    value: str | bool = ""
    aliases: tuple[str, ...] = ()
    within: str = ""
    claims: tuple[str, ...] = ()


ENGINE_VERSION = "0.5.23"
"""The SGLang release that the table was checked with."""

WARMING = "cache.warming"
NGRAM = "speculative.ngram"
EAGLE = "speculative.eagle"
NEXTN = "speculative.nextn"
STANDALONE = "speculative.standalone"

KV_EVENTS = json.dumps(
    {
        "publisher": "zmq",
        "endpoint": "tcp://127.0.0.1:5557",
        # A concrete address is connected to where this is not said.
        "bind": True,
        # Rank r is at port + r: far enough away for as many ranks as a pod can have.
        "replay_endpoint": "tcp://127.0.0.1:5657",
        "topic": "kv-events",
        # Prefixes of different LoRA adapters and cache salts have hashes of their own.
        "format": "dynamo",
    },
    separators=(",", ":"),
)
"""What the agent learns the engine's prefixes from. SGLang: disaggregation/kv_events.py."""

DRAFTING = (EAGLE, NEXTN, STANDALONE)
"""Members of the union that draft with a model, all with the same flags."""


def _drafting(within: str) -> tuple[Setting, ...]:
    return (
        Setting(
            f"{within}.draftModel.source",
            "speculative-draft-model-path",
            Kind.FOLDER,
            aliases=("speculative-draft-model",),
            within=within,
        ),
        Setting(f"{within}.numSteps", "speculative-num-steps", within=within),
        Setting(f"{within}.topk", "speculative-eagle-topk", within=within),
        Setting(f"{within}.numDraftTokens", "speculative-num-draft-tokens", within=within),
    )


# The order is the order of an engine's arguments: a moved line restarts engines.
SETTINGS: tuple[Setting, ...] = (
    Setting("model.dtype", "dtype"),
    Setting("model.quantization", "quantization"),
    Setting("model.kvCacheDtype", "kv-cache-dtype"),
    Setting("model.trustRemoteCode", "trust-remote-code", Kind.SWITCH, value=True),
    Setting("model.contextLength", "context-length"),
    Setting("model.tokenizerPath", "tokenizer-path"),
    Setting("model.chatTemplate", "chat-template"),
    Setting("model.reasoningParser", "reasoning-parser"),
    Setting("model.toolCallParser", "tool-call-parser"),
    Setting("model.loraAdapters", "lora-paths", Kind.FOLDERS),
    Setting("engine.parallelism.tensor", "tp-size", aliases=("tensor-parallel-size",)),
    Setting("engine.parallelism.pipeline", "pp-size", aliases=("pipeline-parallel-size",)),
    Setting("engine.parallelism.data", "dp-size", aliases=("data-parallel-size",)),
    Setting("engine.parallelism.dpAttention", "enable-dp-attention", Kind.SWITCH, value=True),
    Setting("engine.parallelism.expert", "ep-size", aliases=("expert-parallel-size", "ep")),
    Setting("engine.memory.fractionStatic", "mem-fraction-static"),
    Setting("engine.cudaGraph.decode.backend", "cuda-graph-backend-decode"),
    Setting("engine.cudaGraph.decode.maxBatchSize", "cuda-graph-max-bs-decode"),
    Setting("engine.cudaGraph.decode.batchSizes", "cuda-graph-bs-decode", Kind.LIST),
    Setting("engine.cudaGraph.prefill.backend", "cuda-graph-backend-prefill"),
    Setting("engine.cudaGraph.prefill.maxBatchSize", "cuda-graph-max-bs-prefill"),
    Setting("engine.cudaGraph.prefill.batchSizes", "cuda-graph-bs-prefill", Kind.LIST),
    Setting("engine.attentionBackend", "attention-backend"),
    Setting("engine.grammarBackend", "grammar-backend"),
    Setting("cache.eviction.policy", "radix-eviction-policy"),
    Setting(
        "cache.eviction.tlru",
        "radix-eviction-policy-config",
        Kind.JSON,
        within="cache.eviction.tlru",
    ),
    Setting("cache.eviction.slru", "radix-eviction-policy-config", Kind.JSON),
    Setting("cache.pageSize", "page-size"),
    Setting("cache.prefixCaching", "disable-radix-cache", Kind.SWITCH, "disabled"),
    Setting(
        "cache.hiCache",
        "enable-hierarchical-cache",
        Kind.PRESENCE,
        aliases=("enable-hicache",),
    ),
    Setting("cache.hiCache.sizeGB", "hicache-size"),
    Setting("cache.hiCache.ratio", "hicache-ratio"),
    Setting("cache.hiCache.writePolicy", "hicache-write-policy"),
    Setting("cache.hiCache.ioBackend", "hicache-io-backend"),
    Setting("cache.hiCache.memoryLayout", "hicache-mem-layout"),
    Setting("cache.hiCache.storage.backend", "hicache-storage-backend"),
    Setting("cache.hiCache.storage.prefetchPolicy", "hicache-storage-prefetch-policy"),
    Setting(WARMING, "kv-events-config", Kind.PRESENCE, KV_EVENTS, within=WARMING),
    Setting("scheduling.policy", "schedule-policy"),
    Setting("scheduling.overlap.mode", "disable-overlap-schedule", Kind.SWITCH, "disabled"),
    Setting("scheduling.conservativeness", "schedule-conservativeness"),
    Setting("scheduling.maxRunningRequests", "max-running-requests"),
    Setting("scheduling.maxQueuedRequests", "max-queued-requests"),
    Setting("scheduling.chunkedPrefillSize", "chunked-prefill-size"),
    Setting("scheduling.priority", "enable-priority-scheduling", Kind.PRESENCE),
    Setting("scheduling.priority.default", "default-priority-value"),
    Setting(
        "scheduling.priority.order",
        "schedule-low-priority-values-first",
        Kind.SWITCH,
        "low-first",
    ),
    Setting(
        "scheduling.priority.preemption", "disable-priority-preemption", Kind.SWITCH, "disabled"
    ),
    Setting("scheduling.priority.preemptionThreshold", "priority-scheduling-preemption-threshold"),
    Setting(
        NGRAM,
        "speculative-algorithm",
        Kind.PRESENCE,
        "NGRAM",
        within=NGRAM,
        claims=("NGRAM",),
    ),
    Setting("speculative.ngram.numDraftTokens", "speculative-num-draft-tokens", within=NGRAM),
    Setting("speculative.ngram.maxTrieDepth", "speculative-ngram-max-trie-depth"),
    Setting("speculative.ngram.minBfsBreadth", "speculative-ngram-min-bfs-breadth"),
    Setting("speculative.ngram.maxBfsBreadth", "speculative-ngram-max-bfs-breadth"),
    Setting("speculative.ngram.matchType", "speculative-ngram-match-type"),
    Setting("speculative.ngram.capacity", "speculative-ngram-capacity"),
    Setting(
        f"{EAGLE}.algorithm", "speculative-algorithm", within=EAGLE, claims=("EAGLE", "EAGLE3")
    ),
    *_drafting(EAGLE),
    Setting(
        NEXTN,
        "speculative-algorithm",
        Kind.PRESENCE,
        "NEXTN",
        within=NEXTN,
        claims=("NEXTN",),
    ),
    *_drafting(NEXTN),
    Setting(
        STANDALONE,
        "speculative-algorithm",
        Kind.PRESENCE,
        "STANDALONE",
        within=STANDALONE,
        claims=("STANDALONE",),
    ),
    *_drafting(STANDALONE),
)


def field_value(spec: ClusterSpec, field: str) -> Any:
    """The value at a path below `spec` as users write it, None when unset."""
    value: Any = spec
    for part in field.split("."):
        value = None if value is None else getattr(value, to_snake(part))
    return value


@dataclass(frozen=True, slots=True)
class Reserved:
    """Flags that are the operator's. `fix` tells what to do instead of passing them."""

    flags: tuple[str, ...]
    fix: str


_ONE_POD = "one pod is one engine; remove it"
_PLAIN_HTTP = "probes and the Service speak plain HTTP; end TLS in front of the Service"
_SHOWN = (
    "a secret must not be an argument, anyone who sees the pod reads it; remove it, and name the key"
    " that clients need in spec.router.apiKeySecretRef"
)

RESERVED: tuple[Reserved, ...] = (
    Reserved(("model-path", "model"), "set spec.model.source"),
    Reserved(("served-model-name",), "set spec.model.servedName"),
    Reserved(("host", "port"), "the Service finds engines by it; remove it"),
    Reserved(("enable-metrics",), "it is always on; remove it"),
    Reserved(("nnodes", "node-rank", "dist-init-addr", "nccl-init-addr"), _ONE_POD),
    Reserved(("elastic-ep-join-mode", "elastic-ep-join-rank-offset"), _ONE_POD),
    Reserved(("use-ray",), _ONE_POD),
    Reserved(
        ("disaggregation-mode", "encoder-only", "enable-pd-role-switch"),
        "every engine of a cluster does the whole work; remove it",
    ),
    Reserved(
        ("smg-grpc-mode", "grpc-mode"),
        "it replaces the HTTP server that probes and the Service need; remove it",
    ),
    Reserved(("ssl-keyfile", "ssl-certfile", "ssl-ca-certs", "enable-ssl-refresh"), _PLAIN_HTTP),
    Reserved(
        ("api-key", "admin-api-key", "ssl-keyfile-password"),
        _SHOWN,
    ),
    Reserved(("config",), "a file of arguments hides what runs; write them in extraArgs"),
    Reserved(("help", "h"), "it ends the engine; remove it"),
)
