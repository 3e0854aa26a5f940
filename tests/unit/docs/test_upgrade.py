"""docs/upgrade.md tells what restarts engines: as the code has it."""

import re
from pathlib import Path

from sglang_controllers.revision import NOT_ABOUT_PODS

TEXT = (Path(__file__).parents[3] / "docs/upgrade.md").read_text()


def test_the_fields_that_restart_nothing_are_those_outside_the_revision() -> None:
    table = TEXT.split("\n## ")[1]
    rows = re.findall(r"^\| (.*?) \| (.*?) \|$", table, re.MULTILINE)
    told = {
        field
        for change, engines in rows
        for field in re.findall(r"`([\w.]+)`", change)
        if "keep running" in engines
    }

    assert told - {"metadata"} == {".".join(path) for path in NOT_ABOUT_PODS}
