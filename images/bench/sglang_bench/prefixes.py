"""What somebody who knows the traffic would put into a file of prompts: the prefixes that most requests share."""

from collections import Counter
from collections.abc import Iterable, Sequence

from sglang_bench.trace import Blocks

SHARED = 2
"""Requests that have to have a block, for it to be worth a warming."""


def most_shared(requests: Sequence[Blocks], max_blocks: int) -> list[Blocks]:
    """Prefixes that hold, together, the blocks of the most requests; at most `max_blocks` different ones."""
    counts = Counter(block for blocks in requests for block in blocks)
    depths = {block: depth for blocks in requests for depth, block in enumerate(blocks)}
    # A block never has more requests than those before it, so whole prefixes come out.
    ranked = sorted(counts, key=lambda block: (-counts[block], depths[block], block))
    chosen = {block for block in ranked[:max_blocks] if counts[block] >= SHARED}
    return _longest(_chosen_part(blocks, chosen) for blocks in requests)


def _chosen_part(blocks: Blocks, chosen: set[int]) -> Blocks:
    length = next((at for at, block in enumerate(blocks) if block not in chosen), len(blocks))
    return blocks[:length]


def _longest(prefixes: Iterable[Blocks]) -> list[Blocks]:
    """Without those that another one begins with."""
    by_last = {prefix[-1]: prefix for prefix in prefixes if prefix}
    inner = {block for prefix in by_last.values() for block in prefix[:-1]}
    return [prefix for last, prefix in by_last.items() if last not in inner]
