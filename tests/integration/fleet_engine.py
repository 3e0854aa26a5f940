"""The plugin sglang_fleet as the engine image has it: in a folder of its own, found by its metadata."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.integration.agent_engine import PYTHON, ROOT, SETTINGS

PACKAGES = ("images/engine", "images/warming")


def installed(folder: Path) -> Path:
    """By the command of images/engine/Dockerfile."""
    uv = ROOT / ".uv/env/bin/uv"
    command: list[str | Path] = [
        uv,
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--python",
        PYTHON,
        "--target",
        folder,
    ]
    subprocess.run([*command, *PACKAGES], cwd=ROOT, check=True)
    return folder


class Parser:
    """SGLang's start up to the arguments, in one process for all tests: importing it takes 10 s."""

    def __init__(self, plugin: Path) -> None:
        self._process = subprocess.Popen(
            [PYTHON, Path(__file__).with_name("fleet_parser.py")],
            env={**os.environ, **SETTINGS, "PYTHONPATH": str(plugin)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, *arguments: str, version: str = "0.5.23", **environment: str) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        case = {"arguments": arguments, "environment": environment, "version": version}
        print(json.dumps(case), file=self._process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()
