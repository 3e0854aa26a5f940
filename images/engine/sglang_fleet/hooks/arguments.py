"""SGLang's command line gets the plugin's flags, and what they ask for is patched when they are read.

These two are all that is patched without a flag. `from_cli_args` and not `__post_init__`: ServerArgs is a
msgspec struct, whose `__post_init__` is fixed when the class is made.
"""

import argparse
import os
from pathlib import Path

from sglang.srt.plugins.hook_registry import HookType

from sglang_fleet import flags
from sglang_fleet.hooks import cache_emptied, http_server, server_info
from sglang_fleet.hooks.seams import Hook, apply, check, stop
from sglang_fleet.warming import Warming
from sglang_fleet.warming_flag import problem_with

ADD = "sglang.srt.server_args.ServerArgs.add_cli_args"
READ = "sglang.srt.server_args.ServerArgs.from_cli_args"


def with_flags(_: None, parser: argparse.ArgumentParser) -> None:
    check(READ)
    flags.add_to(parser, os.environ)


def with_features(_server_args: object, _class: type, arguments: argparse.Namespace) -> None:
    check(ADD)
    path = flags.given(arguments).get(flags.CACHE_WARMING_PROMPTS.attribute)
    if path is None:
        return
    if problem := problem_with(path, arguments, os.environ):
        stop(problem)
    warming = Warming(Path(path))
    apply(
        [
            http_server.hook(warming),
            *cache_emptied.hooks(warming.renew),
            server_info.hook(lambda: {"cache_warming_prompts": path, "warming": warming.shown()}),
        ]
    )


HOOKS = (
    Hook("arguments", ADD, HookType.AFTER, with_flags),
    Hook("arguments", READ, HookType.AFTER, with_features),
)
