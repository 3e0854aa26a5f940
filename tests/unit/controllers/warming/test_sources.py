"""Which ConfigMaps are named, and what stands for their content."""

from typing import Any

import pytest

from sglang_controllers.warming.sources import (
    MOST_KEYS,
    digests_of,
    is_warming,
    named_config_maps,
    source_of,
)


@pytest.mark.parametrize(
    ("prompts", "names"),
    [
        ([], set()),
        ([{"configMap": {"name": "a"}}, {"configMap": {"name": "b", "key": "k"}}], {"a", "b"}),
        ([{"persistentVolumeClaim": {"claimName": "c"}}], set()),
        ([None, 1, {"configMap": None}, {"configMap": {"name": 3}}, {"configMap": []}], set()),
        ([{"configMap": {"name": name}} for name in ("../secrets/a", "a?b", "a/b", "a\n")], set()),
        ("a", set()),
        (None, set()),
    ],
)
def test_names_are_found_whatever_else_is_there(prompts: Any, names: set[str]) -> None:
    assert named_config_maps({"cache": {"warming": {"promptsFrom": prompts}}}) == names


@pytest.mark.parametrize("spec", [{}, {"cache": None}, {"cache": {"warming": []}}, {"cache": 1}])
def test_a_spec_without_warming_names_nothing(spec: dict[str, Any]) -> None:
    assert named_config_maps(spec) == frozenset()


def test_text_and_bytes_are_read_in_the_order_of_their_keys() -> None:
    source = source_of({"data": {"b.txt": "Hello"}, "binaryData": {"a.txt": "AAEC"}})

    assert [(key, file.field, file.value) for key, file in source.files.items()] == [
        ("a.txt", "binaryData", "AAEC"),
        ("b.txt", "data", "Hello"),
    ]
    assert [file.weight for file in source.files.values()] == [3, 5]


def test_text_that_grows_in_a_request_weighs_more_than_its_bytes() -> None:
    source = source_of({"data": {"a": "\x01" * 600, "b": "ü" * 300}})

    assert source.files["a"].weight > 1100
    assert source.files["b"].weight == 600


def test_a_config_map_without_content_holds_nothing() -> None:
    assert source_of({"data": None}).files == {}
    assert digests_of({}) == {}


def test_digests_tell_one_content_from_another() -> None:
    one, same, other = ({"data": {"k": text}} for text in ("a", "a", "b"))

    assert digests_of(one) == digests_of(same)
    assert digests_of(one) != digests_of(other)


@pytest.mark.parametrize(
    ("spec", "warms"),
    [
        ({"cache": {"warming": {}}}, True),
        ({"cache": {"warming": None}}, False),
        ({"cache": []}, False),
        ({}, False),
    ],
)
def test_a_spec_warms_or_not_whatever_else_is_there(spec: dict[str, Any], warms: bool) -> None:
    assert is_warming(spec) is warms


def test_of_very_many_keys_only_the_first_are_read() -> None:
    source = source_of({"data": {f"k{number:05}": "" for number in range(MOST_KEYS + 7)}})

    assert list(source.files) == [f"k{number:05}" for number in range(MOST_KEYS)]
    assert source.left_out == 7


def test_nothing_is_read_from_what_an_operator_made() -> None:
    owner = {"kind": "SGLangCluster", "name": "chat", "uid": "1", "controller": True}
    other = {"kind": "Prompts", "name": "chat", "uid": "1", "controller": True}
    data = {"a": "Hello"}

    copy = source_of({"metadata": {"ownerReferences": [owner]}, "data": data})
    users = source_of({"metadata": {"ownerReferences": [other]}, "data": data})

    assert (copy.copied, dict(copy.files)) == (True, {})
    assert (users.copied, list(users.files)) == (False, ["a"])


def test_a_text_is_kept_in_as_many_bytes_as_it_has() -> None:
    text = "x" * 1000 + "\U0001f600"

    file = source_of({"data": {"a": text}}).files["a"]

    assert (file.value, len(file.content)) == (text, 1004)
