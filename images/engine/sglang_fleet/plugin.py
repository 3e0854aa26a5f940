"""The entry point that SGLang loads in each of its processes."""

from sglang_fleet.hooks import arguments
from sglang_fleet.hooks.seams import declare


def register() -> None:
    for hook in arguments.HOOKS:
        declare(hook)
