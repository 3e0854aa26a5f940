"""The real SGLang takes the arguments that are rendered, and refuses what is said to be refused."""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sglang_controllers.api import parse_spec
from sglang_controllers.api.cache import EvictionPolicy
from sglang_controllers.api.choices import CHOICES
from sglang_controllers.api.flags import FLAGS, Takes
from sglang_controllers.api.scheduling import SchedulingPolicy
from sglang_controllers.api.settings import RESERVED, SETTINGS, Kind, field_value
from sglang_controllers.arguments import argument_problems, engine_arguments
from sglang_controllers.convert import converted
from sglang_controllers.convert.command import launch_command
from tests.unit.controllers.api.strategies import specs
from tests.unit.controllers.convert.test_conversion import COMMANDS
from tests.unit.controllers.test_contradictions import ACCEPTED, REFUSED

CACHE = Path(os.environ.get("SGLANG_OPERATOR_CACHE") or Path.home() / ".cache" / "sglang-operator")
PYTHON = CACHE / "engine-env" / "bin" / "python"
SCRIPT = Path(__file__).with_name("engine_parser.py")

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "num_hidden_layers": 2,
    "vocab_size": 1000,
    "max_position_embeddings": 512,
    "torch_dtype": "bfloat16",
}
"""Enough of a model for SGLang to check arguments against."""

SAYS = {
    "copies of the model in attention groups": "replicas combined with attention data parallelism",
    "attention groups that do not divide the ranks": "AssertionError",
    "attention groups in the typed spelling": "AssertionError",
    "attention groups with LMCache": "does not yet support DP attention",
    "a split head without attention groups": "requires attention DP",
    "two batches at a time without attention groups": "(--attn-dp-size) is required",
    "stages with delayed prefills": "is not supported with pipeline parallelism",
    "chunks that are not whole pages": "must be divisible by page_size",
    "a group's chunks that are not whole pages": "must be divisible by page_size",
    "pages that no default is a multiple of": "must be divisible by page_size",
    "two hierarchical caches": "mutually exclusive",
    "a hierarchical cache and a linker": "mutually exclusive",
    "LMCache without prefixes": "requires radix cache to be enabled",
    "a linker without prefixes": "with radix caching enabled",
    "four-bit KV on the CPU": "KV4",
    "block-scaled KV on the CPU": "requires an SM100+",
    "NVFP4 with kernels that have no such KV": "provides neither",
    "a format for reading NVFP4 without NVFP4": "applies only with --kv-cache-dtype=nvfp4",
    "a policy that needs the cache that is off": "Unknown schedule_policy",
    "retraction by a priority that is off": "requires --enable-priority-scheduling",
    "multiplexing with overlap": "not compatible with overlap schedule",
    "multiplexing with chunks": "not compatible with chunked prefill",
    "adapters of unknown shape": "specify both --max-lora-rank and --lora-target-modules",
    "more adapters in a batch than in memory": "should be greater than or equal to max_loras_per",
    "adapters loaded beside the work without a limit": "must be less than or equal to double",
    "adapters with a small model that drafts": "LoRA is only compatible with",
    "adapters with adaptive steps": "does not support --speculative-adaptive",
    "a tree of n-grams in pages on the CPU": "only supported for the 'flashinfer' backend",
    "a tree of n-grams in pages on another device": "only supported for the 'flashinfer' backend",
    "a tree of n-grams in pages with another backend": "only supported for the 'flashinfer'",
    "n-grams with pipeline stages": "Pipeline parallelism currently only supports EAGLE",
    "n-grams with attention groups": "does not support dp attention",
    "n-grams with LMCache": "does not yet support speculative decoding",
    "n-grams with unified memory": "other speculative algorithms are not yet audited",
    "n-grams with a weight cache": "not supported together with speculative decoding",
    "n-grams verified in blocks": "only supports EAGLE / EAGLE3",
    "a corpus without a budget": "must be positive",
    "a corpus with too large a budget": "must be less than or equal to",
    "a draft head in pipeline stages": "only supported on prefill nodes",
    "a small model that drafts with attention groups": "does not support dp attention",
    "a small model that drafts with rejection sampling": "is only supported for EAGLE",
    "a tree of drafts in pages on the CPU": "speculative_eagle_topk > 1 with page_size > 1",
    "a tree of drafts in pages with another backend": "speculative_eagle_topk > 1 with page_size",
    "a tree of drafts with rejection sampling": "requires --speculative-eagle-topk=1",
}
"""What SGLang says to each contradiction."""

NOT_ON_THE_CPU = {"n-grams on an NPU", "a tree of drafts with trtllm_mha"}
SAID_LATER = {"expert groups that do not divide the ranks"}
"""Refused when the ranks find each other, after the arguments are resolved."""

NEEDS_AN_ACCELERATOR = {"a tree of n-grams in pages where SGLang may choose flashinfer"}
NEEDS_AN_ENVIRONMENT = {"a draft head in pipeline stages that SGLang was told to try"}


@dataclass(frozen=True, slots=True)
class Engine:
    """SGLang's reading of arguments, in a process of its own."""

    requests: IO[str]
    answers: IO[str]
    model: Path
    arguments: list[dict[str, Any]]

    def read(self, raw: dict[str, Any], **extra: Any) -> dict[str, Any]:
        """What SGLang makes of a spec, run on the CPU with the model of the tests."""
        engine = raw.get("engine", {})
        flags = {"device": "cpu", "skip-tokenizer-init": True} | engine.get("extraArgs", {}) | extra
        source = {"source": f"image://{self.model}"}
        spec = raw | {
            "model": raw["model"] | source,
            "engine": engine | {"extraArgs": flags},
            "speculative": {
                member: fields | ({"draftModel": source} if "draftModel" in fields else {})
                for member, fields in raw.get("speculative", {}).items()
            },
        }
        return self.ask(engine_arguments(parse_spec(spec), cluster_name="chat"))

    def ask(self, arguments: tuple[str, ...]) -> dict[str, Any]:
        self.requests.write(json.dumps(arguments) + "\n")
        self.requests.flush()
        return dict(json.loads(self.answers.readline()))

    def flags(self) -> set[str]:
        return {flag.lstrip("-") for argument in self.arguments for flag in argument["flags"]}

    def argument(self, flag: str) -> dict[str, Any]:
        return next(a for a in self.arguments if f"--{flag}" in a["flags"])


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    assert PYTHON.exists(), f"there is no engine environment at {PYTHON}: run make engine-env"
    model = tmp_path_factory.mktemp("model")
    (model / "config.json").write_text(json.dumps(LLAMA))
    log = model / "stderr"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [PYTHON, SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "SGLANG_USE_CPU_ENGINE": "1"},
        )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        head = process.stdout.readline()
        assert head, log.read_text()[-2000:]
        yield Engine(process.stdin, process.stdout, model, json.loads(head))
        process.kill()  # it holds nothing, and takes seconds to end by itself


def test_every_flag_of_the_tables_is_sglangs(engine: Engine) -> None:
    ours = {flag for s in SETTINGS for flag in (s.flag, *s.aliases)}
    ours |= {flag for reserved in RESERVED for flag in reserved.flags}

    assert ours - engine.flags() == set()


def takes(argument: dict[str, Any]) -> Takes:
    if argument["nargs"] == 0 or argument["boolean"]:
        return Takes.SWITCH
    by_count = {"+": Takes.LIST, "*": Takes.OPTIONAL, "?": Takes.OPTIONAL}
    by_type = {"int": Takes.WHOLE, "float": Takes.DECIMAL}
    return by_count.get(argument["nargs"]) or by_type.get(argument["type"]) or Takes.TEXT


def test_the_list_of_flags_is_sglangs(engine: Engine) -> None:
    theirs = {
        flag.removeprefix("--"): takes(argument)
        for argument in engine.arguments
        for flag in argument["flags"]
        if flag.startswith("--")
    }

    assert theirs == FLAGS


def test_the_values_on_offer_are_sglangs(engine: Engine) -> None:
    theirs = {
        flag.removeprefix("--"): argument["choices"]
        for argument in engine.arguments
        for flag in argument["flags"]
        if argument["choices"]
    }

    assert theirs == {flag: sorted(values) for flag, values in CHOICES.items()}


def test_every_spelling_of_an_owned_flag_is_in_the_tables(engine: Engine) -> None:
    groups = [{s.flag, *s.aliases} for s in SETTINGS] + [set(r.flags) for r in RESERVED]
    for group in groups:
        for flag in group - {"h"}:
            spellings = {name.lstrip("-") for name in engine.argument(flag)["flags"]}
            assert spellings <= group, flag


def test_no_other_flag_is_the_beginning_of_an_owned_one(engine: Engine) -> None:
    """Otherwise the rule that a beginning belongs to its owner would take a flag from users."""
    owned = {flag for s in SETTINGS for flag in (s.flag, *s.aliases)}
    owned |= {flag for reserved in RESERVED for flag in reserved.flags}

    free = engine.flags() - owned

    assert {flag for flag in free if any(name.startswith(flag) for name in owned)} == set()


def test_policies_on_offer_are_sglangs_but_for_those_that_cannot_start(engine: Engine) -> None:
    eviction = engine.argument("radix-eviction-policy")["choices"]
    scheduling = engine.argument("schedule-policy")["choices"]

    assert set(eviction) == {str(policy) for policy in EvictionPolicy}
    assert set(scheduling) - {str(policy) for policy in SchedulingPolicy} == {"priority"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--no-such-flag"], "unrecognized arguments: --no-such-flag"),
        (["--page-size=two"], "invalid int value: 'two'"),
        (["--page-size=16.0"], "invalid int value: '16.0'"),
        (["--mem-fraction-static=much"], "invalid float value: 'much'"),
        (["--trust-remote-code=yes"], "ignored explicit argument 'yes'"),
        (["--page-size"], "expected one argument"),
        (["--attention-backend", "triton", "fa3"], "unrecognized arguments: fa3"),
        (["--radix-eviction-policy=bogus"], "invalid choice: 'bogus'"),
        (["--schedule-policy=priority"], "Unknown schedule_policy"),
        (["--radix-eviction-policy=tlru"], "tlru needs 'threshold'"),
        (["--served-model-name=a:b"], "cannot contain a colon"),
    ],
)
def test_sglang_refuses_what_the_crd_does_not_offer(
    engine: Engine, arguments: list[str], says: str
) -> None:
    base = (f"--model-path={engine.model}", "--device=cpu", "--skip-tokenizer-init")

    assert says in engine.ask((*base, *arguments))["refused"]


def test_sglang_takes_the_beginning_of_a_flag_for_the_flag(engine: Engine) -> None:
    """Why the owner of a flag owns its beginnings as well."""
    answer = engine.ask(
        (f"--model-path={engine.model}", "--device=cpu", "--skip-tokenizer-init", "--tp=2")
    )

    assert answer["read"]["tp_size"] == 2


REAL_FLAGS = st.fixed_dictionaries(
    {},
    optional={
        "max-total-tokens": st.sampled_from([8192, 1e6, "64k"]),
        "log-level": st.sampled_from(["info", "warning"]),
        "watchdog-timeout": st.sampled_from([0.5, 300, 1.2]),
        "json-model-override-args": st.just({"max_position_embeddings": 512}),
        "prompt-tokens-buckets": st.just(["custom", 1, 10, 100]),
        "enable-cache-report": st.just(value=True),
        "enable-lmcache": st.just(value=True),
        "enable-unified-cache-external-linker": st.just(value=True),
        "enable-lora": st.just(value=True),
        "enable-lora-overlap-loading": st.just(value=True),
        "enable-pdmux": st.just(value=True),
        "enable-dp-lm-head": st.just(value=True),
        "enable-two-batch-overlap": st.just(value=True),
        "attn-dp-size": st.sampled_from([1, 2]),
        "moe-dp-size": st.sampled_from([1, 2]),
        "min-free-slots-delay": st.just(2),
        "retraction-policy": st.sampled_from(["length", "priority"]),
        "speculative-use-rejection-sampling": st.just(value=True),
        "max-loaded-loras": st.sampled_from([1, 8]),
    },
)

CHANGED = {
    "engine.parallelism.data",
    "engine.attentionBackend",
    "cache.hiCache.ioBackend",
    "cache.hiCache.memoryLayout",
    "scheduling.conservativeness",
    "scheduling.chunkedPrefillSize",
}
"""Fields whose value SGLang may change on the way, by the hardware or other fields."""


@settings(max_examples=200)
@given(raw=specs(REAL_FLAGS))
def test_every_spec_without_problems_starts_an_engine(engine: Engine, raw: dict[str, Any]) -> None:
    raw = raw | {"engine": raw.get("engine", {}) | {"accelerator": {"count": 0}}}
    spec = parse_spec(raw)

    answer = engine.read(raw)

    if argument_problems(spec):
        assert answer["refused"], argument_problems(spec)
        return
    assert answer["refused"] is None
    for setting in SETTINGS:
        value = field_value(spec, setting.field)
        if value is not None and setting.kind is Kind.VALUE and setting.field not in CHANGED:
            assert str(answer["read"][setting.flag.replace("-", "_")]) == str(value)


@pytest.mark.parametrize(
    ("mode", "disabled"), [(None, False), ("enabled", False), ("disabled", True)]
)
def test_the_overlap_mode_reaches_the_engine(
    engine: Engine, mode: str | None, *, disabled: bool
) -> None:
    overlap = {} if mode is None else {"mode": mode}

    answer = engine.read({"model": {}, "scheduling": {"overlap": overlap}})

    assert answer["read"]["disable_overlap_schedule"] is disabled


def test_every_contradiction_is_compared_with_sglang() -> None:
    assert SAYS.keys() == REFUSED.keys() - NOT_ON_THE_CPU - SAID_LATER


@pytest.mark.parametrize(("name", "says"), SAYS.items(), ids=SAYS.keys())
def test_what_is_called_a_contradiction_is_one_to_sglang(
    engine: Engine, name: str, says: str
) -> None:
    spec, _, _ = REFUSED[name]

    assert says in engine.read(spec)["refused"]


@pytest.mark.parametrize(
    "name", sorted(ACCEPTED.keys() - NEEDS_AN_ACCELERATOR - NEEDS_AN_ENVIRONMENT)
)
def test_what_is_called_no_contradiction_is_none_to_sglang(engine: Engine, name: str) -> None:
    assert engine.read(ACCEPTED[name])["refused"] is None


CONVERTED = {
    "host",
    "port",
    "model_path",
    "served_model_name",
    "speculative_draft_model_path",
    "enable_metrics",
    "api_key",
}
"""Arguments that are the operator's, or say where files are."""


@pytest.mark.parametrize("command", COMMANDS)
def test_a_converted_command_is_the_same_to_sglangs_parser(engine: Engine, command: str) -> None:
    spec = parse_spec(converted(command).manifest["spec"])

    before = engine.ask(("parse", *as_sglang_spells(launch_command(command).arguments)))
    after = engine.ask(("parse", *engine_arguments(spec, cluster_name="chat")))

    assert (before["refused"], after["refused"]) == (None, None)
    assert same(after["read"]) == same(before["read"])


def as_sglang_spells(arguments: list[str]) -> list[str]:
    """SGLang's own parser does not know -tp, which people write."""
    return ["--tp-size" if argument == "-tp" else argument for argument in arguments]


def same(read: dict[str, Any]) -> dict[str, Any]:
    """What does not differ: SGLang reads names of algorithms in small letters, too."""
    kept = {name: value for name, value in read.items() if name not in CONVERTED}
    return kept | {"speculative_algorithm": (kept["speculative_algorithm"] or "").upper()}
