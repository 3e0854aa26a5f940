"""From ConfigMaps of any size to the few that pods mount."""

import json

from hypothesis import given
from hypothesis import strategies as st

from sglang_controllers.warming.slots import SLOT_BYTES, SLOTS, slot_names
from sglang_controllers.warming.sources import Source, source_of
from tests.unit.controllers.warming.prompts import (
    CHAT,
    a_source,
    held,
    known_slots,
    named,
    slots,
)

LARGE = "x" * 600_000
COPY = Source({}, copied=True)


def test_a_named_config_map_is_copied_whole_and_its_index_says_from_where() -> None:
    (slot,) = known_slots(named(), prompts=a_source(a="Hello", b="Bye")).manifests

    index = json.loads(slot["data"]["index-0.json"])
    assert held(slot) == {"s0-0": "Hello", "s0-1": "Bye"}
    assert index["sources"] == [
        {"configMap": "prompts", "key": "a", "file": "s0-0"},
        {"configMap": "prompts", "key": "b", "file": "s0-1"},
    ]


def test_the_hash_of_a_slot_is_in_its_index() -> None:
    found = known_slots(named(), prompts=a_source(a="Hello"))

    assert json.loads(found.manifests[0]["data"]["index-0.json"])["hash"] == found.hash


def test_one_key_is_copied_where_one_is_named() -> None:
    (slot,) = known_slots(named(key="b"), prompts=a_source(a="Hello", b="Bye")).manifests

    assert held(slot) == {"s0-0": "Bye"}


def test_what_is_named_twice_is_copied_once() -> None:
    found = known_slots(named(), named(key="a"), prompts=a_source(a="Hello"))

    assert held(found.manifests[0]) == {"s0-0": "Hello"}


def test_bytes_stay_bytes() -> None:
    (slot,) = known_slots(named(), prompts=a_source(binary={"a": "AAEC"})).manifests

    assert slot["binaryData"] == {"s0-0": "AAEC"}


def test_nothing_is_known_before_all_are_read() -> None:
    assert slots(named("one"), named("two"), one=a_source(a="Hello")) is None


def test_without_prompts_there_is_no_slot() -> None:
    found = known_slots()

    assert (found.manifests, found.hash) == ((), "")


def test_what_is_missing_is_told_and_the_rest_is_copied() -> None:
    found = known_slots(
        named("gone"), named("here", "no"), named("here", "a"), gone=None, here=a_source(a="Hello")
    )

    assert found.missing == ("ConfigMap gone", "key no of ConfigMap here")
    assert held(found.manifests[0]) == {"s0-0": "Hello"}


def test_a_slot_that_is_full_leaves_the_next_key_to_another() -> None:
    found = known_slots(named(), prompts=a_source(a=LARGE, b=LARGE, c="small"))

    assert [list(held(slot)) for slot in found.manifests] == [["s0-0", "s0-1"], ["s1-0"]]
    assert found.hash.count("-") == 1


def test_what_fits_nowhere_is_told_and_the_rest_is_copied() -> None:
    source = a_source(a="x" * 1_000_001, b=LARGE, c=LARGE, d=LARGE, e=LARGE, f=LARGE, g="small")

    found = known_slots(named(), prompts=source)

    assert found.too_large == ("key a of ConfigMap prompts", "key f of ConfigMap prompts")
    assert [slot["metadata"]["name"] for slot in found.manifests] == list(slot_names(CHAT))
    assert "small" in held(found.manifests[0]).values()


def test_keys_beyond_the_most_are_told() -> None:
    many = source_of({"data": {f"k{number:04}": "Hi" for number in range(1002)}})
    more = "which has more than 1,000"

    whole = known_slots(named(), prompts=many)
    one = known_slots(named(key="k1001"), named(key="k0001"), prompts=many)

    assert whole.too_large == (f"2 more keys of ConfigMap prompts, {more}",)
    assert len(held(whole.manifests[0])) == 1000
    assert (one.too_large, one.missing) == ((f"key k1001 of ConfigMap prompts, {more}",), ())


def test_a_copy_is_not_copied_again() -> None:
    found = known_slots(named(), named(key="a"), named("mine"), prompts=COPY, mine=a_source(a="Hi"))

    assert (found.copied, found.missing) == (("prompts",), ())
    assert held(found.manifests[0]) == {"s0-0": "Hi"}


def test_an_edit_changes_the_hash_of_its_slot_alone() -> None:
    before = known_slots(named(), prompts=a_source(a=LARGE, b=LARGE))
    after = known_slots(named(), prompts=a_source(a=LARGE, b=LARGE[:-1] + "y"))

    assert after.hash.split("-")[0] == before.hash.split("-")[0]
    assert after.hash.split("-")[1] != before.hash.split("-")[1]


KEYS = st.from_regex(r"[a-z]{1,3}", fullmatch=True)
TEXTS = st.tuples(st.sampled_from("ab\x01\n€"), st.sampled_from([0, 1, 1000, 250_000])).map(
    lambda pair: pair[0] * pair[1]
)


@given(st.dictionaries(KEYS, TEXTS, max_size=8))
def test_no_slot_is_larger_than_the_api_server_takes(data: dict[str, str]) -> None:
    found = known_slots(named(), prompts=source_of({"data": data}))

    copied = sum(len(held(slot)) for slot in found.manifests)
    assert len(found.manifests) <= SLOTS
    assert copied + len(found.too_large) == len(data)
    for slot in found.manifests:
        assert sum(len(value.encode()) for value in slot["data"].values()) <= SLOT_BYTES + 100
        assert len(json.dumps(slot)) < 3 * 1024 * 1024
