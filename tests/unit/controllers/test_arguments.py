import json
from typing import Any

import pytest
from hypothesis import given

from sglang_controllers.api import parse_spec
from sglang_controllers.api.settings import KV_EVENTS, SETTINGS
from sglang_controllers.arguments import engine_arguments
from tests.unit.controllers.api.cases import MODEL, a_spec
from tests.unit.controllers.api.strategies import specs

FIXED = (
    "--model-path=/model",
    "--served-model-name=chat",
    "--host=0.0.0.0",
    "--port=30000",
    "--enable-metrics",
)


def arguments(**spec: Any) -> tuple[str, ...]:
    return engine_arguments(parse_spec(a_spec(**spec)), cluster_name="chat")


def extra(**flags: Any) -> dict[str, Any]:
    return {"engine": {"extraArgs": {flag.replace("_", "-"): v for flag, v in flags.items()}}}


def test_the_smallest_spec_gives_the_operators_arguments() -> None:
    assert arguments() == FIXED


def test_a_model_inside_the_image_is_read_where_it_is() -> None:
    assert arguments(model={"source": "image:///models/a"})[0] == "--model-path=/models/a"


def test_the_served_name_is_the_users_when_given() -> None:
    served = arguments(model={**MODEL, "servedName": "team/SmolLM2"})[1]

    assert served == "--served-model-name=team/SmolLM2"


@pytest.mark.parametrize(
    ("spec", "tokens"),
    [
        ({"engine": {"parallelism": {"tensor": 4}}}, ["--tp-size=4"]),
        ({"cache": {"eviction": {"policy": "slru"}}}, ["--radix-eviction-policy=slru"]),
        ({"cache": {"pageSize": 16}}, ["--page-size=16"]),
        ({"scheduling": {"policy": "dfs-weight"}}, ["--schedule-policy=dfs-weight"]),
        ({"scheduling": {"overlap": {"mode": "disabled"}}}, ["--disable-overlap-schedule"]),
        ({"scheduling": {"overlap": {"mode": "enabled"}}}, []),
        ({"cache": {"warming": {}}}, [f"--kv-events-config={KV_EVENTS}"]),
        ({"speculative": {"ngram": {}}}, ["--speculative-algorithm=NGRAM"]),
        (
            {
                "speculative": {
                    "ngram": {
                        "capacity": 100_000,
                        "matchType": "PROB",
                        "maxBfsBreadth": 4,
                        "minBfsBreadth": 2,
                        "maxTrieDepth": 12,
                        "numDraftTokens": 8,
                    }
                }
            },
            [
                "--speculative-algorithm=NGRAM",
                "--speculative-num-draft-tokens=8",
                "--speculative-ngram-max-trie-depth=12",
                "--speculative-ngram-min-bfs-breadth=2",
                "--speculative-ngram-max-bfs-breadth=4",
                "--speculative-ngram-match-type=PROB",
                "--speculative-ngram-capacity=100000",
            ],
        ),
        (
            {
                "model": {
                    **MODEL,
                    "dtype": "bfloat16",
                    "quantization": "fp8",
                    "kvCacheDtype": "fp8_e4m3",
                    "trustRemoteCode": True,
                    "contextLength": 32768,
                    "tokenizerPath": "/model/t",
                    "chatTemplate": "qwen2-vl",
                    "reasoningParser": "qwen3",
                    "toolCallParser": "qwen3_coder",
                    "loraAdapters": [
                        {"name": "sql", "source": "pvc://adapters/sql"},
                        {"name": "law", "source": "oci://registry.example.com/law:1"},
                        {"name": "own", "source": "image:///model/own"},
                    ],
                }
            },
            [
                "--dtype=bfloat16",
                "--quantization=fp8",
                "--kv-cache-dtype=fp8_e4m3",
                "--trust-remote-code",
                "--context-length=32768",
                "--tokenizer-path=/model/t",
                "--chat-template=qwen2-vl",
                "--reasoning-parser=qwen3",
                "--tool-call-parser=qwen3_coder",
                "--lora-paths",
                "sql=/lora/sql",
                "law=/lora/law",
                "own=/model/own",
            ],
        ),
        ({"model": {**MODEL, "trustRemoteCode": False, "loraAdapters": []}}, []),
        (
            {
                "engine": {
                    "parallelism": {
                        "tensor": 8,
                        "pipeline": 2,
                        "data": 4,
                        "dpAttention": True,
                        "expert": 8,
                    },
                    "memory": {"fractionStatic": 0.85},
                    "cudaGraph": {
                        "decode": {"backend": "full", "maxBatchSize": 64, "batchSizes": [1, 64]},
                        "prefill": {"backend": "disabled"},
                    },
                    "attentionBackend": "fa3",
                    "grammarBackend": "none",
                }
            },
            [
                "--tp-size=8",
                "--pp-size=2",
                "--dp-size=4",
                "--enable-dp-attention",
                "--ep-size=8",
                "--mem-fraction-static=0.85",
                "--cuda-graph-backend-decode=full",
                "--cuda-graph-max-bs-decode=64",
                "--cuda-graph-bs-decode",
                "1",
                "64",
                "--cuda-graph-backend-prefill=disabled",
                "--attention-backend=fa3",
                "--grammar-backend=none",
            ],
        ),
        (
            {"cache": {"eviction": {"policy": "slru", "slru": {"protectedThreshold": 4}}}},
            [
                "--radix-eviction-policy=slru",
                '--radix-eviction-policy-config={"protected_threshold":4}',
            ],
        ),
        (
            {
                "cache": {
                    "eviction": {
                        "policy": "tlru",
                        "tlru": {"threshold": 4096, "nextPromptEstimate": 512},
                    }
                }
            },
            [
                "--radix-eviction-policy=tlru",
                '--radix-eviction-policy-config={"next_prompt_estimate":512,"threshold":4096}',
            ],
        ),
        ({"cache": {"prefixCaching": "disabled"}}, ["--disable-radix-cache"]),
        ({"cache": {"hiCache": {}}}, ["--enable-hierarchical-cache"]),
        (
            {
                "cache": {
                    "hiCache": {
                        "sizeGB": 100,
                        "ratio": 2.0,
                        "writePolicy": "write_back",
                        "ioBackend": "direct",
                        "memoryLayout": "page_head",
                        "storage": {"backend": "file", "prefetchPolicy": "best_effort"},
                    }
                }
            },
            [
                "--enable-hierarchical-cache",
                "--hicache-size=100",
                "--hicache-ratio=2",
                "--hicache-write-policy=write_back",
                "--hicache-io-backend=direct",
                "--hicache-mem-layout=page_head",
                "--hicache-storage-backend=file",
                "--hicache-storage-prefetch-policy=best_effort",
            ],
        ),
        (
            {
                "scheduling": {
                    "conservativeness": 0.8,
                    "maxRunningRequests": 128,
                    "maxQueuedRequests": 512,
                    "chunkedPrefillSize": -1,
                    "priority": {
                        "default": 0,
                        "order": "low-first",
                        "preemption": "disabled",
                        "preemptionThreshold": 5,
                    },
                }
            },
            [
                "--schedule-conservativeness=0.8",
                "--max-running-requests=128",
                "--max-queued-requests=512",
                "--chunked-prefill-size=-1",
                "--enable-priority-scheduling",
                "--default-priority-value=0",
                "--schedule-low-priority-values-first",
                "--disable-priority-preemption",
                "--priority-scheduling-preemption-threshold=5",
            ],
        ),
        ({"scheduling": {"priority": {}}}, ["--enable-priority-scheduling"]),
        (
            {
                "speculative": {
                    "eagle": {
                        "algorithm": "EAGLE3",
                        "draftModel": {"source": "pvc://models/draft"},
                        "numSteps": 3,
                        "topk": 4,
                        "numDraftTokens": 16,
                    }
                }
            },
            [
                "--speculative-algorithm=EAGLE3",
                "--speculative-draft-model-path=/draft-model",
                "--speculative-num-steps=3",
                "--speculative-eagle-topk=4",
                "--speculative-num-draft-tokens=16",
            ],
        ),
        ({"speculative": {"nextn": {}}}, ["--speculative-algorithm=NEXTN"]),
        (
            {"speculative": {"standalone": {"draftModel": {"source": "image:///models/tiny"}}}},
            [
                "--speculative-algorithm=STANDALONE",
                "--speculative-draft-model-path=/models/tiny",
            ],
        ),
        ({"replicas": 3, "paused": True, "engine": {"startupTimeout": "5m"}}, []),
    ],
)
def test_a_typed_field_becomes_its_argument(spec: dict[str, Any], tokens: list[str]) -> None:
    assert arguments(**spec) == (*FIXED, *tokens)


@pytest.mark.parametrize(
    ("value", "tokens"),
    [
        (True, ["--x"]),
        (0.8, ["--x=0.8"]),
        (7, ["--x=7"]),
        (-1, ["--x=-1"]),
        (1e6, ["--x=1000000"]),
        (1e-7, ["--x=1e-07"]),
        ("auto", ["--x=auto"]),
        ("", ["--x="]),
        ("a b", ["--x=a b"]),
        ("true", ["--x=true"]),
        (["a=/a", 2], ["--x", "a=/a", "2"]),
        ([{"lora_name": "a"}], ["--x", '{"lora_name":"a"}']),
        ({"b": 1, "a": [None, 0.5, "ü"]}, ['--x={"a":[null,0.5,"ü"],"b":1}']),
    ],
)
def test_an_extra_argument_is_written_as_sglang_reads_it(value: Any, tokens: list[str]) -> None:
    assert arguments(**extra(x=value)) == (*FIXED, *tokens)


def test_extra_arguments_come_last_and_sorted() -> None:
    spec = {"cache": {"pageSize": 1}} | extra(zeta=1, alpha=2)

    assert arguments(**spec)[5:] == ("--page-size=1", "--alpha=2", "--zeta=1")


@given(specs())
def test_every_good_spec_renders_in_single_tokens_and_always_the_same(raw: dict[str, Any]) -> None:
    first = engine_arguments(parse_spec(raw), cluster_name="chat")
    # As the API server gives it back: parsed again, keys in another order.
    turned = json.loads(json.dumps(raw, sort_keys=True))

    assert engine_arguments(parse_spec(turned), cluster_name="chat") == first
    typed = [token for token in first if token.split("=")[0] in TYPED]
    assert len({token.split("=")[0] for token in typed}) == len(typed)


TYPED = {f"--{setting.flag}" for setting in SETTINGS}
