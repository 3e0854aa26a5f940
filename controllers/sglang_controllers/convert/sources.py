"""Paths and hub ids of a launch command as sources that a pod can mount."""

import re
from collections.abc import Callable
from pathlib import PurePosixPath

HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")


class NoSourceError(ValueError):
    """Why a path cannot be mounted, in a sentence without its field."""


def is_hub_id(path: str) -> bool:
    return HUB_ID.fullmatch(path) is not None


def source_of(path: str, field: str, warn: Callable[[str], None]) -> str:
    """A source for what a command calls `path`. `warn` is told what the user has to see to.

    A hub id may have `@` and a commit, tag or branch behind it.
    """
    if path.startswith("/"):
        warn(
            f"{field}: expects {path} inside the engine's image; if it is a volume, write "
            "pvc://CLAIM/PATH or oci://IMAGE"
        )
        return f"image:///{path.strip('/')}"
    model, at, revision = path.partition("@")
    if not is_hub_id(model):
        raise NoSourceError(
            f'got "{path}"; it is neither an absolute path nor a hub id; write the absolute path '
            "of a folder, or convert with a hub id and edit the source"
        )
    warn(
        f"{field}: every new pod downloads {model}; to download it once, set spec.model.cache.pvc, "
        "or write pvc://CLAIM/PATH where the files are already"
    )
    if not re.fullmatch(r"[0-9a-f]{40}", revision):
        warn(
            f"{field}: {revision or 'main'} may change between two pods; write a commit of the hub "
            "after @ to run the same everywhere"
        )
    return f"hf://{model}{at}{revision}"


def last_part(path: str) -> str:
    return PurePosixPath(path).name
