"""Whatever may have emptied the cache makes the warming begin again, where what is there still costs one token.

Patched on the tokenizer's side, which is in the main process: the scheduler, which empties the cache, is in another.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from sglang.srt.plugins.hook_registry import HookType

from sglang_fleet.hooks.seams import Hook

OWNER = "sglang.srt.managers.tokenizer_manager.TokenizerManager"
METHODS = (
    "flush_cache",
    "update_weights_from_disk",
    "update_weights_from_distributed",
    "update_weights_from_ipc",
    "update_weights_from_tensor",
    "resume_memory_occupation",
)


def hooks(renew: Callable[[], None]) -> list[Hook]:
    function = partial(then_renew, renew)
    return [
        Hook("cache_emptied", f"{OWNER}.{method}", HookType.AROUND, function) for method in METHODS
    ]


async def then_renew(
    renew: Callable[[], None],
    original: Callable[..., Awaitable[Any]],
    *arguments: Any,
    **options: Any,
) -> Any:
    result = await original(*arguments, **options)
    renew()
    return result
