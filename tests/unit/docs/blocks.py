"""The YAML that readers copy: fenced blocks of the pages, files of examples/."""

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])

FENCE = re.compile(
    r"^(?P<indent>[ ]*)```(?P<language>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)
MARK = re.compile(r"<!--\s*(?P<mark>[^>]*?)\s*-->\s*\Z")


class Holds(StrEnum):
    """What a block holds. All but whole objects are said in an HTML comment right above it."""

    OBJECTS = "objects"
    PART = "part of a SGLangCluster"
    VALUES = "values of the sglang-operator chart"
    ARGO_CD_VALUES = "values of the argo-cd chart"


@dataclass(frozen=True, slots=True)
class Block:
    """`place` is for people: the file, and for a page the line."""

    place: str
    language: str
    mark: str
    text: str

    @property
    def documents(self) -> list[Any]:
        return [document for document in yaml.safe_load_all(self.text) if document is not None]

    def holds(self) -> Holds:
        """Raises ValueError where that cannot be told: nothing is left out in silence."""
        if self.mark:
            return Holds(self.mark)
        if all(is_object(document) for document in self.documents) and self.documents:
            return Holds.OBJECTS
        raise ValueError(
            f"{self.place}: a YAML block without apiVersion, kind and name; write above it one of "
            + ", ".join(f"<!-- {held} -->" for held in Holds if held is not Holds.OBJECTS)
        )


def is_object(document: Any) -> bool:
    return (
        isinstance(document, dict)
        and {"apiVersion", "kind", "metadata"} <= document.keys()
        and "name" in document["metadata"]
    )


def fenced(text: str, place: str) -> list[Block]:
    """Every fenced block of a page, also the indented ones."""
    found = []
    for match in FENCE.finditer(text):
        before = text[: match.start()]
        marked = MARK.search(before)
        indent = match["indent"]
        lines = (line.removeprefix(indent) for line in match["text"].splitlines(keepends=True))
        line = before.count("\n") + 1
        mark = marked["mark"] if marked else ""
        found.append(Block(f"{place}:{line}", match["language"].strip(), mark, "".join(lines)))
    return found


def is_yaml(block: Block) -> bool:
    return block.language.split(" ")[0].lower() in ("yaml", "yml")


def page_blocks() -> list[Block]:
    """Every fenced block, of whichever language, of every page."""
    return [b for page in PAGES for b in fenced(page.read_text(), str(page.relative_to(ROOT)))]


def example_files() -> list[Block]:
    files = sorted(file for file in ROOT.glob("examples/**/*") if file.suffix in (".yaml", ".yml"))
    return [Block(str(file.relative_to(ROOT)), "yaml", "", file.read_text()) for file in files]


def yaml_blocks() -> list[Block]:
    return [*filter(is_yaml, page_blocks()), *example_files()]
