"""Examples and links that a reader copies or follows."""

import re
from pathlib import Path
from typing import Any

import pytest

from sglang_controllers.api import ClusterSpec
from sglang_controllers.arguments import argument_problems
from sglang_warming.files import Problem, entries
from tests.unit.docs.blocks import PAGES, ROOT, yaml_blocks

PROMPTS = ROOT / "examples/warmup_prompts.json"
LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)")


def clusters() -> list[Any]:
    """Every SGLangCluster of examples/ and of the pages, as pytest parameters."""
    return [
        pytest.param(document, id=block.place)
        for block in yaml_blocks()
        for document in block.documents
        if isinstance(document, dict) and document.get("kind") == "SGLangCluster"
    ]


@pytest.mark.parametrize("cluster", clusters())
def test_a_written_cluster_is_one_that_the_api_takes(cluster: dict[str, Any]) -> None:
    spec = ClusterSpec.model_validate(cluster["spec"])

    assert cluster["apiVersion"] == "sglang.dev/v1alpha1"
    assert argument_problems(spec) == ()
    # A field that the API does not know would be missing here.
    assert spec.model_dump(mode="json", by_alias=True, exclude_unset=True) == cluster["spec"]


def test_all_prompts_of_the_example_can_be_warmed() -> None:
    with PROMPTS.open("rb") as stream:
        found = list(entries(PROMPTS.name, stream))

    assert len(found) == 3
    assert [entry for entry in found if isinstance(entry, Problem)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_that_exist(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]

    assert missing == []
