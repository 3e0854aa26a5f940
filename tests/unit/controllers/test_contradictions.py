from typing import Any

import pytest

from sglang_controllers.api import parse_spec
from sglang_controllers.arguments import argument_problems
from tests.unit.controllers.api.cases import a_spec

NGRAM: dict[str, Any] = {"speculative": {"ngram": {}}}


def with_flags(flags: dict[str, Any], **spec: Any) -> dict[str, Any]:
    engine = {**spec.pop("engine", {}), "extraArgs": flags}
    return a_spec(engine=engine, **spec)


CPU = {"accelerator": {"count": 0}}
PAGES = {"cache": {"pageSize": 16}}

REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "data parallel replicas without accelerators": (
        with_flags({"dp-size": 2}, engine={"parallelism": {"tensor": 2}}),
        "spec.engine.accelerator.count: unset;",
        "write 4",
    ),
    "pipeline stages without accelerators": (
        with_flags({"pp-size": 2}, engine={"accelerator": {"count": 1}}),
        "spec.engine.accelerator.count: got 1;",
        "write 2",
    ),
    "attention groups that do not divide the ranks": (
        with_flags({"attn-dp-size": 3}, engine={"parallelism": {"tensor": 4}}),
        "spec.engine.parallelism.tensor: got 4;",
        "multiple",
    ),
    "attention groups in the old spelling": (
        with_flags(
            {"dp-size": 3, "enable-dp-attention": True}, engine={"parallelism": {"tensor": 4}}
        ),
        "spec.engine.parallelism.tensor: got 4;",
        "multiple",
    ),
    "chunks that are not whole pages": (
        with_flags({"chunked-prefill-size": 100}, **PAGES),
        "spec.cache.pageSize: got 16;",
        "write 96 there",
    ),
    "settings for a policy that takes none": (
        with_flags({"radix-eviction-policy-config": {"protected_threshold": 4}}),
        "spec.cache.eviction.policy: unset;",
        "write slru",
    ),
    "priorities with a policy that ignores them": (
        with_flags({"enable-priority-scheduling": True}, scheduling={"policy": "lpm"}),
        'spec.scheduling.policy: got "lpm";',
        "fcfs and lof",
    ),
    "a policy that needs the cache that is off": (
        with_flags({"disable-radix-cache": True}, scheduling={"policy": "shortest-prefill-first"}),
        'spec.scheduling.policy: got "shortest-prefill-first";',
        "remove spec.engine.extraArgs.disable-radix-cache",
    ),
    "multiplexing with overlap": (
        with_flags({"enable-pdmux": True, "chunked-prefill-size": -1}),
        "spec.scheduling.overlap.mode: unset;",
        "write disabled",
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
        with_flags({"attention-backend": "fa3"}, **NGRAM, **PAGES),
        "spec.cache.pageSize: got 16;",
        "flashinfer",
    ),
    "n-grams with pipeline stages": (
        with_flags({"pp-size": 2}, engine={"accelerator": {"count": 2}}, **NGRAM),
        "spec.speculative.ngram: excludes pipeline parallelism",
        "remove one",
    ),
    "n-grams with attention groups": (
        with_flags({"attn-dp-size": 2}, engine={"parallelism": {"tensor": 2}}, **NGRAM),
        "spec.speculative.ngram: excludes data parallel attention",
        "remove one",
    ),
    "n-grams with LMCache": (
        with_flags({"enable-lmcache": True}, **NGRAM),
        "spec.speculative.ngram: excludes spec.engine.extraArgs.enable-lmcache",
        "remove one",
    ),
    "n-grams with unified memory": (
        with_flags({"enable-unified-memory": True, "attention-backend": "triton"}, **NGRAM),
        "spec.speculative.ngram: excludes spec.engine.extraArgs.enable-unified-memory",
        "remove one",
    ),
    "n-grams with a weight cache": (
        with_flags({"weight-cache-mode": "client"}, **NGRAM),
        "spec.speculative.ngram: excludes spec.engine.extraArgs.weight-cache-mode",
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
}

ACCEPTED: dict[str, dict[str, Any]] = {
    "replicas with enough accelerators": with_flags(
        {"dp-size": 2}, engine={"accelerator": {"count": 4}, "parallelism": {"tensor": 2}}
    ),
    "pipeline stages on the CPU": with_flags({"pp-size": 2}, engine=CPU),
    "attention groups inside the ranks": with_flags(
        {"dp-size": 4, "enable-dp-attention": True}, engine={"parallelism": {"tensor": 4}}
    ),
    "chunks of whole pages": with_flags({"chunked-prefill-size": 8192}, **PAGES),
    "chunks switched off": with_flags({"chunked-prefill-size": -1}, **PAGES),
    "settings for the policy that takes them": with_flags(
        {"radix-eviction-policy-config": {"protected_threshold": 4}},
        cache={"eviction": {"policy": "slru"}},
    ),
    "priorities with the default policy": with_flags({"enable-priority-scheduling": True}),
    "a cache-aware policy without a cache": with_flags(
        {"disable-radix-cache": True}, scheduling={"policy": "lpm"}
    ),
    "a tree of n-grams in pages where SGLang may choose flashinfer": a_spec(**NGRAM, **PAGES),
    "a tree of n-grams in pages with flashinfer": with_flags(
        {"attention-backend": "flashinfer"}, **NGRAM, **PAGES
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
    flags = {"dp-size": size, "pp-size": size, "attn-dp-size": size, "chunked-prefill-size": size}

    found = argument_problems(parse_spec(with_flags(flags, engine={"image": "x/y:z"}, **PAGES)))

    assert [problem for problem in found if "extraArgs" not in problem] == []
