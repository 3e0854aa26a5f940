"""ConfigMaps with prompts, and what is made of them: each builder shows what a test is about."""

from typing import Any

from sglang_controllers.api.warming import PromptSource
from sglang_controllers.manifest import Manifest
from sglang_controllers.resources.subject import Subject
from sglang_controllers.warming.slots import Slots, slots_of
from sglang_controllers.warming.sources import Source, source_of

CHAT = Subject("team", "chat", "uid-1")


def named(name: str = "prompts", key: str | None = None) -> dict[str, Any]:
    return {"configMap": {"name": name} | ({"key": key} if key else {})}


def a_source(binary: dict[str, str] | None = None, **data: str) -> Source:
    return source_of({"data": data, "binaryData": binary or {}})


def slots(*prompts: dict[str, Any], **sources: Source | None) -> Slots | None:
    return slots_of(CHAT, [PromptSource.model_validate(each) for each in prompts], sources)


def known_slots(*prompts: dict[str, Any], **sources: Source | None) -> Slots:
    found = slots(*prompts, **sources)
    assert found is not None
    return found


def held(manifest: Manifest) -> dict[str, str]:
    """A slot's files, without its index."""
    return {k: v for k, v in manifest["data"].items() if not k.startswith("index")}
