"""What is said of `extraArgs`, before SGLang would say it."""

from typing import Any

import pytest
from hypothesis import given

from sglang_controllers.api import parse_spec
from sglang_controllers.api.settings import RESERVED, SETTINGS
from sglang_controllers.arguments import argument_problems
from tests.unit.controllers.api.cases import GOOD, a_spec
from tests.unit.controllers.api.strategies import specs

UNKNOWN = {"allowUnknownVersion": True}
ANOTHER = [{"image": "x/y:z", **UNKNOWN}, {"version": "0.6.0", **UNKNOWN}, UNKNOWN]


def extra(**flags: Any) -> dict[str, Any]:
    return {"engine": {"extraArgs": {flag.replace("_", "-"): v for flag, v in flags.items()}}}


def problems(**spec: Any) -> tuple[str, ...]:
    return argument_problems(parse_spec(a_spec(**spec)))


def extra_problems(flags: dict[str, Any], image: str | None = None) -> tuple[str, ...]:
    return argument_problems(parse_spec(a_spec(engine={"image": image, "extraArgs": flags})))


@pytest.mark.parametrize("spec", GOOD.values(), ids=GOOD.keys())
def test_good_specs_have_no_problems(spec: dict[str, Any]) -> None:
    assert argument_problems(parse_spec(spec)) == ()


@pytest.mark.parametrize(
    ("flag", "fix"),
    [
        ("model-path", "set spec.model.source"),
        ("model", "set spec.model.source"),
        ("served-model-name", "set spec.model.servedName"),
        ("host", "remove it"),
        ("port", "remove it"),
        ("enable-metrics", "remove it"),
        ("api-key", "a secret must not be an argument"),
        ("admin-api-key", "a secret must not be an argument"),
        ("nnodes", "one pod is one engine"),
        ("node-rank", "one pod is one engine"),
        ("dist-init-addr", "one pod is one engine"),
        ("nccl-init-addr", "one pod is one engine"),
        ("disaggregation-mode", "remove it"),
        ("config", "write them in extraArgs"),
        ("ssl-keyfile", "end TLS in front"),
        ("tp-size", "spec.engine.parallelism.tensor sets it"),
        ("tensor-parallel-size", "spec.engine.parallelism.tensor sets it"),
        ("page-size", "spec.cache.pageSize sets it"),
        ("radix-eviction-policy", "spec.cache.eviction.policy sets it"),
        ("schedule-policy", "spec.scheduling.policy sets it"),
        ("disable-overlap-schedule", "spec.scheduling.overlap.mode sets it"),
        ("speculative-ngram-capacity", "spec.speculative.ngram.capacity sets it"),
        ("trust-remote-code", "spec.model.trustRemoteCode sets it"),
        ("lora-paths", "spec.model.loraAdapters sets it"),
        ("dp", "spec.engine.parallelism.data sets it"),
        ("mem-fraction-static", "spec.engine.memory.fractionStatic sets it"),
        ("cuda-graph-max-bs-decode", "spec.engine.cudaGraph.decode.maxBatchSize sets it"),
        ("attention-backend", "spec.engine.attentionBackend sets it"),
        ("disable-radix-cache", "spec.cache.prefixCaching sets it"),
        ("enable-hicache", "spec.cache.hiCache sets it"),
        ("hicache-size", "spec.cache.hiCache.sizeGB sets it"),
        ("enable-priority-scheduling", "spec.scheduling.priority sets it"),
    ],
)
def test_a_flag_with_an_owner_is_sent_to_it(flag: str, fix: str) -> None:
    (problem,) = extra_problems({flag: 1})

    assert problem.startswith(f"spec.engine.extraArgs.{flag}: ")
    assert fix in problem


@pytest.mark.parametrize(
    ("short", "whole"),
    [("tp", "tp-size"), ("served-model", "served-model-name"), ("page", "page-size")],
)
def test_the_beginning_of_an_owned_flag_is_owned_too(short: str, whole: str) -> None:
    (problem,) = extra_problems({short: 1})

    assert f"spec.engine.extraArgs.{short}: SGLang reads it as {whole}; " in problem


@pytest.mark.parametrize("key", ["--tp-size", "tp_size", "TP-size", "tp-size=2", "--tp_size"])
def test_another_spelling_does_not_hide_the_owner(key: str) -> None:
    (problem,) = extra_problems({key: 1})

    assert "spec.engine.parallelism.tensor sets it" in problem


def test_a_flag_that_only_begins_like_an_owned_one_is_free() -> None:
    assert extra_problems({"enable-metrics-for-all-schedulers": True}) == ()
    flags = {"model-impl": "auto", "api-keys": 1}
    assert problems(engine={**UNKNOWN, "extraArgs": flags}) == ()


def test_an_algorithm_without_a_field_is_free_to_use_the_shared_flags() -> None:
    flags = {"speculative-algorithm": "DSPARK", "speculative-num-draft-tokens": 4}

    assert extra_problems(flags) == ()


def test_shared_flags_are_owned_while_ngram_is_on() -> None:
    found = problems(
        speculative={"ngram": {}},
        **extra(speculative_algorithm="EAGLE", speculative_num_draft_tokens=4),
    )

    assert [
        problem.rpartition("; ")[0].rpartition("; ")[2].split(": ")[-1] for problem in found
    ] == [
        "spec.speculative.ngram sets it",
        "spec.speculative.ngram.numDraftTokens sets it",
    ]


def test_kv_events_are_owned_by_warming_and_free_without_it() -> None:
    flag = extra(kv_events_config='{"publisher": "zmq"}')

    (problem,) = problems(cache={"warming": {}}, **flag)

    assert problem == (
        "spec.engine.extraArgs.kv-events-config: spec.cache.warming sets it; use that field"
    )
    assert problems(**flag) == ()


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("NGRAM", "ngram"),
        ("ngram", "ngram"),
        ("EAGLE", "eagle.algorithm"),
        ("eagle3", "eagle.algorithm"),
        ("NEXTN", "nextn"),
        ("STANDALONE", "standalone"),
    ],
)
def test_an_algorithm_with_a_field_is_sent_to_it(name: str, field: str) -> None:
    (problem,) = extra_problems({"speculative-algorithm": name})

    assert f"spec.speculative.{field} sets it" in problem


def test_the_settings_of_a_policy_are_sent_to_the_policy_that_is_set() -> None:
    tlru = {"policy": "tlru", "tlru": {"threshold": 64}}
    flag = extra(radix_eviction_policy_config={})

    (by_default,) = problems(**flag)
    (with_tlru,) = problems(cache={"eviction": tlru}, **flag)

    assert "spec.cache.eviction.slru sets it" in by_default
    assert "spec.cache.eviction.tlru sets it" in with_tlru


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            {"engine": {"grammarBackend": "xgramar"}},
            (
                'spec.engine.grammarBackend: got "xgramar"; SGLang 0.5.23 offers llguidance, none, '
                'outlines, xgrammar; write "xgrammar"'
            ),
        ),
        (
            {"engine": {"extraArgs": {"lora-backend": "cuda"}}},
            (
                'spec.engine.extraArgs.lora-backend: got "cuda"; SGLang 0.5.23 offers ascend, csgmv, '
                "torch_native, triton, triton_v2; write one of them"
            ),
        ),
        (
            {"engine": {"extraArgs": {"lora-target-modules": ["q_proj", "w_proj"]}}},
            'spec.engine.extraArgs.lora-target-modules: got "w_proj"; SGLang 0.5.23 offers ',
        ),
    ],
)
def test_a_value_that_sglang_does_not_offer_is_answered_with_what_it_offers(
    spec: dict[str, Any], sentence: str
) -> None:
    (problem,) = problems(**spec)

    assert problem.startswith(sentence)


@pytest.mark.parametrize("engine", ANOTHER)
def test_another_engine_may_offer_other_values(engine: dict[str, Any]) -> None:
    assert problems(engine={**engine, "attentionBackend": "mine"}) == ()


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        (
            "--watchdog-timeout",
            (
                'got "--watchdog-timeout"; a flag is written without leading dashes, with dashes '
                'between its words; write "watchdog-timeout"'
            ),
        ),
        (
            "watchdog_timeout",
            (
                'got "watchdog_timeout"; a flag is written without leading dashes, with dashes '
                'between its words; write "watchdog-timeout"'
            ),
        ),
        (
            "watchdog-timeout=0.8",
            (
                'got "watchdog-timeout=0.8"; the value is not part of the name; write '
                '"watchdog-timeout: 0.8"'
            ),
        ),
    ],
)
def test_a_misspelt_flag_is_answered_with_the_right_spelling(key: str, sentence: str) -> None:
    assert extra_problems({key: 0.8}) == (f"spec.engine.extraArgs.{key}: {sentence}",)


@pytest.mark.parametrize("key", ["", "-", "--", "a--b", "a b", "é", "=1", "a-"])
def test_what_cannot_be_a_flag_is_refused(key: str) -> None:
    assert len(extra_problems({key: 1})) == 1


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (None, ": got null; a flag needs a value; write true for a flag without one"),
        (False, ": got false; a flag that is off is left out; remove it"),
        ([], ": got []; a list needs an item; add one or remove the flag"),
        (["a", None], "[1]: got null; must be text, a number or an object"),
        ([True], "[0]: got true; must be text, a number or an object"),
        ([["a"]], '[0]: got ["a"]; must be text, a number or an object'),
        (["-a"], '[0]: got "-a"; SGLang takes it for a flag; remove the dash'),
    ],
)
def test_a_value_that_is_no_argument_is_refused(value: Any, sentence: str) -> None:
    assert extra_problems({"x": value}) == (f"spec.engine.extraArgs.x{sentence}",)


@pytest.mark.parametrize(
    ("flag", "value", "sentence"),
    [
        (
            "watchdog-timeuot",
            0.8,
            'SGLang 0.5.23 has no such argument; write "watchdog-timeout"',
        ),
        (
            "radix-eviction-polcy",
            "lfu",
            (
                "SGLang 0.5.23 has no such argument; if radix-eviction-policy is meant: "
                "spec.cache.eviction.policy sets it; use that field"
            ),
        ),
        ("zzzz", 1, "SGLang 0.5.23 has no such argument; remove it"),
        (
            "enable-cache-report",
            "yes",
            'got "yes"; the flag takes no value; write true, or remove the flag',
        ),
        (
            "stream-interval",
            True,
            "got true; the flag takes one whole number; write it",
        ),
        (
            "stream-interval",
            "many",
            'got "many"; the flag takes one whole number; write it as digits',
        ),
        (
            "stream-interval",
            1.5,
            "got 1.5; the flag takes one whole number; write it as digits",
        ),
        (
            "watchdog-timeout",
            {"a": 1},
            'got {"a": 1}; the flag takes one number; write it as digits',
        ),
        (
            "load-format",
            ["fa3"],
            (
                'got ["fa3"]; the flag takes one value that SGLang reads itself; write it without '
                "brackets"
            ),
        ),
    ],
)
def test_what_sglangs_parser_would_refuse_is_said_before(
    flag: str, value: Any, sentence: str
) -> None:
    assert extra_problems({flag: value}) == (f"spec.engine.extraArgs.{flag}: {sentence}",)


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("enable-cache-report", True),
        ("stream-interval", "64"),
        ("stream-interval", 1e3),
        ("watchdog-timeout", "0.8"),
        ("max-total-tokens", "64k"),
        ("gc-threshold", [700, 10, 5]),
        ("gc-threshold", 700),
        ("lora-target-modules", ["q_proj", "k_proj"]),
        ("no-lora-strict-loading", True),
        ("attn-dp", 1),
    ],
)
def test_what_sglangs_parser_takes_is_no_problem(flag: str, value: Any) -> None:
    assert extra_problems({flag: value}) == ()


def test_a_flag_that_can_be_switched_off_says_how() -> None:
    (problem,) = extra_problems({"lora-strict-loading": False})

    assert problem.endswith("a flag that is off is left out; write no-lora-strict-loading: true")


@pytest.mark.parametrize("engine", ANOTHER)
def test_flags_of_another_engine_are_its_own(engine: dict[str, Any]) -> None:
    flags = {"enable-my-plugin": True, "enable-cache-report": "yes"}

    assert problems(engine={**engine, "extraArgs": flags}) == ()


def test_a_release_that_is_not_known_has_to_be_allowed() -> None:
    (problem,) = problems(engine={"version": "0.6.0"})

    assert problem == (
        'spec.engine.version: got "0.6.0"; settings are checked against SGLang 0.5.23; write '
        '"0.5.23", or set spec.engine.allowUnknownVersion: true to leave the check to SGLang itself'
    )


def test_an_image_is_taken_for_the_known_release_until_said_otherwise() -> None:
    (flag, value) = problems(
        engine={
            "image": "x/y:z",
            "attentionBackend": "mine",
            "extraArgs": {"enable-my-plugin": True},
        }
    )

    hint = "; if spec.engine.image has it, set spec.engine.allowUnknownVersion: true"
    assert flag.startswith("spec.engine.extraArgs.enable-my-plugin: SGLang 0.5.23 has no such")
    assert value.startswith('spec.engine.attentionBackend: got "mine"')
    assert flag.endswith(hint)
    assert value.endswith(hint)


def test_problems_come_in_the_order_of_the_flags() -> None:
    found = extra_problems({"z": None, "a": None})

    assert [problem.split(": ")[0] for problem in found] == [
        "spec.engine.extraArgs.a",
        "spec.engine.extraArgs.z",
    ]


def test_no_flag_has_two_owners() -> None:
    typed = [(flag, s.within) for s in SETTINGS for flag in (s.flag, *s.aliases)]
    reserved = [(flag, "") for r in RESERVED for flag in r.flags]

    assert len(set(typed + reserved)) == len(typed + reserved)
    assert not {flag for flag, _ in typed} & {flag for flag, _ in reserved}


@given(specs())
def test_problems_are_found_without_an_exception(raw: dict[str, Any]) -> None:
    for problem in argument_problems(parse_spec(raw)):
        assert problem.startswith("spec.")
