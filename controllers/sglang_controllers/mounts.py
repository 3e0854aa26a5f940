"""Folders of files that an engine reads, and the volumes that bring them."""

from collections.abc import Iterator
from dataclasses import dataclass

from sglang_controllers import names
from sglang_controllers.api import ClusterSpec
from sglang_controllers.api.source import HubModel, ImagePath, Source, parse_source


@dataclass(frozen=True, slots=True)
class Files:
    """`volume` and `mount` say how they get into the pod; what the image holds needs neither."""

    source: Source
    volume: str
    mount: str

    @property
    def folder(self) -> str:
        """Where the engine finds them."""
        match self.source:
            case ImagePath(path):
                return path
            case HubModel(repository):
                # SGLang chooses some templates and defaults by what a model's path is called.
                return f"{names.HUB_LINKS}{self.mount}/{repository}"
            case _:
                return self.mount


def model_files(spec: ClusterSpec) -> Files:
    return Files(parse_source(spec.model.source), "model", names.MODEL_MOUNT)


def draft_files(spec: ClusterSpec) -> Files | None:
    """The draft model's files; None when nothing drafts with a model of its own."""
    members = (spec.speculative.eagle, spec.speculative.nextn, spec.speculative.standalone)
    for member in members:
        if member is not None and member.draft_model is not None:
            source = parse_source(member.draft_model.source)
            return Files(source, "draft-model", names.DRAFT_MOUNT)
    return None


def adapter_files(spec: ClusterSpec) -> dict[str, Files]:
    """Each LoRA adapter's files by its name."""
    return {
        adapter.name: Files(
            parse_source(adapter.source), f"lora-{index}", f"{names.LORA_MOUNT}/{adapter.name}"
        )
        for index, adapter in enumerate(spec.model.lora_adapters)
    }


def all_files(spec: ClusterSpec) -> Iterator[Files]:
    yield model_files(spec)
    draft = draft_files(spec)
    if draft is not None:
        yield draft
    yield from adapter_files(spec).values()


def downloads(spec: ClusterSpec) -> list[tuple[HubModel, str]]:
    """What a hub is asked for, each with the path where the engine looks for it."""
    return [(f.source, f.folder) for f in all_files(spec) if isinstance(f.source, HubModel)]
