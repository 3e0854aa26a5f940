"""/server_info shows the plugin's flags, whichever way they were given, and how far the warming is."""

from collections.abc import Callable
from functools import partial
from typing import Any

from sglang.srt.plugins.hook_registry import HookType

from sglang_fleet.hooks.seams import Hook

TARGET = "sglang.srt.utils.common.build_server_info"


def hook(shown: Callable[[], dict[str, Any]]) -> Hook:
    return Hook("server_info", TARGET, HookType.AFTER, partial(with_fleet, shown))


def with_fleet(
    shown: Callable[[], dict[str, Any]], result: dict[str, Any], *_: object
) -> dict[str, Any]:
    return result | {"sglang_fleet": shown()}
