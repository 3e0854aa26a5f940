"""Patching SGLang, with a look at whether it took: SGLang's own loader logs a failure and goes on."""

import os
import pkgutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from sglang.srt.plugins.hook_registry import HookRegistry, HookType
from sglang.version import __version__

from sglang_fleet.versions import untested


@dataclass(frozen=True, slots=True)
class Hook:
    """`name` is the module's, as in the table of versions."""

    name: str
    target: str
    kind: HookType
    function: Callable[..., Any]


def stop(message: str) -> NoReturn:
    """End the server. Not with an Exception: SGLang's plugin loader catches those."""
    print(f"error: {message}", file=sys.stderr)  # noqa: T201
    raise SystemExit(2)


def declare(hook: Hook) -> None:
    """Leave the patching to SGLang, which does it when all plugins are loaded. `check` it later."""
    resolved(hook.target)
    HookRegistry.register(hook.target, hook.function, hook.kind)


def check(target: str) -> None:
    if target not in HookRegistry._patched:  # noqa: SLF001  SGLang tells nobody else
        stop(f"sglang_fleet could not patch {target}; the log above says why")


def apply(hooks: Sequence[Hook]) -> None:
    """Patch now, if this version of SGLang is one that the hooks are tested with."""
    for hook in hooks:
        if problem := untested(hook.name, __version__, os.environ):
            stop(problem)
        if hook.target in HookRegistry._patched:  # noqa: SLF001  it would be left as it is
            stop(
                f"another plugin has patched {hook.target} already; name the plugins that you need "
                "in SGLANG_PLUGINS, with fleet and without that one"
            )
        declare(hook)
    before = [resolved(hook.target) for hook in hooks]
    HookRegistry.apply_hooks()
    for hook, original in zip(hooks, before, strict=True):
        check(hook.target)
        if resolved(hook.target) is original:
            stop(f"sglang_fleet has patched {hook.target}, and it is as before")


def resolved(target: str) -> object:
    try:
        return pkgutil.resolve_name(target)
    except (ImportError, AttributeError) as error:
        stop(
            f"sglang_fleet needs {target}, which SGLang {__version__} does not have ({error}); use a "
            "version that sglang_fleet is tested with, or leave the plugin out with SGLANG_PLUGINS"
        )
