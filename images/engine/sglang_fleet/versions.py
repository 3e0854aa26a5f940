"""Which versions of SGLang each hook is tested with.

Another one is refused by name: a hook that fits by luck may do harm without a word.
"""

from collections.abc import Mapping

TESTED = {
    "arguments": ("0.5.23",),
    "cache_emptied": ("0.5.23",),
    "http_server": ("0.5.23",),
    "server_info": ("0.5.23",),
}
"""By the names of the modules in hooks/."""

ALLOW = "SGLANG_FLEET_ALLOW_UNTESTED"


def untested(hook: str, version: str, environment: Mapping[str, str]) -> str | None:
    """Why a hook may not be used with this version of SGLang. None: it may."""
    if version in TESTED[hook] or environment.get(ALLOW) == "1":
        return None
    return (
        f"the hook {hook} of sglang_fleet is tested with SGLang {', '.join(TESTED[hook])}, and this "
        f"is {version}; use a tested version, leave out the flags of sglang_fleet, or set {ALLOW}=1 "
        "to try it"
    )
