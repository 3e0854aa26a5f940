"""Cold, warmed and peer-warmed without a server: a trace on SGLang's own tree."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sglang_agent.warming.prefixes import Prefixes
from sglang_bench import trace
from sglang_bench.prefixes import most_shared
from sglang_bench.progress import Progress
from sglang_bench.rows import Row, Sample
from sglang_bench.trace import Request
from sglang_warming.ledger import SHARE


@dataclass(frozen=True, slots=True)
class Options:
    """`at`: the part of the trace that was served before the measured requests.

    `warm_blocks`: what may be warmed; None is what warming takes of a cache at most.
    """

    trace: Path
    blocks: int
    count: int
    at: float
    warm_blocks: int | None = None


def measured(options: Options, progress: Progress) -> list[Row]:
    history, requests = trace.split(trace.read(options.trace), options.at, options.count)
    tree: Any = importlib.import_module("sglang_bench.tree").Tree
    limit = int(SHARE * options.blocks)
    room = limit if options.warm_blocks is None else min(options.warm_blocks, limit)

    peer, known = tree(options.blocks), Prefixes()
    for done, request in enumerate(history, 1):
        peer.serve(request.blocks)
        peer.tell(known, request.at_s)
        progress.step("what the peer has served before", done, len(history))
    hottest = [prefix.input_ids for prefix in known.hottest(room, history[-1].at_s)]
    shared = most_shared([request.blocks for request in history], room)

    def row(state: str, prefixes: Sequence[Sequence[int]]) -> Row:
        fresh = tree(options.blocks)
        for prefix in prefixes:
            fresh.serve(prefix)
        return _row(state, fresh, requests)

    return [
        row("cold", []),
        row("warmed", shared),
        row("peer-warmed", hottest),
        _row("the peer", peer, requests),
    ]


def _row(state: str, cache: Any, requests: Sequence[Request]) -> Row:
    samples = [Sample(len(each.blocks), cache.serve(each.blocks)) for each in requests]
    cache.check()
    return Row(state, tuple(samples))
