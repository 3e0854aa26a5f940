import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sglang_bench import cli
from sglang_bench.progress import Progress

TRACE = "".join(json.dumps({"timestamp": at, "hash_ids": [0, at + 1]}) + "\n" for at in range(10))


def test_a_trace_needs_sglang_and_says_so_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text(TRACE)

    assert cli.main(["warming", "--trace", str(trace)]) == 2

    said = capsys.readouterr().err
    assert said.startswith("error: --trace: needs SGLang's own classes")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--url", "http://127.0.0.1:1"], "--prompts: is missing"),
        (["--trace", "t", "--json", "/nowhere/a.json"], "there is no folder /nowhere"),
        (["--trace", "/nowhere/t.jsonl"], "it cannot be read"),
        (
            ["--url", "http://a", "--prompts", "p", "--peer-url", "http://b"],
            "--peer-agent-url: is missing",
        ),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_measured(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["warming", *arguments]) == 2

    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--url", "127.0.0.1:30000"],
        ["--trace", "t", "--blocks", "0"],
        ["--trace", "t", "--at", "1"],
        ["--trace", "t", "--url", "http://a"],
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["warming", *arguments])

    assert ended.value.code == 2
    assert "error: " in capsys.readouterr().err


def test_a_server_that_is_not_there_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("a prompt")

    assert cli.main(["warming", "--url", "http://127.0.0.1:1", "--prompts", str(prompts)]) == 2

    said = capsys.readouterr().err
    assert said.startswith("error: http://127.0.0.1:1: ")
    assert said.count("\n") == 1


def test_an_interruption_leaves_no_file(tmp_path: Path) -> None:
    # A pipe that nobody writes to holds the command where it reads its trace.
    trace, out = tmp_path / "trace.jsonl", tmp_path / "out"
    os.mkfifo(trace)
    out.mkdir()
    command: list[str | Path] = [sys.executable, "-m", "sglang_bench", "warming"]
    command += ["--trace", trace, "--json", out / "a.json", "--plot", out / "a.svg"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    with trace.open("w"):  # returns when the command has opened it
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)

    assert (process.returncode, said) == (130, "interrupted; nothing is written\n")
    assert list(out.iterdir()) == []


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    cli.written(tmp_path / "a.json", "{}")

    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_progress_is_a_line_at_every_quarter_where_nobody_watches() -> None:
    out = io.StringIO()
    progress = Progress(out)

    for done in range(1, 101):
        progress.step("cold", done, 100)

    assert out.getvalue() == "".join(f"cold: {done} of 100\n" for done in (25, 50, 75, 100))
