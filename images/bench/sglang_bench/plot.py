"""Measured rows as an SVG file: how the hit ratio grows with the requests, and each request's time to first token.

Written here and not by a library: what replays a trace runs in SGLang's environment, which has none, and matplotlib
would be larger than all else that this package needs.
"""

from collections.abc import Sequence
from html import escape

from sglang_bench.rows import Row, hit_ratio

WIDTH, HEIGHT = 420, 260
LEFT, RIGHT, TOP, BOTTOM = 60, 15, 35, 45
TICKS = 4
COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#b07aa1")

Line = tuple[str, list[float]]


def svg(rows: Sequence[Row], unit: str) -> str:
    panels = [_panel("hit ratio up to each request", unit, _hit_ratios(rows), 1.0)]
    if times := _times_ms(rows):
        longest_ms = max(max(values) for _, values in times)
        panels.append(_panel("time to first token", "ms", times, longest_ms))
    width = WIDTH * len(panels)
    inner = "".join(
        f'<g transform="translate({WIDTH * place} 0)">{panel}</g>'
        for place, panel in enumerate(panels)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT + 20}" '
        f'width="{width}" height="{HEIGHT + 20}" font-family="sans-serif" font-size="11">'
        f'<rect width="100%" height="100%" fill="white"/>{inner}{_legend(rows)}</svg>\n'
    )


def _hit_ratios(rows: Sequence[Row]) -> list[Line]:
    return [
        (row.state, [hit_ratio(row.samples[: end + 1]) for end in range(len(row.samples))])
        for row in rows
    ]


def _times_ms(rows: Sequence[Row]) -> list[Line]:
    lines = [
        (row.state, [1000 * sample.ttft_s for sample in row.samples if sample.ttft_s is not None])
        for row in rows
    ]
    return [line for line in lines if line[1]]


def _panel(title: str, unit: str, lines: Sequence[Line], top: float) -> str:
    bottom = HEIGHT - BOTTOM
    parts = [f'<text x="{LEFT}" y="20" font-size="13">{escape(title)} ({escape(unit)})</text>']
    for tick in range(TICKS + 1):
        y = bottom - (bottom - TOP) * tick / TICKS
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{top * tick / TICKS:.4g}</text>'
        )
    count = max(len(values) for _, values in lines)
    for x, label in ((LEFT, 1), (WIDTH - RIGHT, count)):
        parts.append(f'<text x="{x}" y="{bottom + 16}" text-anchor="middle">{label}</text>')
    parts.append(
        f'<text x="{(LEFT + WIDTH) / 2}" y="{bottom + 30}" text-anchor="middle">request</text>'
    )
    for (_, values), colour in zip(lines, COLOURS, strict=False):
        points = " ".join(
            f"{LEFT + (WIDTH - RIGHT - LEFT) * at / max(1, count - 1):.1f},"
            f"{bottom - (bottom - TOP) * value / (top or 1):.1f}"
            for at, value in enumerate(values)
        )
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        )
    return "".join(parts)


def _legend(rows: Sequence[Row]) -> str:
    return "".join(
        f'<rect x="{LEFT + 95 * place}" y="{HEIGHT - 4}" width="10" height="10" fill="{colour}"/>'
        f'<text x="{LEFT + 95 * place + 15}" y="{HEIGHT + 5}">{escape(row.state)}</text>'
        for place, (row, colour) in enumerate(zip(rows, COLOURS, strict=False))
    )
