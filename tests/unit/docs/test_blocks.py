"""No YAML that readers copy escapes the tests, which apply every block to a real API server."""

import re
from pathlib import Path

import pytest

from tests.unit.chart.argocd import HEALTH, KEY
from tests.unit.docs.blocks import (
    PAGES,
    ROOT,
    Block,
    Holds,
    example_files,
    fenced,
    is_yaml,
    page_blocks,
    yaml_blocks,
)


@pytest.mark.parametrize("block", yaml_blocks(), ids=lambda block: block.place)
def test_what_a_block_holds_is_known(block: Block) -> None:
    assert block.holds() in Holds


@pytest.mark.parametrize("block", page_blocks(), ids=lambda block: block.place)
def test_no_manifest_hides_in_a_block_of_another_language(block: Block) -> None:
    assert is_yaml(block) or not re.search(r"^\s*apiVersion:", block.text, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_fence_of_a_page_is_understood(page: Path) -> None:
    text = page.read_text()

    # Two lines each; one that is not closed, or fenced by ~~~, would be missed.
    assert len(re.findall(r"^\s*(?:>\s*)*(?:```|~~~)", text, re.MULTILINE)) == 2 * len(
        fenced(text, page.name)
    )


def test_examples_are_yaml_files_pages_and_prompts_alone() -> None:
    others = [
        file
        for file in ROOT.glob("examples/**/*")
        if file.is_file() and file.suffix not in (".yaml", ".md")
    ]

    assert others == [ROOT / "examples/warmup_prompts.json"]
    assert len(example_files()) > 2


def test_a_fragment_without_a_mark_is_refused() -> None:
    [block] = fenced("Look:\n\n```yaml\nreplicas: 2\n```\n", "page")

    with pytest.raises(ValueError, match="without apiVersion"):
        block.holds()


def test_a_mark_that_nothing_checks_is_refused() -> None:
    [block] = fenced("<!-- something -->\n```yaml\nreplicas: 2\n```\n", "page")

    with pytest.raises(ValueError, match="something"):
        block.holds()


def test_an_indented_block_is_found_without_its_indent() -> None:
    [block] = fenced("1. Write\n\n   ```yaml\n   a:\n     b: 1\n   ```\n", "page")

    assert block.documents == [{"a": {"b": 1}}]


@pytest.mark.parametrize(
    "block",
    [block for block in yaml_blocks() if KEY in block.text],
    ids=lambda block: block.place,
)
def test_a_written_health_check_is_the_chart_s(block: Block) -> None:
    [document] = block.documents
    data = document["data"] if block.holds() is Holds.OBJECTS else document["configs"]["cm"]

    assert data == {KEY: HEALTH.read_text()}


def test_the_health_check_is_written_as_an_object_and_as_helm_values() -> None:
    held = {block.holds() for block in yaml_blocks() if KEY in block.text}

    assert held == {Holds.OBJECTS, Holds.ARGO_CD_VALUES}
