import json
import xml.etree.ElementTree as ET

import pytest

from sglang_bench.plot import svg
from sglang_bench.report import as_json, table
from sglang_bench.rows import Row, Sample, hit_ratio

COLD = Row("cold", (Sample(100, 0, 0.3), Sample(100, 50, 0.1)))
WARMED = Row("warmed", (Sample(100, 90, 0.1), Sample(100, 95, 0.1)))
BLOCKS = Row("cold", (Sample(10, 0), Sample(10, 5)))
SVG = "{http://www.w3.org/2000/svg}"


def test_a_hit_ratio_weighs_long_prompts_more() -> None:
    assert hit_ratio([Sample(300, 300), Sample(100, 0)]) == 0.75


def test_nothing_hits_nothing() -> None:
    assert hit_ratio([]) == 0.0


@pytest.mark.parametrize(("share", "expected"), [(0.5, 0.02), (0.75, 0.03), (0.99, 0.04)])
def test_a_percentile_is_a_time_that_was_measured(share: float, expected: float) -> None:
    row = Row("cold", tuple(Sample(1, 0, at / 100) for at in (4, 1, 3, 2)))

    assert row.ttft_s(share) == expected


def test_the_table_shows_a_row_for_each_state() -> None:
    assert table([COLD, WARMED]) == (
        "cache   requests  hit ratio of the first 10  of all  TTFT p50  TTFT p99\n"
        "cold           2                      0.250   0.250  100.0 ms  300.0 ms\n"
        "warmed         2                      0.925   0.925  100.0 ms  100.0 ms"
    )


def test_without_a_server_no_time_is_told() -> None:
    assert table([BLOCKS]).splitlines()[1].endswith("0.250         -         -")


def test_json_has_what_was_measured_and_how() -> None:
    told = json.loads(as_json([COLD], {"seed": 1}, ["a note"]))

    assert told["settings"] == {"seed": 1}
    assert told["notes"] == ["a note"]
    assert told["rows"][0]["state"] == "cold"
    assert told["rows"][0]["hit_ratio"] == 0.25
    assert told["rows"][0]["samples"][1] == {"prompt": 100, "cached": 50, "ttft_s": 0.1}


def test_the_plot_has_a_line_for_each_state_and_measure() -> None:
    drawn = ET.fromstring(svg([COLD, WARMED], "tokens"))

    assert len(drawn.findall(f".//{SVG}polyline")) == 4


def test_without_a_server_the_plot_has_hit_ratios_only() -> None:
    drawn = ET.fromstring(svg([BLOCKS], "blocks"))

    assert [line.get("points") for line in drawn.findall(f".//{SVG}polyline")] == [
        "60.0,215.0 405.0,170.0"
    ]
