"""The projected volume of prompts, changed as kubelet changes it."""

import json
import shutil
from pathlib import Path


class ProjectedVolume:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._generation = 0

    def write(self, files: dict[str, str], content_hash: str = "abc") -> None:
        """One slot with these keys of the ConfigMap `prompts`. All of it changes at once."""
        self._generation += 1
        new = self.folder / f"..2026_{self._generation}"
        new.mkdir()
        sources = [
            {"configMap": "prompts", "key": key, "file": f"s0-{number}"}
            for number, key in enumerate(files)
        ]
        index = json.dumps({"sources": sources, "hash": content_hash})
        written = {"index-0.json": index}
        written |= {f"s0-{number}": text for number, text in enumerate(files.values())}
        for name, text in written.items():
            (new / name).write_text(text)
        data = self.folder / "..data"
        old = data.resolve() if data.is_symlink() else None
        turning = self.folder / "..data_tmp"
        turning.symlink_to(new.name)
        turning.rename(data)
        for name in written:
            link = self.folder / name
            if not link.is_symlink():
                link.symlink_to(f"..data/{name}")
        if old:
            shutil.rmtree(old)
