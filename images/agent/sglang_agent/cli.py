"""The command `sglang-agent`. It takes no arguments: a pod sets its environment."""

import asyncio
import os
import sys

from sglang_agent import logs
from sglang_agent.run import run
from sglang_agent.settings import SettingsError, settings_from


def main() -> int:
    try:
        settings = settings_from(os.environ)
    except SettingsError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 2
    logs.set_up()
    try:
        asyncio.run(run(settings))
    except OSError as error:
        print(f"error: cannot listen: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0
