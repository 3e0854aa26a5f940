"""Specs that must be taken, by the models and by the API server."""

from typing import Any

from tests.unit.controllers.api.specs import MODEL, a_spec, drafting, engine, ngram

GOOD: dict[str, dict[str, Any]] = {
    "the smallest": a_spec(),
    "a claim's root": a_spec(model={"source": "pvc://models"}),
    "a claim's folder": a_spec(model={"source": "pvc://models.v2/chat/smollm2"}),
    "a folder of the image": a_spec(model={"source": "image:///models/smollm2"}),
    "an image by digest": a_spec(
        model={"source": f"oci://localhost:5000/team/smollm2@sha256:{'0' * 64}"}
    ),
    "an image without a registry": a_spec(model={"source": "oci://smollm2:dev"}),
    "a served name with a slash": a_spec(model={**MODEL, "servedName": "team/SmolLM2-135M"}),
    "no engines": a_spec(replicas=0, paused=True),
    "the CPU": engine(accelerator={"count": 0}, parallelism={"tensor": 2}),
    "another accelerator": engine(accelerator={"resourceName": "amd.com/gpu", "count": 8}),
    "everything of an engine": engine(
        version="0.5.23",
        image="registry.example.com/sglang:v0.5.23",
        accelerator={"resourceName": "nvidia.com/gpu", "count": 4},
        parallelism={"tensor": 4},
        resources={"requests": {"cpu": 4, "memory": "64Gi"}, "limits": {"memory": "1.5Ti"}},
        sharedMemory="16Gi",
        env=[
            {"name": "A", "value": ""},
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}},
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
        memory={"fractionStatic": 0.8},
        cudaGraph={
            "decode": {"backend": "full", "maxBatchSize": 64, "batchSizes": [1, 8, 64]},
            "prefill": {"backend": "disabled", "maxBatchSize": 4096, "batchSizes": [4096]},
        },
        attentionBackend="flashinfer",
        grammarBackend="xgrammar",
        extraArgs={
            "max-total-tokens": 20000,
            "enable-cache-report": True,
            "sampling-backend": "pytorch",
            "gc-threshold": [700, 10],
            "json-model-override-args": {"rope_scaling": {"factor": 2.0}},
        },
        startupTimeout="1h30m",
        drainTimeout="10m",
    ),
    "cache and scheduling": a_spec(
        cache={"eviction": {"policy": "slru"}, "pageSize": 16},
        scheduling={"policy": "lpm", "overlap": {"mode": "disabled"}},
    ),
    "empty objects": a_spec(
        engine={}, cache={"eviction": {}}, scheduling={"overlap": {}}, speculative={}
    ),
    "everything of a model": a_spec(
        model={
            **MODEL,
            "servedName": "team/chat",
            "dtype": "bfloat16",
            "quantization": "fp8",
            "kvCacheDtype": "fp8_e4m3",
            "trustRemoteCode": True,
            "contextLength": 32768,
            "tokenizerPath": "/model/tokenizer",
            "chatTemplate": "/model/chat.jinja",
            "reasoningParser": "qwen3",
            "toolCallParser": "qwen3_coder",
            "loraAdapters": [
                {"name": "sql", "source": "pvc://adapters/sql"},
                {"name": "legal.v2", "source": "oci://registry.example.com/legal:1"},
                {"name": "own", "source": "image:///model/adapters/own"},
            ],
        }
    ),
    "a model of a hub": a_spec(
        model={
            "source": "hf://Qwen/Qwen3-8B@9c925d64d72725edaf899c6cb9c377fd0709d9c5",
            "tokenSecretRef": {"name": "hub", "key": "token", "optional": True},
            "hubEndpoint": "http://hub.internal:8080",
            "cache": {"pvc": {"claimName": "hub", "path": "models/hub"}},
            "loraAdapters": [{"name": "sql", "source": "hf://team/sql@refs/pr/1"}],
        }
    ),
    "a model of a hub, kept on the node": a_spec(
        model={"source": "hf://gpt2", "cache": {"hostPath": {"path": "/var/lib/models"}}}
    ),
    "a model of a hub, kept in the pod": a_spec(
        model={"source": "hf://a/b@main", "cache": {"emptyDir": {"sizeLimit": "200Gi"}}}
    ),
    "everything about operation": a_spec(
        service={"type": "LoadBalancer", "annotations": {"example.com/scheme": "internal"}},
        rollout={"maxSurge": "25%", "maxUnavailable": 0, "progressDeadline": "2h"},
        disruption={"maxUnavailable": "10%"},
    ),
    "no surge": a_spec(rollout={"maxSurge": 0}),
    "an engine of its own version": engine(version="0.6.0", allowUnknownVersion=True),
    "eight ranks of four groups": engine(
        parallelism={"tensor": 8, "data": 4, "dpAttention": True, "expert": 8}
    ),
    "copies and stages": engine(
        accelerator={"count": 8}, parallelism={"tensor": 2, "pipeline": 2, "data": 2}
    ),
    "everything of the cache": a_spec(
        cache={
            "eviction": {"policy": "slru", "slru": {"protectedThreshold": 4}},
            "pageSize": 64,
            "prefixCaching": "enabled",
            "hiCache": {
                "sizeGB": 100,
                "ratio": 2.5,
                "writePolicy": "write_through_selective",
                "ioBackend": "kernel",
                "memoryLayout": "page_first",
                "storage": {"backend": "file", "prefetchPolicy": "timeout"},
            },
        }
    ),
    "hierarchical cache with defaults": a_spec(cache={"hiCache": {}}),
    "prompts to come": a_spec(cache={"warming": {}}),
    "everything of warming": a_spec(
        cache={
            "warming": {
                "promptsFrom": [
                    {"configMap": {"name": "prompts-5f2k9", "key": "system.jsonl"}},
                    {"configMap": {"name": "more.prompts"}},
                    {"persistentVolumeClaim": {"claimName": "prompts", "path": "chat/all.jsonl"}},
                ],
                "gate": {"timeout": "1m30s"},
                "fromPeers": {"maxTokens": 100_000},
            }
        }
    ),
    "a gate with its default": a_spec(
        cache={"warming": {"promptsFrom": [{"configMap": {"name": "prompts"}}], "gate": {}}}
    ),
    "a tail-optimized cache": a_spec(
        cache={
            "eviction": {"policy": "tlru", "tlru": {"threshold": 4096, "nextPromptEstimate": 512}}
        }
    ),
    "everything of scheduling": a_spec(
        scheduling={
            "policy": "lof",
            "conservativeness": 0.8,
            "maxRunningRequests": 128,
            "maxQueuedRequests": 512,
            "chunkedPrefillSize": 8192,
            "priority": {
                "default": 0,
                "order": "low-first",
                "preemption": "disabled",
                "preemptionThreshold": 5,
            },
        }
    ),
    "priorities with defaults": a_spec(scheduling={"priority": {}}),
    "a draft head": drafting(
        "eagle",
        algorithm="EAGLE3",
        draftModel={"source": "pvc://models/draft"},
        numSteps=3,
        topk=4,
        numDraftTokens=16,
    ),
    "the model's own draft head": drafting("eagle", algorithm="EAGLE", numSteps=3, topk=1),
    "the model's own next tokens": drafting("nextn"),
    "a small model that drafts": drafting(
        "standalone", draftModel={"source": "oci://registry.example.com/tiny:1"}
    ),
    "n-grams with defaults": ngram(),
    "n-grams with everything": ngram(
        numDraftTokens=8,
        maxTrieDepth=12,
        minBfsBreadth=2,
        maxBfsBreadth=2,
        matchType="PROB",
        capacity=100_000,
    ),
    "a pod template": a_spec(
        podTemplate={
            "metadata": {"annotations": {"example.com/team": "chat"}},
            "spec": {
                "nodeSelector": {"pool": "gpu"},
                "containers": [
                    {"name": "engine", "securityContext": {"readOnlyRootFilesystem": True}},
                    {"name": "logs", "image": "busybox", "args": ["tail", "-f", "/dev/null"]},
                ],
            },
        }
    ),
}
