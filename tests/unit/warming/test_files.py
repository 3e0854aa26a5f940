"""Prompt files as users write them, and as they do not mean to."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_warming.files import LIMIT_BYTES, Entry, Problem, entries
from sglang_warming.prompts import Prompt, identity

NAMES = ("a.json", "a.jsonl", "a.txt", "a", "A.JSONL", "")


def read(name: str, content: str | bytes) -> list[Entry]:
    data = content.encode() if isinstance(content, str) else content
    return list(entries(name, io.BytesIO(data)))


def prompts(name: str, content: str | bytes) -> list[Prompt]:
    return [entry[1] for entry in read(name, content) if not isinstance(entry, Problem)]


def problem(name: str, content: str | bytes) -> Problem:
    found = [entry for entry in read(name, content) if isinstance(entry, Problem)]
    assert len(found) == 1, found
    return found[0]


HELLO = Prompt(text="Hello")
IDS = Prompt(input_ids=(1, 2, 3))


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        pytest.param("a.txt", "Hello\n", [HELLO], id="plain text"),
        pytest.param("a.txt", "[1]\n\n", [Prompt(text="[1]\n")], id="one newline is taken off"),
        pytest.param("a.txt", "\ufeffHello\r\n", [HELLO], id="as Windows saves it"),
        pytest.param("a.json", '"Hello"', [HELLO], id="one text"),
        pytest.param("a.json", "[1, 2, 3]", [IDS], id="numbers are one entry"),
        pytest.param("a.json", ' ["Hello", [1,2,3]] ', [HELLO, IDS], id="a list"),
        pytest.param("a.json", "[]", [], id="an empty list"),
        pytest.param("a.json", "[ \n ]", [], id="an empty list with white space"),
        pytest.param("a.json", '{"text": "Hello"}', [HELLO], id="one object"),
        pytest.param("a.jsonl", '"Hello"\n\n[1,2,3]', [HELLO, IDS], id="lines"),
        pytest.param("a.jsonl", "", [], id="no lines"),
        pytest.param("a", '["Hello",\n[1,2,3]]', [HELLO, IDS], id="JSON by its content"),
        pytest.param("a", '\n"Hello"\n[1,2,3]\n', [HELLO, IDS], id="JSONL by its content"),
        pytest.param("a", "Hello\n", [HELLO], id="text by its content"),
        pytest.param("a", "2026\nHello", [Prompt(text="2026\nHello")], id="a number is text"),
    ],
)
def test_a_file_is_read_by_its_form(name: str, content: str, wanted: list[Prompt]) -> None:
    assert prompts(name, content) == wanted
    assert len(read(name, content)) == len(wanted)


def test_an_object_has_the_fields_that_sglang_has() -> None:
    messages = [{"role": "system", "content": "Be brief."}]
    entry = {
        "messages": messages,
        "tools": [{"type": "function"}],
        "chat_template_kwargs": {"enable_thinking": False},
        "lora_path": "legal",
        "cache_salt": "tenant",
        "repeat_interval": "1h10m",
        "text": None,
    }

    assert prompts("a.json", json.dumps(entry)) == [
        Prompt(
            messages=tuple(messages),
            tools=({"type": "function"},),
            chat_template_kwargs={"enable_thinking": False},
            lora_path="legal",
            cache_salt="tenant",
            repeat_interval_s=4200,
        )
    ]


LONG = "SECRET" * 10


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (5, "entry: got a number; "),
        (None, "entry: got null; "),
        (True, "entry: got a boolean; "),
        ("", "entry: is empty; "),
        ([], "entry: got no ids; "),
        ([1, LONG], "entry: got a string of 60 characters at position 1; "),
        ([1, True], "entry: got a boolean at position 1; "),
        ([1, -1], "entry: got an id out of range at position 1; "),
        ([2**31], "entry: got an id out of range at position 0; "),
        ({}, "entry: got no prompt; it has exactly one of text, input_ids, messages; "),
        ({"text": LONG, "input_ids": [1]}, "entry: got text and input_ids; "),
        ({"text": LONG, "prompt": LONG}, 'unknown key "prompt"; known are text, '),
        ({"text": [LONG]}, "text: got a list of 1; "),
        ({"input_ids": LONG}, "input_ids: got a string of 60 characters; "),
        ({"messages": []}, "messages: got a list of 0; "),
        ({"messages": [LONG]}, "messages: got a list of 1; "),
        ({"messages": [{"content": LONG}]}, "messages: got one without a role at position 0; "),
        ({"text": LONG, "tools": [{}]}, "tools: is for messages only; "),
        ({"text": LONG, "lora_path": 3}, "lora_path: got a number; "),
        ({"text": LONG, "cache_salt": ""}, "cache_salt: got a string of 0 characters; "),
        ({"text": LONG, "repeat_interval": "10x"}, 'repeat_interval: got "10x"; '),
        ({"text": LONG, "repeat_interval": ""}, 'repeat_interval: got ""; '),
        ({"text": LONG, "repeat_interval": "h"}, 'repeat_interval: got "h"; '),
        ({"text": LONG, "repeat_interval": 0.5}, "repeat_interval: got a number; "),
        ({"text": "\ud800"}, "entry: has half of a surrogate pair; "),
    ],
)
def test_a_bad_entry_is_told_by_its_place_and_the_others_are_read(entry: Any, message: str) -> None:
    told = problem("a.json", json.dumps(["Hello", entry, "Hello"]))

    assert told.index == 1
    assert told.message.startswith(message)
    assert "SECRET" not in told.message
    assert prompts("a.json", json.dumps(["Hello", entry, "Hello"])) == [HELLO, HELLO]
    assert problem("a.jsonl", f'"Hello"\n{json.dumps(entry)}\n"Hello"') == told


@pytest.mark.parametrize(
    ("name", "content", "index", "message"),
    [
        ("a.json", "", 0, "not JSON: expecting value at character 0; "),
        ("a.json", '["Hello", "Hello"', 2, "not JSON: expecting , or ] at character 17; "),
        ("a.json", '["Hello"] x', 1, "not JSON: extra data at character 9; "),
        ("a.json", b'["\xff"]', 0, "byte 2 is not UTF-8; "),
        ("a.json", "[NaN]", 0, "not JSON that can be read: it has a number "),
        ("a.json", '{"messages": [{"role": "user", "x": 1e999}]}', 0, "entry: has a number out "),
        ("a.json", "[" * 100_000, 0, "not JSON that can be read: it is nested too deep; "),
        ("a.json", "[" + "9" * 5000 + "]", 0, "not JSON that can be read: it has a number "),
        ("a.jsonl", "[1]\n{", 1, "not JSON: expecting property name enclosed in double quotes "),
        (
            "a.json",
            '[{"messages":' + "[" * 900 + "]" * 900 + "}]",
            0,
            "entry: is nested deeper than 100 levels; ",
        ),
        ("a.txt", "\n", 0, "entry: is empty; "),
        ("a.txt", b"\xff", 0, "byte 0 is not UTF-8; "),
        ("a", b"\xff", 0, "byte 0 is not UTF-8; "),
    ],
)
def test_a_broken_file_is_told(name: str, content: str | bytes, index: int, message: str) -> None:
    told = problem(name, content)

    assert told.index == index
    assert told.message.startswith(message)


def test_what_is_too_large_is_told_and_other_lines_are_read() -> None:
    long = b'"' + b"a" * LIMIT_BYTES + b'"'

    assert problem("a.json", long).message.startswith("a file that is not JSONL has more than")
    assert problem("a.txt", long).index is None
    assert problem("a", b"text " + long).index is None
    lines = b'"Hello"\n' + long + b'\n"Hello"\n'
    assert problem("a.jsonl", lines).index == 1
    assert prompts("a.jsonl", lines) == [HELLO, HELLO]
    assert problem("a", lines).index == 1


def test_only_the_first_thousand_problems_are_told_one_by_one() -> None:
    read_ = read("a.jsonl", "{\n" * 1500 + '"Hello"\n')

    assert len(read_) == 1002
    assert read_[-2] == (1500, HELLO)
    assert read_[-1] == Problem(None, "500 more problems are not told", 500)


def test_the_same_prompt_is_the_same_however_often_it_is_sent() -> None:
    often, once = prompts("a.jsonl", '{"text": "a", "repeat_interval": 5}\n"a"')

    assert identity(often) == identity(once)
    others = prompts("a.jsonl", '{"text":"a","cache_salt":"s"}\n{"text":"a","lora_path":"s"}\n"b"')
    assert len({identity(prompt) for prompt in (once, *others)}) == 4


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["text"]),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(["text", "input_ids", "messages", "role", "tools", "repeat_interval"])
            | st.text(),
            inner,
        )
    ),
)


@given(name=st.sampled_from(NAMES), data=st.binary())
def test_any_bytes_give_prompts_or_problems(name: str, data: bytes) -> None:
    for entry in entries(name, io.BytesIO(data)):
        _used(entry)


@given(name=st.sampled_from(NAMES), value=JSON_VALUES, cut=st.integers(0, 40))
def test_any_json_gives_prompts_or_problems(name: str, value: Any, cut: int) -> None:
    data = json.dumps(value).encode()

    for whole in (data, data[: max(0, len(data) - cut)], data + b"\n" + data):
        for entry in entries(name, io.BytesIO(whole)):
            _used(entry)


def _used(entry: Entry) -> None:
    """As it is used: a prompt can be sent, a problem can be shown."""
    if isinstance(entry, Problem):
        assert entry.message.encode()
    else:
        json.dumps(entry[1].fields(), allow_nan=False, ensure_ascii=False).encode()
        assert len(identity(entry[1])) == 64
