"""Specs that must be taken and specs that must be refused, by the models and by the API server."""

from dataclasses import dataclass
from typing import Any

MODEL: dict[str, Any] = {"source": "oci://registry.example.com/smollm2:v1"}


def a_spec(**fields: Any) -> dict[str, Any]:
    """The smallest spec, with `fields` on top."""
    return {"model": dict(MODEL), **fields}


def ngram(**fields: Any) -> dict[str, Any]:
    return a_spec(speculative={"ngram": fields})


def engine(**fields: Any) -> dict[str, Any]:
    return a_spec(engine=fields)


def template(*containers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return a_spec(podTemplate={"spec": {"containers": list(containers), **fields}})


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
        extraArgs={
            "mem-fraction-static": 0.8,
            "max-running-requests": 64,
            "trust-remote-code": True,
            "attention-backend": "flashinfer",
            "lora-paths": ["a=/lora/a", "b=/lora/b"],
            "json-model-override-args": {"rope_scaling": {"factor": 2.0}},
        },
        startupTimeout="1h30m",
    ),
    "cache and scheduling": a_spec(
        cache={"eviction": {"policy": "slru"}, "pageSize": 16},
        scheduling={"policy": "lpm", "overlap": {"mode": "disabled"}},
    ),
    "empty objects": a_spec(
        engine={}, cache={"eviction": {}}, scheduling={"overlap": {}}, speculative={}
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
    "a hub's model": Bad(a_spec(model={"source": "Qwen/Qwen3-8B"}), SOURCE, 'write "oci://'),
    "an unknown scheme": Bad(a_spec(model={"source": "hf://Qwen/Qwen3-8B"}), SOURCE, "pvc://CLAIM"),
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
    "a timeout without a unit": Bad(engine(startupTimeout="30"), TIMEOUT, 'write "30m"'),
    "a timeout with a fraction": Bad(engine(startupTimeout="1.5h"), TIMEOUT, "needs units"),
    "a timeout of nothing": Bad(engine(startupTimeout="0s"), TIMEOUT, "more than 0s"),
    "a timeout of days": Bad(engine(startupTimeout="24h1s"), TIMEOUT, "at most 24h"),
    "fewer accelerators than ranks": Bad(
        engine(accelerator={"count": 2}, parallelism={"tensor": 4}), COUNT, "at least"
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
    "a number in quotes": Bad(a_spec(replicas="2"), "spec.replicas", ""),
    "a truth in quotes": Bad(a_spec(paused="yes"), "spec.paused", ""),
    "a served name with a colon": Bad(
        a_spec(model={**MODEL, "servedName": "a:b"}), "spec.model.servedName", ""
    ),
    "no tensor rank": Bad(engine(parallelism={"tensor": 0}), "spec.engine.parallelism.tensor", "1"),
    "memory with a wrong unit": Bad(engine(sharedMemory="8GB"), "spec.engine.sharedMemory", ""),
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
    "an eviction policy that needs settings": Bad(
        a_spec(cache={"eviction": {"policy": "tlru"}}), "spec.cache.eviction.policy", '"slru"'
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
