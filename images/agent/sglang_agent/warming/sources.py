"""Prompts as they lie in the pod: files of a projected volume, and files of claims."""

import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sglang_agent.warming.settings import Claim
from sglang_warming.loop import Source, file_source

LOG = logging.getLogger("sglang_agent")

MAX_FILES = 10_000
"""Of a claim's folder."""


@dataclass(frozen=True, slots=True)
class Volume:
    """What the operator has put into the pod. `hash` empty: nothing."""

    sources: tuple[Source, ...] = ()
    hash: str = ""


def volume(folder: Path) -> Volume:
    """The sources of all slots, in the order of their names."""
    # One generation of it: kubelet puts the next one into another folder and turns the link.
    real = Path(os.path.realpath(folder / "..data"))
    if not real.is_dir():
        real = folder
    sources: list[Source] = []
    hashes = []
    for path in sorted(real.glob("index-*.json")):
        try:
            index = json.loads(path.read_bytes())
            sources += [_source(real, each) for each in index["sources"]]
            hashes.append(str(index["hash"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            LOG.warning("a list of prompts is not understood", extra={"reason": repr(error)})
    return Volume(tuple(sources), "-".join(hashes))


def _source(folder: Path, entry: dict[str, Any]) -> Source:
    key = str(entry["key"])
    # The key says the form; the file is named by the operator.
    return file_source("configMap", str(entry["configMap"]), key, folder / str(entry["file"]))


def volume_stamp(folder: Path) -> object:
    """Another value after each change."""
    try:
        return (folder / "..data").readlink()
    except OSError:
        return tuple(_stamp(path) for path in sorted(folder.glob("*")))


def claimed(claims: tuple[Claim, ...]) -> tuple[tuple[Source, ...], object]:
    """The files of the claims, and a value that is another one after each change."""
    files = [(claim, path) for claim in claims for path in _files(claim.place)]
    sources = tuple(
        file_source("claim", claim.name, str(path.relative_to(claim.mount)), path)
        for claim, path in files
    )
    return sources, tuple(_stamp(path) for _, path in files)


def _files(place: Path) -> list[Path]:
    try:
        with os.scandir(place) as found:
            names = [entry.name for entry in found if entry.is_file() and entry.name[0] != "."]
    except NotADirectoryError:
        return [place]
    except OSError:
        return [place]  # reading it will tell why
    return [place / name for name in sorted(names)[:MAX_FILES]]


def _stamp(path: Path) -> tuple[str, int, int]:
    try:
        stat = path.stat()
    except OSError:
        return str(path), 0, 0
    return str(path), stat.st_mtime_ns, stat.st_size
