from pathlib import Path

import pytest

from sglang_fleet import versions
from sglang_fleet.versions import TESTED, untested

HOOKS = Path(versions.__file__).parent / "hooks"


@pytest.mark.parametrize("hook", TESTED)
def test_a_tested_version_is_taken(hook: str) -> None:
    assert untested(hook, "0.5.23", {}) is None


def test_another_version_is_refused_by_name() -> None:
    problem = untested("http_server", "0.5.24", {})

    assert problem is not None
    assert "http_server" in problem
    assert "is tested with SGLang 0.5.23, and this is 0.5.24" in problem
    assert "SGLANG_FLEET_ALLOW_UNTESTED=1" in problem


def test_another_version_is_taken_by_who_wants_to_try_it() -> None:
    assert untested("http_server", "0.5.24", {"SGLANG_FLEET_ALLOW_UNTESTED": "1"}) is None


def test_the_permission_has_to_be_meant() -> None:
    assert untested("http_server", "0.5.24", {"SGLANG_FLEET_ALLOW_UNTESTED": "0"}) is not None


def test_every_hook_is_in_the_table() -> None:
    modules = {path.stem for path in HOOKS.glob("*.py")} - {"__init__", "seams"}

    assert modules == set(TESTED)
