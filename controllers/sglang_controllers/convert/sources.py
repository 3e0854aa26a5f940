"""Paths and hub ids of a launch command as sources that a pod can mount."""

import re
from collections.abc import Callable
from pathlib import PurePosixPath

PLACEHOLDER_CLAIM = "models"

HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")


class NoSourceError(ValueError):
    """Why a path cannot be mounted, in a sentence without its field."""


def source_of(path: str, field: str, warn: Callable[[str], None]) -> str:
    """A source for what a command calls `path`. `warn` is told what the user has to see to."""
    if path.startswith("/"):
        warn(
            f"{field}: expects {path} inside the engine's image; if it is a volume, write "
            "pvc://CLAIM/PATH or oci://IMAGE"
        )
        return f"image:///{path.strip('/')}"
    if not HUB_ID.fullmatch(path):
        raise NoSourceError(
            f'got "{path}"; it is neither an absolute path nor a hub id; write the absolute path '
            "of a folder, or convert with a hub id and edit the source"
        )
    warn(
        f"{field}: engines download nothing; fill the folder {path} of the claim "
        f'"{PLACEHOLDER_CLAIM}" with the hub\'s {path} (hf download {path} --local-dir FOLDER), or '
        "write another pvc://CLAIM/PATH or oci://IMAGE"
    )
    return f"pvc://{PLACEHOLDER_CLAIM}/{path}"


def last_part(path: str) -> str:
    return PurePosixPath(path).name
