"""Measured rows as a table for people and as JSON for programs."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sglang_bench.rows import FIRST, Row, hit_ratio

HEADER = ("cache", "requests", f"hit ratio of the first {FIRST}", "of all", "TTFT p50", "TTFT p99")


def table(rows: Sequence[Row]) -> str:
    lines = [HEADER, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def as_json(rows: Sequence[Row], settings: dict[str, Any], notes: Sequence[str]) -> str:
    """`settings`: what it takes to measure the same again."""
    told = {"settings": settings, "notes": list(notes), "rows": [_described(row) for row in rows]}
    return json.dumps(told, indent=1, default=str) + "\n"


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.state,
        str(len(row.samples)),
        f"{hit_ratio(row.samples[:FIRST]):.3f}",
        f"{hit_ratio(row.samples):.3f}",
        _milliseconds(row.ttft_s(0.5)),
        _milliseconds(row.ttft_s(0.99)),
    )


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1000 * seconds:.1f} ms"


def _described(row: Row) -> dict[str, Any]:
    return {
        "state": row.state,
        "requests": len(row.samples),
        "hit_ratio_first_10": round(hit_ratio(row.samples[:FIRST]), 6),
        "hit_ratio": round(hit_ratio(row.samples), 6),
        "ttft_p50_s": row.ttft_s(0.5),
        "ttft_p99_s": row.ttft_s(0.99),
        "samples": [asdict(sample) for sample in row.samples],
    }
