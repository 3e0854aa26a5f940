import json
from pathlib import Path

import pytest

from sglang_bench.errors import BenchError
from sglang_bench.trace import Request, read, split

REQUESTS = [Request(float(at), (at,)) for at in range(4)]


def written(folder: Path, *lines: str) -> Path:
    path = folder / "trace.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_a_trace_is_read(tmp_path: Path) -> None:
    first = {"timestamp": 0, "input_length": 700, "output_length": 5, "hash_ids": [0, 1]}

    second = {"timestamp": 27000, "hash_ids": [0]}

    assert read(written(tmp_path, json.dumps(first), "", json.dumps(second))) == [
        Request(0.0, (0, 1)),
        Request(27.0, (0,)),
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "is not JSON"),
        ("[1]", "has no hash_ids"),
        ('{"input_length": 3}', "has no hash_ids"),
        ('{"hash_ids": []}', "has no hash_ids"),
        ('{"hash_ids": ["a"]}', "has no hash_ids"),
        ('{"hash_ids": [-1]}', "has no hash_ids"),
        ('{"hash_ids": [1]}', "has no timestamp"),
    ],
)
def test_a_malformed_line_is_told_with_file_and_line(tmp_path: Path, line: str, said: str) -> None:
    path = written(tmp_path, '{"timestamp": 0, "hash_ids": [0]}', line)

    with pytest.raises(BenchError, match=f"{path}:2: {said}"):
        read(path)


def test_a_missing_file_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"--trace: got .*it cannot be read") as told:
        read(tmp_path / "none.jsonl")

    assert "\n" not in str(told.value)


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b"\xff\xfe")

    with pytest.raises(BenchError, match="is not text in UTF-8"):
        read(path)


def test_requests_are_split_into_what_was_and_what_is_measured() -> None:
    assert split(REQUESTS, 0.5, 1) == (REQUESTS[:2], REQUESTS[2:3])


@pytest.mark.parametrize(("at", "count"), [(0.0, 1), (1.0, 1)])
def test_both_parts_need_a_request(at: float, count: int) -> None:
    with pytest.raises(BenchError, match="leaves none before or none after"):
        split(REQUESTS, at, count)
