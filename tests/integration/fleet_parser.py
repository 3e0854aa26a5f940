"""What SGLang's start makes of arguments with the plugin, one case a line. Runs in the engine environment.

Each line of the input is a JSON object of `arguments`, `environment` and `version`, which is what SGLang says of
itself. The answer has the targets that are `patched`, the `status` that the server would end with, or 0, and what it
has `said` on standard error.
"""

import importlib
import json
import os
import sys
import tempfile
from typing import Any

answers = os.dup(1)
os.dup2(2, 1)  # SGLang prints

# Imported once: each case is a fork.
importlib.import_module("sglang.srt.entrypoints.http_server")
arguments_module = importlib.import_module("sglang.srt.server_args")
plugins = importlib.import_module("sglang.srt.plugins")
version_module = importlib.import_module("sglang.version")
registry: Any = importlib.import_module("sglang.srt.plugins.hook_registry").HookRegistry


def start(case: dict[str, Any]) -> int:
    os.environ.update(case["environment"])
    vars(version_module)["__version__"] = case["version"]
    try:
        plugins.load_plugins()
        arguments_module.prepare_server_args(case["arguments"])
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def answer(case: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as patched:
        if (child := os.fork()) == 0:
            os.dup2(said.fileno(), 2)
            status = start(case)
            patched.write(json.dumps(sorted(registry._patched)))
            patched.flush()
            os._exit(status)
        _, status = os.waitpid(child, 0)
        said.seek(0)
        patched.seek(0)
        return {
            "patched": json.load(patched),
            "status": os.waitstatus_to_exitcode(status),
            "said": said.read(),
        }


if __name__ == "__main__":
    for line in sys.stdin:
        os.write(answers, json.dumps(answer(json.loads(line))).encode() + b"\n")
