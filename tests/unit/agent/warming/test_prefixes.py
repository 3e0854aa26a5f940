"""The tree of hot prefixes, from events as an engine sends them. A block has two tokens."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_agent.warming import prefixes as module
from sglang_agent.warming.prefixes import HALF_LIFE_S, Prefixes, Stored

SYSTEM = [1, 2]
"""Hashes of the blocks of a system prompt."""


def stored(hashes: list[int], parent: int | None = None, salt: str | None = None) -> Stored:
    """Blocks whose tokens are ten and eleven times their hash."""
    tokens = [token for name in hashes for token in (10 * name, 10 * name + 1)]
    return Stored(hashes, parent, tokens, cache_salt=salt)


def ids(*hashes: int) -> list[int]:
    return list(stored(list(hashes)).tokens)


@pytest.fixture(name="tree")
def _tree() -> Prefixes:
    """A system prompt with three questions below it, and a prompt that came alone."""
    tree = Prefixes()
    tree.store(stored([*SYSTEM, 3]), 0)
    tree.store(stored([4], parent=2), 1)
    tree.store(stored([5], parent=2), 2)
    tree.store(stored([9, 8]), 3)
    return tree


def listed(tree: Prefixes, max_tokens: int = 1000, now_s: float = 4) -> list[list[int]]:
    return [prefix.input_ids for prefix in tree.hottest(max_tokens, now_s)]


def test_what_prompts_have_in_common_is_hottest(tree: Prefixes) -> None:
    assert listed(tree, max_tokens=4) == [ids(*SYSTEM)]


def test_shared_tokens_count_once_and_each_prefix_is_whole(tree: Prefixes) -> None:
    assert sorted(listed(tree)) == [
        ids(*SYSTEM, 3),
        ids(*SYSTEM, 4),
        ids(*SYSTEM, 5),
        ids(9, 8),
    ]
    assert len(listed(tree, max_tokens=10)) == 2


def test_what_does_not_fit_is_cut_after_a_block(tree: Prefixes) -> None:
    assert listed(tree, max_tokens=3) == [ids(1)]
    assert listed(tree, max_tokens=1) == []


def test_an_old_hit_counts_less_than_a_new_one() -> None:
    tree = Prefixes()
    tree.store(stored([1]), 0)
    tree.store(stored([2], parent=1), 0)
    tree.store(stored([3]), 3 * HALF_LIFE_S)

    (hot, cold) = tree.hottest(100, 3 * HALF_LIFE_S)

    assert (hot.input_ids, hot.hits) == (ids(3), 1)
    assert (cold.input_ids, cold.hits) == (ids(1, 2), 0.125)


def test_a_removed_block_takes_what_is_below_it_along(tree: Prefixes) -> None:
    tree.remove([2])

    assert sorted(listed(tree)) == [ids(1), ids(9, 8)]
    assert len(tree) == 3


def test_what_was_removed_can_come_again(tree: Prefixes) -> None:
    tree.remove([1, 2, 3, 4, 5, 8, 9])
    assert (listed(tree), len(tree)) == ([], 0)

    tree.store(stored([*SYSTEM, 3]), 5)

    assert listed(tree) == [ids(*SYSTEM, 3)]


def test_a_block_below_an_unknown_one_is_not_kept(tree: Prefixes) -> None:
    before = len(tree)

    tree.store(stored([7], parent=77), 5)

    assert len(tree) == before


def test_a_prompt_that_repeats_known_blocks_adds_its_own(tree: Prefixes) -> None:
    tree.store(stored([*SYSTEM, 6]), 5)

    assert ids(*SYSTEM, 6) in listed(tree)
    assert len(tree) == 8


def test_salt_and_adapter_belong_to_the_prefix() -> None:
    tree = Prefixes()
    tree.store(Stored([1], None, [5, 6], "legal", "tenant"), 0)
    tree.store(Stored([2], 1, [7, 8], "legal", "tenant"), 0)
    tree.store(Stored([3], 1, [7, 9], "legal", "tenant"), 0)

    assert {(each.lora_name, each.cache_salt) for each in tree.hottest(100, 0)} == {
        ("legal", "tenant")
    }


def test_the_coldest_go_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BLOCKS", 100)
    tree = Prefixes()
    tree.store(stored([1]), 0)
    for name in range(2, 400):
        tree.store(stored([name], parent=1 if name % 50 == 0 else None), name)

    assert 80 <= len(tree) <= 100
    assert ids(1, 350) in listed(tree, now_s=400)
    assert ids(2) not in listed(tree, now_s=400)


def test_an_answer_is_bounded_also_where_prefixes_share_much() -> None:
    tree = Prefixes()
    tree.store(stored(list(range(1000))), 0)
    for name in range(1000, 2000):
        tree.store(stored([name], parent=999), 1)

    found = tree.hottest(3000, 2)

    assert sum(len(each.input_ids) for each in found) <= 8 * 3000
    assert len(found) == 8 * 3000 // 2002


def test_an_emptied_tree_knows_nothing(tree: Prefixes) -> None:
    tree.clear()

    assert (listed(tree), len(tree)) == ([], 0)


HASHES = st.lists(st.integers(0, 12), max_size=5)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("store"), HASHES, st.none() | st.integers(0, 12)),
        st.tuples(st.just("remove"), HASHES, st.none()),
    ),
    max_size=30,
)


@given(events=EVENTS, max_tokens=st.integers(1, 40))
def test_whatever_comes_the_answer_keeps_its_bounds(
    events: list[tuple[str, list[int], int | None]], max_tokens: int
) -> None:
    tree = Prefixes()
    alive: set[int] = set()
    for now_s, (kind, hashes, parent) in enumerate(events):
        if kind == "store":
            tree.store(stored(hashes, parent), now_s)
            alive |= set(hashes)
        else:
            tree.remove(hashes)
            alive -= set(hashes)

    found = tree.hottest(max_tokens, len(events))

    distinct = {tuple(each.input_ids[:end]) for each in found for end in range(1, 41)}
    beginnings = {prefix for prefix in distinct if len(prefix) % 2 == 0}
    assert 2 * len({p for p in beginnings if p}) <= max_tokens
    assert {token // 10 for each in found for token in each.input_ids} <= alive
    assert len(tree) <= len(alive)
    json.dumps([each.input_ids for each in found])


def test_numbers_that_are_no_token_ids_are_not_kept() -> None:
    tree = Prefixes()

    tree.store(Stored([1], None, [2**40]), 0)
    tree.store(Stored([1, 2], None, [1, 2, 3]), 0)
    tree.store(Stored([1, 1], None, [1, 2]), 0)
    tree.store(Stored([], None, []), 0)

    assert len(tree) == 0
