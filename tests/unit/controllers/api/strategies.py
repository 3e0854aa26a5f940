"""Specs for hypothesis: every field, in every combination that the models accept."""

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from sglang_controllers.api.cache import (
    EvictionPolicy,
    MemoryLayout,
    PrefetchPolicy,
    PrefixCaching,
    WritePolicy,
)
from sglang_controllers.api.files import Dtype
from sglang_controllers.api.hardware import GraphBackend
from sglang_controllers.api.operation import ServiceType
from sglang_controllers.api.scheduling import (
    OverlapMode,
    Preemption,
    PriorityOrder,
    SchedulingPolicy,
)
from sglang_controllers.api.speculative import EagleAlgorithm, MatchType

SOURCES = st.sampled_from(
    [
        "oci://ghcr.io/team/smollm2:v1",
        "pvc://models",
        "pvc://models/a/b",
        "image:///models/smollm2",
        "hf://team/smollm2",
        "hf://smollm2@refs/pr/1",
    ]
)
WORDS = st.text("abcdefghij-_/. 0123456789", min_size=1, max_size=12)
FLAGS = st.from_regex(r"x[a-z]{1,6}(-[a-z]{1,6}){0,2}", fullmatch=True)
"""Begin with x: none of SGLang's, so none that a field owns."""

SCALARS = st.one_of(
    st.just(value=True), st.integers(), st.floats(allow_nan=False, allow_infinity=False), WORDS
)
LISTS = st.lists(
    st.one_of(st.integers(0), st.from_regex(r"[a-z0-9=/]{1,8}", fullmatch=True)), min_size=1
)
JSON_OBJECTS = st.dictionaries(WORDS, st.one_of(st.none(), st.booleans(), SCALARS), max_size=3)


def objects(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with any of `fields`."""
    return st.fixed_dictionaries({}, optional=fields)


def one_of(kind: Iterable[str]) -> st.SearchStrategy[str]:
    return st.sampled_from([str(member) for member in kind])


MODELS = st.fixed_dictionaries(
    {"source": SOURCES},
    optional={
        "servedName": st.just("a/b"),
        "dtype": one_of(Dtype),
        "quantization": st.sampled_from(["w8a8_int8", "compressed-tensors"]),
        "kvCacheDtype": st.sampled_from(["auto", "bf16", "bfloat16"]),
        "trustRemoteCode": st.booleans(),
        "contextLength": st.integers(16, 512),
        "tokenizerPath": st.just("/model/tokenizer"),
        "chatTemplate": st.sampled_from(["qwen2-vl", "/model/chat.jinja"]),
        "reasoningParser": st.sampled_from(["qwen3", "deepseek-r1"]),
        "toolCallParser": st.sampled_from(["qwen3_coder", "glm"]),
        "loraAdapters": st.lists(
            st.fixed_dictionaries(
                {"name": st.from_regex(r"[a-z]{1,5}", fullmatch=True), "source": SOURCES}
            ),
            max_size=2,
            unique_by=lambda adapter: str(adapter["name"]),
        ),
    },
)

PARALLELISMS = st.one_of(
    objects(
        tensor=st.sampled_from([1, 2, 4, 8]),
        pipeline=st.sampled_from([1, 2]),
        data=st.sampled_from([1, 2]),
    ),
    st.fixed_dictionaries(
        {"tensor": st.sampled_from([4, 8]), "expert": st.sampled_from([1, 2, 4])},
        optional={"data": st.sampled_from([1, 2, 3, 4]), "dpAttention": st.booleans()},
    ),
)

GRAPH = objects(
    backend=one_of(GraphBackend),
    maxBatchSize=st.sampled_from([8, 64]),
    batchSizes=st.lists(st.integers(1, 64), max_size=3, unique=True).map(sorted),
)

ENGINE_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "parallelism": PARALLELISMS,
    "memory": objects(fractionStatic=st.sampled_from([0.5, 0.85])),
    "cudaGraph": objects(decode=GRAPH, prefill=GRAPH),
    "attentionBackend": st.sampled_from(["torch_native", "intel_amx", "triton", "flashinfer"]),
    "grammarBackend": st.sampled_from(["xgrammar", "outlines", "llguidance", "none"]),
    "startupTimeout": st.sampled_from(["90s", "30m", "1h30m"]),
}

EVICTIONS = st.one_of(
    st.fixed_dictionaries({"policy": one_of(sorted(set(EvictionPolicy) - {EvictionPolicy.TLRU}))}),
    st.fixed_dictionaries(
        {"policy": st.just("slru")}, optional={"slru": objects(protectedThreshold=st.just(4))}
    ),
    st.fixed_dictionaries(
        {
            "policy": st.just("tlru"),
            "tlru": st.fixed_dictionaries(
                {"threshold": st.integers(65, 9999)}, optional={"nextPromptEstimate": st.just(64)}
            ),
        }
    ),
)

HICACHES = objects(
    sizeGB=st.integers(1, 100),
    ratio=st.sampled_from([0.5, 2, 2.5]),
    writePolicy=one_of(WritePolicy),
    ioBackend=one_of(["direct", "kernel"]),
    memoryLayout=one_of(MemoryLayout),
    storage=st.fixed_dictionaries(
        {"backend": st.sampled_from(["file", "mooncake", "nixl"])},
        optional={"prefetchPolicy": one_of(PrefetchPolicy)},
    ),
)

PROMPTS = st.one_of(
    st.fixed_dictionaries(
        {"configMap": st.fixed_dictionaries({"name": st.sampled_from(["a", "b"])})}
    ),
    st.fixed_dictionaries(
        {"persistentVolumeClaim": st.fixed_dictionaries({"claimName": st.sampled_from(["c", "d"])})}
    ),
)

WARMINGS = objects(
    promptsFrom=st.lists(PROMPTS, max_size=4),
    gate=objects(timeout=st.sampled_from(["90s", "10m"])),
    fromPeers=st.fixed_dictionaries({"maxTokens": st.integers(1, 10**6)}),
)

CACHES = st.one_of(
    objects(
        eviction=EVICTIONS,
        pageSize=st.sampled_from([1, 16, 64]),
        hiCache=HICACHES,
        warming=WARMINGS,
    ),
    objects(eviction=EVICTIONS, pageSize=st.just(48), prefixCaching=one_of(PrefixCaching)),
)

LIMITS: dict[str, st.SearchStrategy[Any]] = {
    "overlap": objects(mode=one_of(OverlapMode)),
    "conservativeness": st.sampled_from([0, 0.3, 1, 2.5]),
    "maxRunningRequests": st.integers(8, 256),
    "maxQueuedRequests": st.integers(1, 256),
    "chunkedPrefillSize": st.sampled_from([-1, 1000, 2048, 9600]),
}

PRIORITIES = objects(
    default=st.integers(-5, 5),
    order=one_of(PriorityOrder),
    preemption=one_of(Preemption),
    preemptionThreshold=st.integers(0, 20),
)

SCHEDULINGS = st.one_of(
    objects(policy=one_of(SchedulingPolicy), **LIMITS),
    objects(policy=st.sampled_from(["fcfs", "lof"]), priority=PRIORITIES, **LIMITS),
)

NGRAMS = objects(
    numDraftTokens=st.integers(2, 64),
    maxTrieDepth=st.integers(2, 64),
    minBfsBreadth=st.just(1),
    maxBfsBreadth=st.integers(1, 16),
    matchType=one_of(MatchType),
    capacity=st.integers(2048, 10**8),
)

SHAPES = st.one_of(
    st.fixed_dictionaries({"numSteps": st.integers(1, 5), "topk": st.just(1)}),
    st.fixed_dictionaries(
        {"numSteps": st.just(3), "topk": st.just(1), "numDraftTokens": st.just(4)}
    ),
    st.fixed_dictionaries(
        {
            "numSteps": st.integers(2, 5),
            "topk": st.integers(2, 4),
            "numDraftTokens": st.integers(4, 8),
        }
    ),
)
"""Always given: without a shape, SGLang chooses one by the model."""

DRAFTS = st.fixed_dictionaries({"source": SOURCES})


def drafting(draft: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(draft, SHAPES).map(lambda parts: parts[0] | parts[1])


SPECULATIVES = st.one_of(
    objects(ngram=NGRAMS),
    objects(
        eagle=drafting(
            st.fixed_dictionaries(
                {"algorithm": one_of(EagleAlgorithm)}, optional={"draftModel": DRAFTS}
            )
        )
    ),
    objects(nextn=drafting(objects(draftModel=DRAFTS))),
    objects(standalone=drafting(st.fixed_dictionaries({"draftModel": DRAFTS}))),
)


HUBS = objects(
    tokenSecretRef=st.just({"name": "hub", "key": "token"}),
    hubEndpoint=st.just("https://hub.example.com"),
    cache=st.sampled_from(
        [
            {},
            {"pvc": {"claimName": "hub", "path": "a/b"}},
            {"hostPath": {"path": "/srv/hub"}},
            {"emptyDir": {"sizeLimit": "10Gi"}},
        ]
    ),
)

AMOUNTS = st.one_of(st.integers(1, 5), st.sampled_from(["10%", "50%", "100%"]))

OPERATIONS: dict[str, st.SearchStrategy[Any]] = {
    "service": objects(
        type=one_of(ServiceType), annotations=st.just({"example.com/scheme": "internal"})
    ),
    "rollout": objects(
        maxSurge=AMOUNTS, maxUnavailable=AMOUNTS, progressDeadline=st.sampled_from(["90s", "2h"])
    ),
    "disruption": objects(maxUnavailable=AMOUNTS),
}


def specs(
    extra_args: st.SearchStrategy[dict[str, Any]] | None = None,
) -> st.SearchStrategy[dict[str, Any]]:
    """Raw specs that the models take."""
    extra = st.dictionaries(FLAGS, st.one_of(SCALARS, LISTS, JSON_OBJECTS), max_size=4)
    return st.fixed_dictionaries(
        {"model": st.tuples(MODELS, HUBS).map(lambda parts: parts[0] | parts[1])},
        optional={
            "replicas": st.integers(0, 5),
            "paused": st.booleans(),
            "engine": objects(
                extraArgs=extra if extra_args is None else extra_args, **ENGINE_FIELDS
            ),
            "cache": CACHES,
            "scheduling": SCHEDULINGS,
            "speculative": SPECULATIVES,
            **OPERATIONS,
        },
    )
