"""A second value for every field of the spec, and a spec in which both values are valid."""

from typing import Any

from sglang_controllers.manifest import Manifest

BASE: Manifest = {
    "replicas": 0,
    "model": {"source": "image:///models/m", "servedName": "m"},
    "engine": {
        "accelerator": {"resourceName": "nvidia.com/gpu", "count": 4},
        "resources": {"requests": {"memory": "8Gi"}, "limits": {"memory": "16Gi"}},
    },
}

HUB = {"source": "hf://team/model@main"}
DRAFT = {"source": "image:///models/draft"}
STEPS = {"numSteps": 3, "topk": 2, "numDraftTokens": 6}

SURROUNDINGS: dict[str, Manifest] = {
    "model.tokenSecretRef": {"model": HUB | {"tokenSecretRef": {"name": "hub", "key": "token"}}},
    "model.hubEndpoint": {"model": HUB},
    "model.cache.pvc": {"model": HUB | {"cache": {"pvc": {"claimName": "hub"}}}},
    "model.cache.hostPath": {"model": HUB | {"cache": {"hostPath": {"path": "/srv/hub"}}}},
    "model.cache.emptyDir": {"model": HUB},
    "router.apiKeySecretRef": {"router": {"apiKeySecretRef": {"name": "keys", "key": "key"}}},
    "engine.version": {"engine": {"allowUnknownVersion": True}},
    "cache.eviction.slru": {"cache": {"eviction": {"policy": "slru"}}},
    "cache.eviction.tlru": {
        "cache": {
            "eviction": {"policy": "tlru", "tlru": {"threshold": 100, "nextPromptEstimate": 10}}
        }
    },
    "cache.hiCache": {"cache": {"hiCache": {}}},
    "cache.hiCache.storage": {"cache": {"hiCache": {"storage": {"backend": "file"}}}},
    "cache.warming": {"cache": {"warming": {}}},
    # The Service of the agents stays when nobody asks peers any more.
    "cache.warming.fromPeers": {"cache": {"warming": {"fromPeers": {"maxTokens": 1000}}}},
    "engine.parallelism": {"engine": {"accelerator": {"count": 16}, "parallelism": {"tensor": 4}}},
    "engine.parallelism.dpAttention": {
        "engine": {"accelerator": {"count": 16}, "parallelism": {"tensor": 4, "data": 2}}
    },
    "scheduling.priority": {"scheduling": {"policy": "fcfs", "priority": {}}},
    "speculative.ngram": {
        "speculative": {"ngram": {"maxTrieDepth": 16, "minBfsBreadth": 1, "maxBfsBreadth": 8}}
    },
    "speculative.eagle": {
        "speculative": {"eagle": {**STEPS, "draftModel": DRAFT, "algorithm": "EAGLE"}}
    },
    "speculative.nextn": {"speculative": {"nextn": {**STEPS, "draftModel": DRAFT}}},
    "speculative.standalone": {"speculative": {"standalone": {**STEPS, "draftModel": DRAFT}}},
}
"""What fields below a path need around them, in place of the same parts of BASE."""

FIELDS: dict[str, Any] = {
    "replicas": 2,
    "paused": True,
    "model.source": "pvc://models/other",
    "model.tokenSecretRef.name": "other",
    "model.tokenSecretRef.key": "other",
    "model.tokenSecretRef.optional": True,
    "model.hubEndpoint": "https://hub.example.com",
    "model.cache.pvc.claimName": "other",
    "model.cache.pvc.path": "other",
    "model.cache.hostPath.path": "/srv/other",
    "model.cache.emptyDir.sizeLimit": "10Gi",
    "model.servedName": "other",
    "model.dtype": "bfloat16",
    "model.quantization": "fp8",
    "model.kvCacheDtype": "fp8_e5m2",
    "model.trustRemoteCode": True,
    "model.contextLength": 4096,
    "model.tokenizerPath": "/model/tokenizer",
    "model.chatTemplate": "chatml",
    "model.reasoningParser": "qwen3",
    "model.toolCallParser": "qwen25",
    "model.loraAdapters": [{"name": "a", "source": "image:///adapters/a"}],
    "engine.version": "0.5.22",
    "engine.allowUnknownVersion": True,
    "engine.image": "registry.example/sglang:other",
    "engine.accelerator.resourceName": "amd.com/gpu",
    "engine.accelerator.count": 8,
    "engine.parallelism.tensor": 2,
    "engine.parallelism.pipeline": 2,
    "engine.parallelism.data": 2,
    "engine.parallelism.dpAttention": True,
    "engine.parallelism.expert": 4,
    "engine.memory.fractionStatic": 0.7,
    "engine.cudaGraph.decode.backend": "disabled",
    "engine.cudaGraph.decode.maxBatchSize": 64,
    "engine.cudaGraph.decode.batchSizes": [1, 2, 4],
    "engine.cudaGraph.prefill.backend": "disabled",
    "engine.cudaGraph.prefill.maxBatchSize": 64,
    "engine.cudaGraph.prefill.batchSizes": [1, 2, 4],
    "engine.attentionBackend": "triton",
    "engine.grammarBackend": "xgrammar",
    "engine.resources.requests": {"memory": "4Gi", "cpu": "1"},
    "engine.resources.limits": {"memory": "32Gi"},
    "engine.sharedMemory": "1Gi",
    "engine.env": [{"name": "OTHER", "value": "1"}],
    "engine.extraArgs": {"log-level": "debug", "skip-server-warmup": True},
    "engine.startupTimeout": "45m",
    "engine.drainTimeout": "10m",
    "cache.eviction.policy": "lfu",
    "cache.eviction.slru.protectedThreshold": 3,
    "cache.eviction.tlru.threshold": 200,
    "cache.eviction.tlru.nextPromptEstimate": 20,
    "cache.pageSize": 16,
    "cache.prefixCaching": "disabled",
    "cache.hiCache.sizeGB": 4,
    "cache.hiCache.ratio": 3,
    "cache.hiCache.writePolicy": "write_back",
    "cache.hiCache.ioBackend": "direct",
    "cache.hiCache.memoryLayout": "page_first",
    "cache.hiCache.storage.backend": "nixl",
    "cache.hiCache.storage.prefetchPolicy": "wait_complete",
    "cache.warming.promptsFrom": [{"configMap": {"name": "other"}}],
    "cache.warming.gate.timeout": "10m",
    "cache.warming.fromPeers.maxTokens": 2000,
    "scheduling.policy": "lpm",
    "scheduling.overlap.mode": "disabled",
    "scheduling.conservativeness": 0.5,
    "scheduling.maxRunningRequests": 16,
    "scheduling.maxQueuedRequests": 64,
    "scheduling.chunkedPrefillSize": 1024,
    "scheduling.priority.default": 5,
    "scheduling.priority.order": "low-first",
    "scheduling.priority.preemption": "disabled",
    "scheduling.priority.preemptionThreshold": 20,
    "speculative.ngram.numDraftTokens": 6,
    "speculative.ngram.maxTrieDepth": 12,
    "speculative.ngram.minBfsBreadth": 2,
    "speculative.ngram.maxBfsBreadth": 6,
    "speculative.ngram.matchType": "PROB",
    "speculative.ngram.capacity": 100_000,
    **{
        f"speculative.{method}.{field}": value
        for method in ("eagle", "nextn", "standalone")
        for field, value in {
            "numSteps": 4,
            "topk": 1,
            "numDraftTokens": 5,
            "draftModel.source": "image:///models/other-draft",
        }.items()
    },
    "speculative.eagle.algorithm": "EAGLE3",
    "router.enabled": False,
    "router.replicas": 1,
    "router.policy": "round_robin",
    "router.apiKeySecretRef.name": "other",
    "router.apiKeySecretRef.key": "other",
    "router.resources.requests": {"cpu": "200m"},
    "router.resources.limits": {"memory": "512Mi"},
    "router.podTemplate": {"metadata": {"labels": {"team": "blue"}}},
    "service.type": "NodePort",
    "service.annotations": {"example.com/team": "other"},
    "rollout.maxSurge": "50%",
    "rollout.maxUnavailable": 2,
    "rollout.progressDeadline": "2h",
    "disruption.maxUnavailable": "50%",
    "podTemplate": {"metadata": {"labels": {"team": "other"}}},
}
"""A value of each field that differs from the one it has and keeps the whole valid."""

WITHOUT_EFFECT = {
    "paused",  # a cluster that is all right stays so
    "engine.allowUnknownVersion",  # it only takes what is refused without it
    "rollout.maxSurge",  # for the next rollout
    "rollout.maxUnavailable",
}

WITH_PODS = {
    "paused",
    "model.source",
    "engine.image",
    "engine.env",
    "engine.startupTimeout",
    "cache.eviction.policy",
    "cache.warming.promptsFrom",
    "scheduling.overlap.mode",
    "speculative.ngram.capacity",
    "router.policy",
    "service.type",
    "rollout.progressDeadline",
    "disruption.maxUnavailable",
    "podTemplate",
}
"""Fields that are changed under a running pod, at least one of each part of the spec."""


def base_of(path: str) -> Manifest:
    """The spec in which a field is changed."""
    around = [p for p in SURROUNDINGS if path == p or path.startswith(f"{p}.")]
    parts = SURROUNDINGS[max(around, key=len)] if around else {}
    return {**BASE, **parts, **({"replicas": 1} if path in WITH_PODS else {})}


def value_at(spec: Manifest, path: str) -> Any:
    """The value of a field, None: it is not set."""
    value: Any = spec
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def nested(path: str, value: Any) -> Manifest:
    """{"a": {"b": value}} for a.b."""
    first, _, rest = path.partition(".")
    return {first: nested(rest, value) if rest else value}


def way_back(path: str) -> Manifest:
    """The merge patch that undoes a change: null removes what was not there, parents included."""
    base, names = base_of(path), path.split(".")
    for depth in range(1, len(names)):
        above = ".".join(names[:depth])
        if value_at(base, above) is None:
            return nested(above, None)
    before, now = value_at(base, path), FIELDS[path]
    if isinstance(before, dict) and isinstance(now, dict):
        return nested(path, {**dict.fromkeys(now), **before})
    return nested(path, before)
