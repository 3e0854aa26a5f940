"""Specs that must be taken and specs that must be refused, by the models and by the API server."""

from dataclasses import dataclass
from typing import Any

from tests.unit.controllers.api.good import GOOD
from tests.unit.controllers.api.specs import (
    MODEL,
    a_spec,
    drafting,
    engine,
    ngram,
    template,
    warming,
)

__all__ = [
    "BREAKS_A_RULE",
    "BREAKS_A_TYPE",
    "GOOD",
    "MODEL",
    "Bad",
    "a_spec",
    "drafting",
    "engine",
    "ngram",
    "template",
    "warming",
]


@dataclass(frozen=True, slots=True)
class Bad:
    """`field` is the path that the answer must name, `says` words of the rule or the fix."""

    spec: dict[str, Any]
    field: str
    says: str


SOURCE = "spec.model.source"
TIMEOUT = "spec.engine.startupTimeout"
COUNT = "spec.engine.accelerator.count"

BREAKS_A_RULE: dict[str, Bad] = {
    "a hub's model": Bad(a_spec(model={"source": "Qwen/Qwen3-8B"}), SOURCE, 'write "hf://'),
    "an unknown scheme": Bad(a_spec(model={"source": "s3://bucket/model"}), SOURCE, "pvc://CLAIM"),
    "a hub's model with too many parts": Bad(
        a_spec(model={"source": "hf://a/b/c"}), SOURCE, "hf://ORG/NAME@REVISION"
    ),
    "a hub's model without a revision after @": Bad(
        a_spec(model={"source": "hf://a/b@"}), SOURCE, "hf://ORG/NAME@REVISION"
    ),
    "two places for downloads": Bad(
        a_spec(model={**MODEL, "cache": {"emptyDir": {}, "pvc": {"claimName": "hub"}}}),
        "spec.model.cache",
        "remove all but one",
    ),
    "a cache that climbs out": Bad(
        a_spec(model={**MODEL, "cache": {"pvc": {"claimName": "hub", "path": "a/../b"}}}),
        "spec.model.cache.pvc.path",
        "no '..'",
    ),
    "a rollout that cannot move": Bad(
        a_spec(rollout={"maxSurge": 0, "maxUnavailable": "0%"}), "spec.rollout", "write 1 for one"
    ),
    "a drain without a unit": Bad(
        engine(drainTimeout="30"), "spec.engine.drainTimeout", 'write "2m"'
    ),
    "a drain of days": Bad(engine(drainTimeout="25h"), "spec.engine.drainTimeout", "at most 24h"),
    "a deadline without a unit": Bad(
        a_spec(rollout={"progressDeadline": "30"}), "spec.rollout.progressDeadline", 'write "1h"'
    ),
    "a deadline of weeks": Bad(
        a_spec(rollout={"progressDeadline": "169h"}), "spec.rollout.progressDeadline", "at most"
    ),
    "an image without a name": Bad(a_spec(model={"source": "oci://"}), SOURCE, "oci://IMAGE"),
    "a source with a space": Bad(a_spec(model={"source": "pvc://a/b c"}), SOURCE, "without spaces"),
    "a claim in capitals": Bad(a_spec(model={"source": "pvc://Models"}), SOURCE, "pvc://CLAIM"),
    "a path that climbs out": Bad(a_spec(model={"source": "pvc://a/../b"}), SOURCE, "without '..'"),
    "an image path that climbs out": Bad(
        a_spec(model={"source": "image:///models/.."}), SOURCE, "without '..'"
    ),
    "a relative image path": Bad(
        a_spec(model={"source": "image://models"}), SOURCE, "image:///PATH"
    ),
    "memory with a wrong unit": Bad(
        engine(sharedMemory="8GB"), "spec.engine.sharedMemory", 'write "500m"'
    ),
    "memory below zero": Bad(engine(sharedMemory="-1Gi"), "spec.engine.sharedMemory", "a quantity"),
    "more than all": Bad(a_spec(rollout={"maxSurge": "101%"}), "spec.rollout.maxSurge", '"25%"'),
    "less than nothing": Bad(
        a_spec(disruption={"maxUnavailable": -1}), "spec.disruption.maxUnavailable", "write 1"
    ),
    "a timeout without a unit": Bad(engine(startupTimeout="30"), TIMEOUT, 'write "30m"'),
    "a timeout with a fraction": Bad(engine(startupTimeout="1.5h"), TIMEOUT, "needs units"),
    "a timeout of nothing": Bad(engine(startupTimeout="0s"), TIMEOUT, "more than 0s"),
    "a timeout of days": Bad(engine(startupTimeout="24h1s"), TIMEOUT, "at most 24h"),
    "fewer accelerators than ranks": Bad(
        engine(accelerator={"count": 2}, parallelism={"tensor": 4}), COUNT, "at least"
    ),
    "fewer accelerators than copies and stages": Bad(
        engine(accelerator={"count": 4}, parallelism={"tensor": 2, "data": 2, "pipeline": 2}),
        COUNT,
        "tensor x pipeline x data",
    ),
    "no memory": Bad(
        engine(memory={"fractionStatic": 0}), "spec.engine.memory.fractionStatic", "write 0.85"
    ),
    "a hierarchy of nothing": Bad(
        a_spec(cache={"hiCache": {"ratio": 0}}), "spec.cache.hiCache.ratio", "write 2"
    ),
    "an adapter from a hub": Bad(
        a_spec(model={**MODEL, "loraAdapters": [{"name": "a", "source": "team/a"}]}),
        "spec.model.loraAdapters[0].source",
        'write "hf://',
    ),
    "a draft model from a hub": Bad(
        drafting("standalone", draftModel={"source": "Qwen/Qwen3-0.6B"}),
        "spec.speculative.standalone.draftModel.source",
        'write "hf://',
    ),
    "two ways to draft": Bad(
        a_spec(speculative={"ngram": {}, "nextn": {}}), "spec.speculative", "remove all but one"
    ),
    "half a shape": Bad(
        drafting("nextn", numSteps=3), "spec.speculative.nextn.numSteps", "chosen together"
    ),
    "a tree without a size": Bad(
        drafting("eagle", algorithm="EAGLE", numSteps=3, topk=4),
        "spec.speculative.eagle.numSteps",
        "chosen together",
    ),
    "a shape without steps": Bad(
        drafting("eagle", algorithm="EAGLE", topk=4), "spec.speculative.eagle", "set all"
    ),
    "settings for another policy": Bad(
        a_spec(cache={"eviction": {"policy": "lru", "slru": {"protectedThreshold": 4}}}),
        "spec.cache.eviction.slru",
        "policy: slru",
    ),
    "a tail-optimized policy without settings": Bad(
        a_spec(cache={"eviction": {"policy": "tlru"}}), "spec.cache.eviction.tlru", "set both"
    ),
    "settings without a policy": Bad(
        a_spec(cache={"eviction": {"tlru": {"threshold": 4096}}}),
        "spec.cache.eviction.tlru",
        "set both",
    ),
    "a threshold below the estimate": Bad(
        a_spec(
            cache={
                "eviction": {
                    "policy": "tlru",
                    "tlru": {"threshold": 512, "nextPromptEstimate": 512},
                }
            }
        ),
        "spec.cache.eviction.tlru.threshold",
        "more than nextPromptEstimate",
    ),
    "a hierarchy without prefixes": Bad(
        a_spec(cache={"hiCache": {}, "prefixCaching": "disabled"}),
        "spec.cache.hiCache",
        "needs prefix caching",
    ),
    "warming without prefixes": Bad(
        a_spec(cache={"warming": {}, "prefixCaching": "disabled"}),
        "spec.cache.warming",
        "needs prefix caching",
    ),
    "prompts from nowhere": Bad(
        warming(promptsFrom=[{}]), "spec.cache.warming.promptsFrom[0]", "exactly one"
    ),
    "prompts from two places": Bad(
        warming(
            promptsFrom=[{"configMap": {"name": "a"}, "persistentVolumeClaim": {"claimName": "b"}}]
        ),
        "spec.cache.warming.promptsFrom[0]",
        "exactly one",
    ),
    "prompts of a name in capitals": Bad(
        warming(promptsFrom=[{"configMap": {"name": "Prompts"}}]),
        "spec.cache.warming.promptsFrom[0].configMap.name",
        'write for example "prompts"',
    ),
    "prompts under a key that is a path": Bad(
        warming(promptsFrom=[{"configMap": {"name": "a", "key": "b/c"}}]),
        "spec.cache.warming.promptsFrom[0].configMap.key",
        '"system.jsonl"',
    ),
    "prompts above the claim": Bad(
        warming(promptsFrom=[{"persistentVolumeClaim": {"claimName": "a", "path": "../b"}}]),
        "spec.cache.warming.promptsFrom[0].persistentVolumeClaim.path",
        "no '..'",
    ),
    "a gate without a unit": Bad(
        warming(gate={"timeout": "5"}), "spec.cache.warming.gate.timeout", 'write "5m"'
    ),
    "a gate that never opens": Bad(
        warming(gate={"timeout": "25h"}), "spec.cache.warming.gate.timeout", "at most 24h"
    ),
    "priorities with a policy that ignores them": Bad(
        a_spec(scheduling={"policy": "lpm", "priority": {}}),
        "spec.scheduling.priority",
        "fcfs and lof",
    ),
    "accelerators among resources": Bad(
        engine(resources={"limits": {"nvidia.com/gpu": 1}}),
        "spec.engine.resources",
        "set spec.engine.accelerator.count",
    ),
    "another accelerator among resources": Bad(
        engine(
            accelerator={"resourceName": "amd.com/gpu"},
            resources={"requests": {"amd.com/gpu": 1}},
        ),
        "spec.engine.resources",
        "remove them",
    ),
    "a variable with two values": Bad(
        engine(env=[{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]),
        "spec.engine.env[0]",
        "remove one",
    ),
    "a variable from nowhere": Bad(
        engine(env=[{"name": "A", "valueFrom": {}}]), "spec.engine.env[0].valueFrom", "exactly one"
    ),
    "breadths the wrong way round": Bad(
        ngram(minBfsBreadth=4, maxBfsBreadth=2), "spec.speculative.ngram", "at most maxBfsBreadth"
    ),
    "a least breadth above the default": Bad(
        ngram(minBfsBreadth=11), "spec.speculative.ngram", "raise maxBfsBreadth"
    ),
    "arguments in the pod template": Bad(
        template({"name": "logs", "image": "busybox"}, {"name": "engine", "args": ["--help"]}),
        "spec.podTemplate.spec.containers[1]",
        "use spec.engine.extraArgs",
    ),
    "a command in the pod template": Bad(
        template({"name": "engine", "command": ["sleep"]}),
        "spec.podTemplate.spec.containers[0]",
        "the operator writes command",
    ),
    "the image in the pod template": Bad(
        template({"name": "engine", "image": "x"}),
        "spec.podTemplate.spec.containers[0]",
        "spec.engine.image",
    ),
}
"""Refused by rules between fields (CEL), so both sides say the same words."""

BREAKS_A_TYPE: dict[str, Bad] = {
    "no model": Bad({}, "spec.model", ""),
    "no source": Bad(a_spec(model={}), "spec.model.source", ""),
    "fewer than no engines": Bad(
        a_spec(replicas=-1), "spec.replicas", "greater than or equal to 0"
    ),
    "half a replica": Bad(a_spec(rollout={"maxSurge": "0.5"}), "spec.rollout.maxSurge", ""),
    "a service of no kind": Bad(
        a_spec(service={"type": "ExternalName"}), "spec.service.type", '"LoadBalancer"'
    ),
    "a hub without a scheme": Bad(
        a_spec(model={**MODEL, "hubEndpoint": "mirror.example.com"}), "spec.model.hubEndpoint", ""
    ),
    "a token without a key": Bad(
        a_spec(model={**MODEL, "tokenSecretRef": {"name": "hub"}}),
        "spec.model.tokenSecretRef.key",
        "",
    ),
    "a number in quotes": Bad(a_spec(replicas="2"), "spec.replicas", ""),
    "a truth in quotes": Bad(a_spec(paused="yes"), "spec.paused", ""),
    "a served name with a colon": Bad(
        a_spec(model={**MODEL, "servedName": "a:b"}), "spec.model.servedName", ""
    ),
    "no tensor rank": Bad(engine(parallelism={"tensor": 0}), "spec.engine.parallelism.tensor", "1"),
    "an image with a space": Bad(engine(image="a b"), "spec.engine.image", ""),
    "half a core as a number": Bad(
        engine(resources={"requests": {"cpu": 0.5}}), "spec.engine.resources.requests", ""
    ),
    "a variable without a name": Bad(engine(env=[{"value": "1"}]), "spec.engine.env[0].name", ""),
    "two variables of one name": Bad(
        engine(env=[{"name": "A"}, {"name": "B"}, {"name": "A"}]), "spec.engine.env", ""
    ),
    "two containers of one name": Bad(
        template({"name": "logs"}, {"name": "logs"}), "spec.podTemplate.spec.containers", ""
    ),
    "arguments as a list": Bad(
        engine(extraArgs=["--trust-remote-code"]), "spec.engine.extraArgs", ""
    ),
    "an eviction policy that is not there": Bad(
        a_spec(cache={"eviction": {"policy": "fifo"}}), "spec.cache.eviction.policy", '"slru"'
    ),
    "a number format that is not there": Bad(
        a_spec(model={**MODEL, "dtype": "fp8"}), "spec.model.dtype", '"bfloat16"'
    ),
    "two adapters of one name": Bad(
        a_spec(
            model={
                **MODEL,
                "loraAdapters": [
                    {"name": "a", "source": "pvc://a"},
                    {"name": "a", "source": "pvc://b"},
                ],
            }
        ),
        "spec.model.loraAdapters",
        "",
    ),
    "an adapter whose name is a path": Bad(
        a_spec(model={**MODEL, "loraAdapters": [{"name": "a/b", "source": "pvc://a"}]}),
        "spec.model.loraAdapters[0].name",
        "",
    ),
    "more memory than there is": Bad(
        engine(memory={"fractionStatic": 1.5}), "spec.engine.memory.fractionStatic", "1"
    ),
    "a batch of nothing": Bad(
        engine(cudaGraph={"decode": {"batchSizes": [0]}}),
        "spec.engine.cudaGraph.decode.batchSizes[0]",
        "1",
    ),
    "a backend with a space": Bad(
        engine(attentionBackend="fa3 "), "spec.engine.attentionBackend", ""
    ),
    "a draft head of no kind": Bad(drafting("eagle"), "spec.speculative.eagle.algorithm", ""),
    "a small model that is not there": Bad(
        drafting("standalone"), "spec.speculative.standalone.draftModel", ""
    ),
    "a store of no kind": Bad(
        a_spec(cache={"hiCache": {"storage": {}}}), "spec.cache.hiCache.storage.backend", ""
    ),
    "peers without a limit": Bad(
        warming(fromPeers={}), "spec.cache.warming.fromPeers.maxTokens", ""
    ),
    "more prompts than are read": Bad(
        warming(promptsFrom=[{"configMap": {"name": "a"}}] * 17),
        "spec.cache.warming.promptsFrom",
        "16",
    ),
    "a page of nothing": Bad(a_spec(cache={"pageSize": 0}), "spec.cache.pageSize", "1"),
    "a scheduling policy that dies": Bad(
        a_spec(scheduling={"policy": "priority"}), "spec.scheduling.policy", '"fcfs"'
    ),
    "an overlap that is not there": Bad(
        a_spec(scheduling={"overlap": {"mode": "dynamic"}}),
        "spec.scheduling.overlap.mode",
        '"enabled"',
    ),
    "a single draft token": Bad(
        ngram(numDraftTokens=1), "spec.speculative.ngram.numDraftTokens", "2"
    ),
    "a match type in small letters": Bad(
        ngram(matchType="bfs"), "spec.speculative.ngram.matchType", '"BFS"'
    ),
    "a trie that is too small": Bad(ngram(capacity=100), "spec.speculative.ngram.capacity", "2048"),
}
"""Refused by types and limits, which the API server says in its own words."""
