"""Traces in Mooncake's format: one JSON object a line.

`timestamp` is in milliseconds; `hash_ids` name a prompt's blocks of 512 tokens, each id for a block and all before it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sglang_bench.errors import BenchError

BLOCK_TOKENS = 512

Blocks = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Request:
    at_s: float
    blocks: Blocks


def read(path: Path) -> list[Request]:
    """In the order of the file. BenchError names file and line."""
    try:
        with path.open(encoding="utf-8") as lines:
            return [
                _request(line, f"{path}:{number}")
                for number, line in enumerate(lines, 1)
                if line.strip()
            ]
    except OSError as error:
        raise BenchError(
            f'--trace: got "{path}"; it cannot be read ({error.strerror}); name a file in '
            "Mooncake's format"
        ) from error
    except UnicodeDecodeError as error:
        raise BenchError(f"{path}: is not text in UTF-8; name a file of JSON lines") from error


def _request(line: str, place: str) -> Request:
    try:
        request: Any = json.loads(line)
    except ValueError as error:
        raise BenchError(f"{place}: is not JSON ({error}); each line is one JSON object") from error
    ids = request.get("hash_ids") if isinstance(request, dict) else None
    if not (isinstance(ids, list) and ids and all(_is_id(value) for value in ids)):
        raise BenchError(f"{place}: has no hash_ids; it is a list of whole numbers, one a block")
    at_ms = request.get("timestamp")
    if type(at_ms) not in (int, float):
        raise BenchError(f"{place}: has no timestamp; it is a number of milliseconds")
    return Request(at_ms / 1000, tuple(ids))


def _is_id(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**63


def split(
    requests: Sequence[Request], at: float, count: int
) -> tuple[list[Request], list[Request]]:
    """What was served before, and the `count` requests that are measured."""
    first = int(len(requests) * at)
    measured = list(requests[first : first + count])
    if not (first and measured):
        raise BenchError(
            f"--trace: has {len(requests)} requests; --at {at:g} leaves none before or none after; "
            "choose another --at or a longer trace"
        )
    return list(requests[:first]), measured
