import json
from typing import Any

import pytest
from hypothesis import given

from sglang_controllers.api import parse_spec
from sglang_controllers.api.settings import RESERVED, SETTINGS
from sglang_controllers.arguments import argument_problems, engine_arguments
from tests.unit.controllers.api.cases import GOOD, MODEL, a_spec
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


def problems(**spec: Any) -> tuple[str, ...]:
    return argument_problems(parse_spec(a_spec(**spec)))


def extra_problems(flags: dict[str, Any], image: str | None = None) -> tuple[str, ...]:
    return argument_problems(parse_spec(a_spec(engine={"image": image, "extraArgs": flags})))


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
    assert extra_problems({"model-impl": "auto", "api-keys": 1}, image="x/y:z") == ()


def test_speculation_without_ngram_is_free_to_use_the_shared_flags() -> None:
    flags = {"speculative-algorithm": "EAGLE3", "speculative-num-draft-tokens": 4}

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


@pytest.mark.parametrize("name", ["NGRAM", "ngram"])
def test_ngram_as_an_argument_is_sent_to_its_field(name: str) -> None:
    (problem,) = extra_problems({"speculative-algorithm": name})

    assert "spec.speculative.ngram sets it" in problem


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        (
            "--mem-fraction-static",
            (
                'got "--mem-fraction-static"; a flag is written without leading dashes, with dashes '
                'between its words; write "mem-fraction-static"'
            ),
        ),
        (
            "mem_fraction_static",
            (
                'got "mem_fraction_static"; a flag is written without leading dashes, with dashes '
                'between its words; write "mem-fraction-static"'
            ),
        ),
        (
            "mem-fraction-static=0.8",
            (
                'got "mem-fraction-static=0.8"; the value is not part of the name; write '
                '"mem-fraction-static: 0.8"'
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
            "mem-fraction-statik",
            0.8,
            'SGLang 0.5.23 has no such argument; write "mem-fraction-static"',
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
            "trust-remote-code",
            "yes",
            'got "yes"; the flag takes no value; write true, or remove the flag',
        ),
        (
            "max-running-requests",
            True,
            "got true; the flag takes one whole number; write it",
        ),
        (
            "max-running-requests",
            "many",
            'got "many"; the flag takes one whole number; write it as digits',
        ),
        (
            "max-running-requests",
            1.5,
            "got 1.5; the flag takes one whole number; write it as digits",
        ),
        (
            "mem-fraction-static",
            {"a": 1},
            'got {"a": 1}; the flag takes one number; write it as digits',
        ),
        (
            "attention-backend",
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
        ("trust-remote-code", True),
        ("max-running-requests", "64"),
        ("max-running-requests", 1e3),
        ("mem-fraction-static", "0.8"),
        ("max-total-tokens", "64k"),
        ("cuda-graph-bs-decode", [1, 2, 4]),
        ("cuda-graph-bs-decode", 8),
        ("lora-paths", ["a=/a"]),
        ("no-lora-strict-loading", True),
        ("dp", 1),
    ],
)
def test_what_sglangs_parser_takes_is_no_problem(flag: str, value: Any) -> None:
    assert extra_problems({flag: value}) == ()


def test_a_flag_that_can_be_switched_off_says_how() -> None:
    (problem,) = extra_problems({"lora-strict-loading": False})

    assert problem.endswith("a flag that is off is left out; write no-lora-strict-loading: true")


@pytest.mark.parametrize("engine", [{"image": "x/y:z"}, {"version": "0.6.0"}])
def test_flags_of_another_engine_are_its_own(engine: dict[str, Any]) -> None:
    flags = {"enable-my-plugin": True, "trust-remote-code": "yes"}

    assert problems(engine={**engine, "extraArgs": flags}) == ()


def test_problems_come_in_the_order_of_the_flags() -> None:
    found = extra_problems({"z": None, "a": None})

    assert [problem.split(": ")[0] for problem in found] == [
        "spec.engine.extraArgs.a",
        "spec.engine.extraArgs.z",
    ]


def test_no_flag_has_two_owners() -> None:
    typed = [flag for s in SETTINGS for flag in (s.flag, *s.aliases)]
    reserved = [flag for r in RESERVED for flag in r.flags]

    assert len(set(typed + reserved)) == len(typed + reserved)


@given(specs())
def test_problems_are_found_without_an_exception(raw: dict[str, Any]) -> None:
    for problem in argument_problems(parse_spec(raw)):
        assert problem.startswith("spec.")
