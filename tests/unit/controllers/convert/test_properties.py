import shlex
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sglang_controllers.api import parse_spec
from sglang_controllers.api.choices import CHOICES
from sglang_controllers.api.flags import FLAGS
from sglang_controllers.arguments import argument_problems, engine_arguments
from sglang_controllers.convert import Conversion, ConvertError, converted
from tests.unit.controllers.api.strategies import specs

EXTRA = st.fixed_dictionaries(
    {},
    optional={
        "enable-cache-report": st.just(value=True),
        "max-total-tokens": st.sampled_from([8192, "64k"]),
        "watchdog-timeout": st.sampled_from([0.5, 300, "1e3"]),
        "gc-threshold": st.just([700, 10]),
        "json-model-override-args": st.just('{"a": "b c"}'),
    },
)


@given(specs(EXTRA))
def test_the_arguments_of_any_spec_convert_to_themselves(raw: dict[str, Any]) -> None:
    spec = parse_spec(raw)
    arguments = engine_arguments(spec, cluster_name="chat")
    command = shlex.join(["python3", "-m", "sglang.launch_server", *arguments])
    if argument_problems(spec):
        return

    again = parse_spec(converted(command).manifest["spec"])

    assert sorted(engine_arguments(again, cluster_name="chat")) == sorted(arguments)


VALUES = st.one_of(
    st.integers(-2, 9).map(str),
    st.sampled_from(sorted({value for values in CHOICES.values() for value in values})),
    st.text(max_size=8),
    st.sampled_from(["{}", "[]", '{"a":1}', "a=b", "EAGLE", "NGRAM", "true", "1e400", "nan"]),
)
ARGUMENTS = st.lists(
    st.tuples(st.sampled_from([f"--{flag}" for flag in FLAGS]), st.lists(VALUES, max_size=2)),
    max_size=5,
)


def answered(text: str) -> bool:
    try:
        return isinstance(converted(text), Conversion)
    except ConvertError as refusal:
        return bool(refusal.problems)


@given(ARGUMENTS)
def test_any_arguments_convert_or_are_refused(arguments: list[tuple[str, list[str]]]) -> None:
    tokens = [token for flag, values in arguments for token in (flag, *values)]

    assert answered(shlex.join(["sglang", "serve", "Qwen/Qwen3-8B", *tokens]))


@given(st.text(st.sampled_from("a-=' \"\n\\;&|<>$#{}.:/1"), max_size=40))
def test_any_text_converts_or_is_refused(text: str) -> None:
    assert answered(text)
    assert answered(f"A=1 docker run -e B=2 python -m sglang.launch_server --model a/b {text}")
