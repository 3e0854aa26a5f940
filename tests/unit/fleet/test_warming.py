from collections.abc import Iterator
from pathlib import Path

import pytest

from sglang_fleet import warming
from sglang_fleet.warming import Told, Warming, stamp_of, until_idle
from sglang_warming.loop import Failure, Progress, State, file_source

SOURCE = file_source("file", "/etc/prompts.json", "prompts.json", Path("/etc/prompts.json"))


async def test_one_idle_look_between_two_busy_ones_is_no_idling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(warming, "LOOK_S", 0.0)
    looks: Iterator[bool] = iter([True, False, True, True, False])

    await until_idle(lambda: next(looks))

    assert list(looks) == [False]


def test_news_are_told_once() -> None:
    told = Told()
    progress = Progress(State.WARMING, total=3)

    assert told.news(progress) == ["warming: 0 of 3 prompts, 0 failed"]
    assert told.news(progress) == []


def test_a_failure_is_told_by_file_and_entry() -> None:
    told = Told()
    progress = Progress(State.WARMING, total=3)
    told.news(progress)
    progress.fail(Failure(SOURCE, 2, "text: is empty"))
    progress.fail(Failure(SOURCE, None, "the file cannot be read"))

    assert told.news(progress) == [
        "/etc/prompts.json: entry 2: text: is empty",
        "/etc/prompts.json: the file cannot be read",
    ]


def test_a_new_round_is_told_anew() -> None:
    told = Told()
    told.news(Progress(State.WARMED, total=1, warmed=1))

    assert told.news(Progress(State.WARMED, total=1, warmed=1)) == [
        "warmed: 1 of 1 prompts, 0 failed"
    ]


def test_an_edit_changes_the_stamp(tmp_path: Path) -> None:
    path = tmp_path / "prompts.txt"

    before = stamp_of(path)
    path.write_text("a")
    first = stamp_of(path)
    path.write_text("ab")

    assert before is None
    assert first is not None
    assert stamp_of(path) != first


def test_before_the_server_serves_nothing_is_warmed(tmp_path: Path) -> None:
    before = Warming(tmp_path / "prompts.txt")

    before.renew()

    assert before.shown() == {"state": "waiting", "prompts": 0, "warmed": 0, "failed": 0}
