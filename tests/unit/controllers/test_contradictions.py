from typing import Any

import pytest

from sglang_controllers.api import parse_spec
from sglang_controllers.arguments import argument_problems
from tests.unit.controllers.api.cases import MODEL, a_spec

NGRAM: dict[str, Any] = {"speculative": {"ngram": {}}}


def with_flags(flags: dict[str, Any], **spec: Any) -> dict[str, Any]:
    engine = {**spec.pop("engine", {}), "extraArgs": flags}
    return a_spec(engine=engine, **spec)


CPU = {"accelerator": {"count": 0}}
PAGES = {"cache": {"pageSize": 16}}
WHOLE_PROMPTS = {"scheduling": {"chunkedPrefillSize": -1}}


def ranks(**parallelism: Any) -> dict[str, Any]:
    return {"parallelism": parallelism}


def drafted(member: str, **fields: Any) -> dict[str, Any]:
    return {"speculative": {member: fields}}


TREE = {"numSteps": 3, "topk": 2, "numDraftTokens": 6}
EAGLE_TREE = drafted("eagle", algorithm="EAGLE", **TREE)
STANDALONE = drafted("standalone", draftModel={"source": "pvc://models/draft"})
ADAPTERS = {"model": {**MODEL, "loraAdapters": [{"name": "a", "source": "pvc://adapters/a"}]}}
NO_PREFIXES = {"cache": {"prefixCaching": "disabled"}}

REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "copies of the model in attention groups": (
        with_flags({"attn-dp-size": 2}, engine=ranks(tensor=2, data=2)),
        "spec.engine.parallelism.data: got 2;",
        "dpAttention: true",
    ),
    "attention groups that do not divide the ranks": (
        with_flags({"attn-dp-size": 3}, engine=ranks(tensor=4)),
        "spec.engine.parallelism.tensor: got 4;",
        "multiple",
    ),
    "attention groups in the typed spelling": (
        a_spec(engine=ranks(tensor=4, data=3, dpAttention=True), **WHOLE_PROMPTS),
        "spec.engine.parallelism.tensor: got 4;",
        "multiple",
    ),
    "attention groups with LMCache": (
        with_flags({"enable-lmcache": True}, engine=ranks(tensor=2, data=2, dpAttention=True)),
        "spec.engine.parallelism.dpAttention: excludes spec.engine.extraArgs.enable-lmcache",
        "remove one",
    ),
    "a split head without attention groups": (
        with_flags({"enable-dp-lm-head": True}, engine=ranks(data=2)),
        "spec.engine.extraArgs.enable-dp-lm-head: got true;",
        "needs spec.engine.parallelism.dpAttention",
    ),
    "two batches at a time without attention groups": (
        with_flags({"enable-two-batch-overlap": True}),
        "spec.engine.extraArgs.enable-two-batch-overlap: got true;",
        "needs spec.engine.parallelism.dpAttention",
    ),
    "expert groups that do not divide the ranks": (
        a_spec(engine=ranks(tensor=4, expert=3)),
        "spec.engine.parallelism.expert: got 3;",
        "write 1 or 4",
    ),
    "stages with delayed prefills": (
        with_flags({"min-free-slots-delay": 4}, engine=ranks(pipeline=2)),
        "spec.engine.parallelism.pipeline: excludes spec.engine.extraArgs.min-free-slots-delay",
        "remove one",
    ),
    "chunks that are not whole pages": (
        a_spec(scheduling={"chunkedPrefillSize": 100}, **PAGES),
        "spec.scheduling.chunkedPrefillSize: got 100;",
        "write 96 or",
    ),
    "a group's chunks that are not whole pages": (
        a_spec(
            engine=ranks(tensor=4, data=4, dpAttention=True),
            scheduling={"chunkedPrefillSize": 2080},
            **PAGES,
        ),
        "spec.scheduling.chunkedPrefillSize: got 2080;",
        "each of 4 attention groups; write 2048 or",
    ),
    "pages that no default is a multiple of": (
        a_spec(cache={"pageSize": 48}),
        "spec.scheduling.chunkedPrefillSize: unset;",
        "whole pages of 48 tokens; write 16368 or",
    ),
    "two hierarchical caches": (
        with_flags({"enable-lmcache": True}, cache={"hiCache": {}}),
        "spec.cache.hiCache: excludes spec.engine.extraArgs.enable-lmcache",
        "remove one",
    ),
    "a hierarchical cache and a linker": (
        with_flags({"enable-unified-cache-external-linker": True}, cache={"hiCache": {}}),
        "spec.cache.hiCache: excludes spec.engine.extraArgs.enable-unified-cache-external-linker",
        "remove one",
    ),
    "LMCache without prefixes": (
        with_flags({"enable-lmcache": True}, **NO_PREFIXES),
        "spec.cache.prefixCaching: excludes spec.engine.extraArgs.enable-lmcache",
        "remove one",
    ),
    "a linker without prefixes": (
        with_flags({"enable-unified-cache-external-linker": True}, **NO_PREFIXES),
        "spec.cache.prefixCaching: excludes spec.engine.extraArgs.enable-unified-cache-",
        "remove one",
    ),
    "four-bit KV on the CPU": (
        a_spec(engine=CPU, model={**MODEL, "kvCacheDtype": "fp4_mx_block16"}),
        'spec.model.kvCacheDtype: got "fp4_mx_block16";',
        "write auto",
    ),
    "block-scaled KV on the CPU": (
        a_spec(engine=CPU, model={**MODEL, "kvCacheDtype": "mxfp8"}),
        'spec.model.kvCacheDtype: got "mxfp8";',
        "write auto",
    ),
    "NVFP4 with kernels that have no such KV": (
        a_spec(engine={"attentionBackend": "triton"}, model={**MODEL, "kvCacheDtype": "nvfp4"}),
        'spec.engine.attentionBackend: got "triton";',
        "flashinfer and trtllm_mha",
    ),
    "a format for reading NVFP4 without NVFP4": (
        with_flags({"prefill-kv-cache-dequant-dtype": "fp8_e4m3"}),
        "spec.model.kvCacheDtype: unset;",
        "write nvfp4",
    ),
    "a policy that needs the cache that is off": (
        a_spec(scheduling={"policy": "shortest-prefill-first"}, **NO_PREFIXES),
        'spec.scheduling.policy: got "shortest-prefill-first";',
        "remove spec.cache.prefixCaching",
    ),
    "retraction by a priority that is off": (
        with_flags({"retraction-policy": "priority"}),
        "spec.scheduling.priority: unset;",
        "write priority: {}",
    ),
    "multiplexing with overlap": (
        with_flags({"enable-pdmux": True}, scheduling={"chunkedPrefillSize": -1}),
        "spec.scheduling.overlap.mode: unset;",
        "write disabled",
    ),
    "multiplexing with chunks": (
        with_flags({"enable-pdmux": True}, scheduling={"overlap": {"mode": "disabled"}}),
        "spec.scheduling.chunkedPrefillSize: unset;",
        "write -1",
    ),
    "adapters of unknown shape": (
        with_flags({"enable-lora": True}),
        "spec.model.loraAdapters: unset;",
        "add an adapter",
    ),
    "more adapters in a batch than in memory": (
        with_flags({"max-loaded-loras": 4}, **ADAPTERS),
        "spec.engine.extraArgs.max-loaded-loras: got 4;",
        "write 8",
    ),
    "adapters loaded beside the work without a limit": (
        with_flags({"enable-lora-overlap-loading": True}, **ADAPTERS),
        "spec.engine.extraArgs.max-loaded-loras: got null;",
        "write 16",
    ),
    "adapters with a small model that drafts": (
        a_spec(**STANDALONE, **ADAPTERS),
        "spec.speculative.standalone: excludes LoRA adapters",
        "draft with ngram",
    ),
    "adapters with adaptive steps": (
        with_flags(
            {"speculative-adaptive": True},
            **drafted("eagle", algorithm="EAGLE", numSteps=3, topk=1),
            **ADAPTERS,
        ),
        "spec.engine.extraArgs.speculative-adaptive: excludes LoRA adapters",
        "remove one",
    ),
    "a tree of n-grams in pages on the CPU": (
        a_spec(engine=CPU, **NGRAM, **PAGES),
        "spec.cache.pageSize: got 16;",
        "maxBfsBreadth: 1",
    ),
    "a tree of n-grams in pages on another device": (
        with_flags({"device": "cpu"}, **NGRAM, **PAGES),
        "spec.cache.pageSize: got 16;",
        "remove pageSize",
    ),
    "a tree of n-grams in pages with another backend": (
        a_spec(engine={"attentionBackend": "fa3"}, **NGRAM, **PAGES),
        "spec.cache.pageSize: got 16;",
        "flashinfer",
    ),
    "n-grams with pipeline stages": (
        a_spec(engine=ranks(pipeline=2), **NGRAM),
        "spec.speculative.ngram: excludes pipeline parallelism",
        "remove one",
    ),
    "n-grams with attention groups": (
        with_flags({"attn-dp-size": 2}, engine=ranks(tensor=2), **NGRAM),
        "spec.speculative.ngram: excludes data parallel attention",
        "remove one",
    ),
    "n-grams with LMCache": (
        with_flags({"enable-lmcache": True}, **NGRAM),
        "spec.speculative.ngram: excludes spec.engine.extraArgs.enable-lmcache",
        "remove one",
    ),
    "n-grams with unified memory": (
        with_flags({"enable-unified-memory": True}, engine={"attentionBackend": "triton"}, **NGRAM),
        "spec.speculative.ngram: excludes spec.engine.extraArgs.enable-unified-memory",
        "remove one",
    ),
    "n-grams with a weight cache": (
        with_flags({"weight-cache-mode": "client"}, **NGRAM),
        "spec.speculative.ngram: excludes spec.engine.extraArgs.weight-cache-mode",
        "remove one",
    ),
    "n-grams verified in blocks": (
        with_flags({"speculative-use-block-verification": True}, **NGRAM),
        "spec.speculative.ngram: excludes spec.engine.extraArgs.speculative-use-block-",
        "remove one",
    ),
    "n-grams on an NPU": (
        with_flags({"device": "npu"}, **NGRAM),
        "spec.speculative.ngram: excludes spec.engine.extraArgs.device",
        "remove one",
    ),
    "a corpus without a budget": (
        with_flags({"speculative-ngram-external-corpus-path": "/corpus"}, **NGRAM),
        "spec.engine.extraArgs.speculative-ngram-external-sam-budget: got 0;",
        "from 1 to 11",
    ),
    "a corpus with too large a budget": (
        with_flags(
            {
                "speculative-ngram-external-corpus-path": "/corpus",
                "speculative-ngram-external-sam-budget": 4,
            },
            speculative={"ngram": {"numDraftTokens": 4}},
        ),
        "spec.engine.extraArgs.speculative-ngram-external-sam-budget: got 4;",
        "from 1 to 3",
    ),
    "a draft head in pipeline stages": (
        a_spec(engine=ranks(pipeline=2), **drafted("nextn", numSteps=3, topk=1)),
        "spec.speculative.nextn: excludes pipeline parallelism",
        "remove one",
    ),
    "a small model that drafts with attention groups": (
        a_spec(engine=ranks(tensor=2, data=2, dpAttention=True), **STANDALONE),
        "spec.speculative.standalone: excludes data parallel attention",
        "remove one",
    ),
    "a small model that drafts with rejection sampling": (
        with_flags({"speculative-use-rejection-sampling": True}, **STANDALONE),
        "spec.speculative.standalone: excludes spec.engine.extraArgs.speculative-use-rejection",
        "remove one",
    ),
    "a tree of drafts in pages on the CPU": (
        a_spec(engine=CPU, **EAGLE_TREE, **PAGES),
        "spec.speculative.eagle.topk: got 2;",
        "remove spec.cache.pageSize",
    ),
    "a tree of drafts in pages with another backend": (
        a_spec(engine={"attentionBackend": "torch_native"}, **EAGLE_TREE, **PAGES),
        "spec.speculative.eagle.topk: got 2;",
        "flashinfer, fa3, triton",
    ),
    "a tree of drafts with trtllm_mha": (
        a_spec(engine={"attentionBackend": "trtllm_mha"}, **EAGLE_TREE),
        "spec.speculative.eagle.topk: got 2;",
        "write 1",
    ),
    "a tree of drafts with rejection sampling": (
        with_flags({"speculative-use-rejection-sampling": True}, **EAGLE_TREE),
        "spec.speculative.eagle.topk: excludes spec.engine.extraArgs.speculative-use-rejection",
        "remove one",
    ),
}

ACCEPTED: dict[str, dict[str, Any]] = {
    "copies with enough accelerators": a_spec(
        engine={"accelerator": {"count": 4}, **ranks(tensor=2, data=2)}
    ),
    "pipeline stages on the CPU": a_spec(engine={**CPU, **ranks(pipeline=2)}),
    "attention groups inside the ranks": a_spec(engine=ranks(tensor=4, data=4, dpAttention=True)),
    "attention groups in SGLang's newer spelling": with_flags(
        {"attn-dp-size": 4}, engine=ranks(tensor=4)
    ),
    "a split head with attention groups": with_flags(
        {"enable-dp-lm-head": True}, engine=ranks(tensor=2, data=2, dpAttention=True)
    ),
    "a split head on one rank": with_flags({"enable-dp-lm-head": True}),
    "experts on every rank": a_spec(engine=ranks(tensor=4, expert=4)),
    "chunks of whole pages": a_spec(scheduling={"chunkedPrefillSize": 8192}, **PAGES),
    "chunks switched off": a_spec(scheduling={"chunkedPrefillSize": -1}, **PAGES),
    "settings for the policy that takes them": a_spec(
        cache={"eviction": {"policy": "slru", "slru": {"protectedThreshold": 4}}}
    ),
    "a tail-optimized cache": a_spec(
        cache={"eviction": {"policy": "tlru", "tlru": {"threshold": 4096}}}
    ),
    "priorities with the default policy": a_spec(scheduling={"priority": {}}),
    "retraction by priority": with_flags(
        {"retraction-policy": "priority"}, scheduling={"priority": {}}
    ),
    "a cache-aware policy without a cache": a_spec(scheduling={"policy": "lpm"}, **NO_PREFIXES),
    "a hierarchical cache": a_spec(
        cache={"hiCache": {"ratio": 2, "storage": {"backend": "file"}}, "pageSize": 64}
    ),
    "multiplexing": with_flags(
        {"enable-pdmux": True},
        scheduling={"chunkedPrefillSize": -1, "overlap": {"mode": "disabled"}},
    ),
    "adapters": a_spec(**ADAPTERS),
    "adapters with n-grams": a_spec(**ADAPTERS, **NGRAM),
    "adapters with a draft head": a_spec(**ADAPTERS, **EAGLE_TREE),
    "adapters that come later": with_flags(
        {"enable-lora": True, "max-lora-rank": 16, "lora-target-modules": ["q_proj"]}
    ),
    "a tree of n-grams in pages where SGLang may choose flashinfer": a_spec(**NGRAM, **PAGES),
    "a tree of n-grams in pages with flashinfer": a_spec(
        engine={"attentionBackend": "flashinfer"}, **NGRAM, **PAGES
    ),
    "a chain of n-grams in pages": a_spec(
        engine=CPU, speculative={"ngram": {"maxBfsBreadth": 1}}, **PAGES
    ),
    "a corpus within the drafts": with_flags(
        {
            "speculative-ngram-external-corpus-path": "/corpus",
            "speculative-ngram-external-sam-budget": 6,
        },
        **NGRAM,
    ),
    "a draft head with SGLang's shape": a_spec(**drafted("nextn")),
    "a small model that drafts": a_spec(**STANDALONE),
    "a tree of drafts in pages with triton": a_spec(
        engine={"attentionBackend": "triton"}, **EAGLE_TREE, **PAGES
    ),
    "a draft head with attention groups": a_spec(
        engine=ranks(tensor=2, data=2, dpAttention=True), **EAGLE_TREE
    ),
    "a draft head in pipeline stages that SGLang was told to try": a_spec(
        engine={
            **ranks(pipeline=2),
            "env": [{"name": "SGLANG_ENABLE_PP_SPEC", "value": "1"}],
        },
        **drafted("nextn", numSteps=3, topk=1),
    ),
}


@pytest.mark.parametrize(("spec", "field", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_what_sglang_would_refuse_is_said_before(
    spec: dict[str, Any], field: str, says: str
) -> None:
    (problem,) = argument_problems(parse_spec(spec))

    assert problem.startswith(field)
    assert says in problem


@pytest.mark.parametrize("spec", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_sglang_takes_is_taken(spec: dict[str, Any]) -> None:
    assert argument_problems(parse_spec(spec)) == ()


@pytest.mark.parametrize("size", ["two", 1e400, None, True, [], {}, -1, ""])
def test_a_size_that_is_no_number_is_left_to_others(size: Any) -> None:
    flags = {"attn-dp-size": size, "moe-dp-size": size, "max-loaded-loras": size}

    found = argument_problems(parse_spec(with_flags(flags, engine={"image": "x/y:z"}, **PAGES)))

    assert [problem for problem in found if "extraArgs" not in problem] == []
