#!/usr/bin/env python3
"""Write a docker-archive of images made from folders: `mkimage.py OUT.tar < SPECS.json`.

SPECS is a list of {"names": ["repo:tag", ...], "layers": [DIR or TAR, ...], "config": {"Entrypoint": [...]}}.
A layer that several images name is stored once. `ctr images import`, `docker load` and `kind load
image-archive` all read the result, and it depends on nothing but the contents of its inputs.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

EPOCH = "1970-01-01T00:00:00Z"
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def layer_file(source: Path, scratch: Path) -> Path:
    """The layer as a tar file: itself, or a folder packed in a fixed order."""
    if not source.is_dir():
        return source
    packed = scratch / f"{len(list(scratch.iterdir()))}.tar"
    with tarfile.open(packed, "w", format=tarfile.PAX_FORMAT) as tar:
        for child in sorted(source.iterdir()):
            tar.add(child, child.name, filter=anonymous)
    return packed


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def image_config(spec: dict[str, Any], diff_ids: list[str]) -> bytes:
    config = {
        "architecture": "amd64",
        "os": "linux",
        "created": EPOCH,
        "config": {"Env": [PATH], **spec.get("config", {})},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in diff_ids]},
        "history": [{"created": EPOCH, "created_by": "mkimage.py"} for _ in diff_ids],
    }
    return json.dumps(config).encode()


def write_archive(out: Path, specs: list[dict[str, Any]], scratch: Path) -> None:
    files: dict[str, Path] = {}  # layer source -> tar file
    digests: dict[str, str] = {}  # layer source -> sha256
    for source in sorted({layer for spec in specs for layer in spec["layers"]}):
        files[source] = layer_file(Path(source), scratch)
        digests[source] = sha256(files[source])
    manifest = []
    blobs: dict[str, bytes] = {}
    for spec in specs:
        config = image_config(spec, [digests[layer] for layer in spec["layers"]])
        name = f"{hashlib.sha256(config).hexdigest()}.json"
        blobs[name] = config
        layers = [f"{digests[layer]}.tar" for layer in spec["layers"]]
        manifest.append({"Config": name, "RepoTags": spec["names"], "Layers": layers})
    blobs["manifest.json"] = json.dumps(manifest).encode()
    with tarfile.open(out, "w") as tar:
        for name, data in blobs.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
        for digest, source in sorted((digest, source) for source, digest in digests.items()):
            tar.add(files[source], f"{digest}.tar", filter=anonymous)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: mkimage.py OUT.tar < SPECS.json")
    out = Path(sys.argv[1])
    partial = out.with_suffix(".partial")
    with tempfile.TemporaryDirectory(dir=out.parent) as scratch:
        write_archive(partial, json.load(sys.stdin), Path(scratch))
    partial.replace(out)


if __name__ == "__main__":
    main()
