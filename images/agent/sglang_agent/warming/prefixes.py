"""The hottest prefixes of an engine's cache, from what it says of blocks that come and go.

A tree like the engine's own: a node is a run of blocks, which splits where two prompts part. The
engine does not tell who reads a block. What it tells is a hit all the same: a block that is stored
below a prefix is another prompt, or another answer, that began with it.
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

MAX_BLOCKS = 150_000
"""Of 110 bytes each, measured. With pages of one token these are 150,000 tokens of prompts."""

MAX_TOKENS = 1_000_000
HALF_LIFE_S = 600.0
"""A hit counts half after that time."""

LISTED_PER_TOKEN = 8
"""How many ids are listed at most for each token that is counted: each list is whole."""

MAX_LISTED = 350_000
"""Ids in an answer: 4 MB of JSON."""


@dataclass(slots=True, eq=False)
class Node:
    parent: "Node | None"
    hashes: list[int] = field(default_factory=list)
    tokens: "array[int]" = field(default_factory=lambda: array("i"))
    children: list["Node"] = field(default_factory=list)
    lora_name: str | None = None
    cache_salt: str | None = None
    score: float = 0.0
    scored_s: float = 0.0

    @property
    def block_size(self) -> int:
        return len(self.tokens) // len(self.hashes)

    def at(self, now_s: float) -> float:
        """Its hits, of which older ones count less."""
        return float(self.score * 0.5 ** ((now_s - self.scored_s) / HALF_LIFE_S))

    def hit(self, now_s: float) -> None:
        self.score, self.scored_s = self.at(now_s) + 1, now_s


@dataclass(frozen=True, slots=True)
class Prefix:
    input_ids: list[int]
    lora_name: str | None
    cache_salt: str | None
    hits: float


@dataclass(frozen=True, slots=True)
class Stored:
    """Blocks of equal size that follow `parent`, None at the root."""

    hashes: Sequence[int]
    parent: int | None
    tokens: Sequence[int]
    lora_name: str | None = None
    cache_salt: str | None = None


class Prefixes:
    def __init__(self) -> None:
        self._root = Node(None)
        self._holders: dict[int, Node] = {}
        self._tokens = 0

    def __len__(self) -> int:
        """Blocks that are known."""
        return len(self._holders)

    def clear(self) -> None:
        self._root = Node(None)
        self._holders.clear()
        self._tokens = 0

    def store(self, event: Stored, now_s: float) -> None:
        if not event.hashes or len(event.tokens) % len(event.hashes):
            return
        size = len(event.tokens) // len(event.hashes)
        known = sum(1 for _ in takewhile(self._holders.__contains__, event.hashes))
        hashes = list(event.hashes[known:])
        if not (size and hashes and self._are_new(hashes)):
            return
        try:
            tokens = array("i", event.tokens[known * size :])
        except OverflowError:
            return  # no token ids
        parent_hash = event.hashes[known - 1] if known else event.parent
        parent = self._root if parent_hash is None else self._ending_with(parent_hash)
        if parent is None:
            return  # below what was lost, so that nobody can prefill it
        for node in _path(parent):
            node.hit(now_s)
        node = Node(parent, hashes, tokens)
        node.lora_name, node.cache_salt = event.lora_name, event.cache_salt
        node.hit(now_s)
        parent.children.append(node)
        self._holders.update(dict.fromkeys(hashes, node))
        self._tokens += len(node.tokens)
        if len(self._holders) > MAX_BLOCKS or self._tokens > MAX_TOKENS:
            self._forget_the_coldest(now_s)

    def remove(self, hashes: Sequence[int]) -> None:
        for name in hashes:
            if node := self._holders.get(name):
                self._cut(node, node.hashes.index(name))

    def hottest(self, max_tokens: int, now_s: float) -> list[Prefix]:
        """The best first. Tokens of a shared beginning count once against `max_tokens`."""
        chosen: dict[Node, int] = {}
        left = max_tokens
        for node in sorted(self._nodes(), key=lambda node: -node.at(now_s)):
            missing = list(takewhile(lambda part: part not in chosen, _path(node)))
            for part in reversed(missing):  # from the root on
                taken = min(len(part.tokens), left // part.block_size * part.block_size)
                if taken == 0:
                    break
                chosen[part], left = taken, left - taken
                if taken < len(part.tokens):
                    break
            if left <= 0:
                break
        return self._listed(chosen, min(MAX_LISTED, LISTED_PER_TOKEN * max_tokens), now_s)

    def _listed(self, chosen: dict[Node, int], most: int, now_s: float) -> list[Prefix]:
        inner = {node.parent for node in chosen}
        found = []
        for node in sorted(chosen, key=lambda node: -node.at(now_s)):
            if node in inner:
                continue  # whoever prefills the longer one has this one
            ids = [token for part in reversed(list(_path(node.parent))) for token in part.tokens]
            ids += node.tokens[: chosen[node]]
            most -= len(ids)
            if most < 0:
                break
            found.append(Prefix(ids, node.lora_name, node.cache_salt, round(node.at(now_s), 3)))
        return found

    def _are_new(self, hashes: list[int]) -> bool:
        return len(set(hashes)) == len(hashes) and self._holders.keys().isdisjoint(hashes)

    def _ending_with(self, name: int) -> Node | None:
        """The node whose last block this is; split where it is not the last one."""
        node = self._holders.get(name)
        if node is None:
            return None
        count = node.hashes.index(name) + 1
        if count == len(node.hashes):
            return node
        end = count * node.block_size
        rest = Node(node, node.hashes[count:], node.tokens[end:], node.children)
        rest.lora_name, rest.cache_salt = node.lora_name, node.cache_salt
        rest.score, rest.scored_s = node.score, node.scored_s
        for child in rest.children:
            child.parent = rest
        node.hashes, node.tokens, node.children = node.hashes[:count], node.tokens[:end], [rest]
        self._holders.update(dict.fromkeys(rest.hashes, rest))
        return node

    def _cut(self, node: Node, count: int) -> None:
        """Leave `count` blocks of it, and nothing below."""
        lost = [below for below in self._below(node) if below is not node]
        end = count * node.block_size
        for name in [*node.hashes[count:], *(name for each in lost for name in each.hashes)]:
            self._holders.pop(name, None)
        self._tokens -= len(node.tokens) - end + sum(len(each.tokens) for each in lost)
        node.hashes, node.tokens, node.children = node.hashes[:count], node.tokens[:end], []
        if count == 0 and node.parent:
            node.parent.children.remove(node)

    def _forget_the_coldest(self, now_s: float) -> None:
        """A tenth, so that it is not done for each block."""
        for node in sorted(self._nodes(), key=lambda node: node.at(now_s)):
            if len(self._holders) <= 0.9 * MAX_BLOCKS and self._tokens <= 0.9 * MAX_TOKENS:
                return
            if node.hashes:  # or it was below another one
                self._cut(node, 0)

    def _nodes(self) -> Iterator[Node]:
        return (node for node in self._below(self._root) if node is not self._root)

    @staticmethod
    def _below(top: Node) -> Iterator[Node]:
        waiting = [top]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(node.children)


def _path(node: Node | None) -> Iterator[Node]:
    """From it up to the root, which holds nothing."""
    while node and node.parent:
        yield node
        node = node.parent
