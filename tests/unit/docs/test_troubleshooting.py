"""docs/troubleshooting.md is where the message of a condition sends its reader."""

import re
from pathlib import Path

import pytest

from sglang_controllers.reasons import NEEDS_THE_USER, Reason

TEXT = (Path(__file__).parents[3] / "docs/troubleshooting.md").read_text()
ENTRIES = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", TEXT, re.MULTILINE | re.DOTALL))


def test_every_reason_has_one_entry_and_no_entry_lacks_its_reason() -> None:
    assert sorted(ENTRIES) == sorted(Reason)
    assert len(re.findall(r"^### ", TEXT, re.MULTILINE)) == len(ENTRIES)


@pytest.mark.parametrize("reason", sorted(NEEDS_THE_USER))
def test_a_reason_that_needs_the_user_says_what_to_do(reason: str) -> None:
    assert "**What to do.**" in ENTRIES[reason]


def test_the_overview_lists_every_reason() -> None:
    overview = TEXT.split("\n## ")[1]

    assert set(re.findall(r"^\| \[(\w+)\]", overview, re.MULTILINE)) == set(Reason)
