from hypothesis import given
from hypothesis import strategies as st

from sglang_bench.prefixes import most_shared
from sglang_bench.trace import Blocks


def test_the_most_shared_prefix_comes_first_where_there_is_no_room_for_all() -> None:
    requests = [(1, 2, 3), (1, 2, 4), (1, 2, 5), (6, 7), (6, 8)]

    assert most_shared(requests, max_blocks=2) == [(1, 2)]
    assert most_shared(requests, max_blocks=10) == [(1, 2), (6,)]


def test_what_one_request_has_alone_is_not_worth_it() -> None:
    assert most_shared([(1, 2), (3, 4)], max_blocks=10) == []


def test_a_prefix_that_another_one_begins_with_is_not_told_twice() -> None:
    assert most_shared([(1,), (1, 2), (1, 2)], max_blocks=10) == [(1, 2)]


@st.composite
def chained(draw: st.DrawFn) -> list[Blocks]:
    """Requests whose ids name a block and all before it, as in a trace."""
    names: dict[tuple[int, ...], int] = {}
    requests = draw(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5), max_size=20))
    return [
        tuple(names.setdefault(tuple(path[: at + 1]), len(names)) for at in range(len(path)))
        for path in requests
    ]


@given(chained(), st.integers(0, 12))
def test_prefixes_are_of_requests_and_fit(requests: list[Blocks], max_blocks: int) -> None:
    prefixes = most_shared(requests, max_blocks)

    assert all(any(blocks[: len(prefix)] == prefix for blocks in requests) for prefix in prefixes)
    assert len({block for prefix in prefixes for block in prefix}) <= max_blocks
