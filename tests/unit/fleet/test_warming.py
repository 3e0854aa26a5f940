from collections.abc import Iterator
from pathlib import Path

import pytest

from sglang_fleet import warming
from sglang_fleet.warming import Warming, stamp_of, until_idle


async def test_one_idle_look_between_two_busy_ones_is_no_idling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(warming, "LOOK_S", 0.0)
    looks: Iterator[bool] = iter([True, False, True, True, False])

    await until_idle(lambda: next(looks))

    assert list(looks) == [False]


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
