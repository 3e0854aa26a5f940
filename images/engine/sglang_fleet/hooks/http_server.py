"""The warming starts with the HTTP server, in the main process: it sends its prompts over HTTP.

All ways to start SGLang's HTTP server go through this function, Ray's as well. Nodes of a higher rank do not.
"""

from functools import partial
from typing import Any

from sglang.srt.arg_groups.serving_hook import ssl_verify_of
from sglang.srt.plugins.hook_registry import HookType

from sglang_fleet.hooks.seams import Hook
from sglang_fleet.warming import Server, Warming

TARGET = "sglang.srt.entrypoints.http_server._setup_and_run_http_server"


def hook(warming: Warming) -> Hook:
    return Hook("http_server", TARGET, HookType.BEFORE, partial(start, warming))


def start(warming: Warming, server_args: Any, tokenizer_manager: Any, *_: Any, **__: Any) -> None:
    def idle() -> bool:
        # Not ready: starting, paused, or about to stop, which would wait for the prompts.
        return bool(tokenizer_manager.is_ready()) and not tokenizer_manager.rid_to_state

    warming.start(Server(server_args.url(), idle, server_args.api_key, ssl_verify_of(server_args)))
