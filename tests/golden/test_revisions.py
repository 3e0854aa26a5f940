"""Revisions are part of names in users' clusters: a spec keeps its revision for ever.

revisions.yaml only grows. A failure here means that an upgrade of the operator would restart the
engines of every user.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from sglang_controllers.revision import new_revision, spec_hash

ENTRIES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "revisions.yaml").read_text()
)
FROZEN_ENTRIES = 23
"""Raise it with each new entry; never lower it."""


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["about"])
def test_a_spec_keeps_its_hash(entry: dict[str, Any]) -> None:
    assert spec_hash(entry["spec"]) == entry["specHash"]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["about"])
def test_a_hash_keeps_its_revision(entry: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sglang_controllers.revision.TEMPLATE_VERSION", entry["templateVersion"])

    assert new_revision(entry["specHash"], ()).name == entry["revision"]


def test_no_entry_is_ever_removed() -> None:
    assert len(ENTRIES) >= FROZEN_ENTRIES


def test_different_pods_have_different_revisions() -> None:
    hashes = [entry["specHash"] for entry in ENTRIES if not entry.get("sameAs")]

    assert len(set(hashes)) == len(hashes)


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.get("sameAs")], ids=lambda e: e["about"])
def test_what_restarts_nothing_has_the_revision_of_its_twin(entry: dict[str, Any]) -> None:
    (twin,) = [other for other in ENTRIES if other["about"] == entry["sameAs"]]

    assert entry["specHash"] == twin["specHash"]
