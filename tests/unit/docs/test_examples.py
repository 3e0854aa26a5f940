"""Examples and links that a reader copies or follows."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from sglang_controllers.api import ClusterSpec
from sglang_controllers.arguments import argument_problems

ROOT = Path(__file__).parents[3]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)")
YAML_BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)


def clusters() -> list[Any]:
    """Every SGLangCluster of examples/ and of the pages, as pytest parameters."""
    texts = {str(file.relative_to(ROOT)): file.read_text() for file in ROOT.glob("examples/*.yaml")}
    for page in PAGES:
        blocks = YAML_BLOCK.findall(page.read_text())
        texts |= {f"{page.relative_to(ROOT)}-{i}": block for i, block in enumerate(blocks)}
    return [
        pytest.param(document, id=name)
        for name, text in sorted(texts.items())
        for document in yaml.safe_load_all(text)
        if isinstance(document, dict) and document.get("kind") == "SGLangCluster"
    ]


@pytest.mark.parametrize("cluster", clusters())
def test_a_written_cluster_is_one_that_the_api_takes(cluster: dict[str, Any]) -> None:
    spec = ClusterSpec.model_validate(cluster["spec"])

    assert cluster["apiVersion"] == "sglang.dev/v1alpha1"
    assert argument_problems(spec) == ()
    # A field that the API does not know would be missing here.
    assert spec.model_dump(mode="json", by_alias=True, exclude_unset=True) == cluster["spec"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_that_exist(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]

    assert missing == []
