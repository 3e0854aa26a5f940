"""Extra arguments that a field cannot be combined with."""

from collections.abc import Callable, Iterator
from typing import Any

from sglang_controllers.api import ClusterSpec
from sglang_controllers.api.problems import shown

EXTRA = "spec.engine.extraArgs"

Flags = tuple[tuple[str, Callable[[Any], bool]], ...]
"""Flags, and which of their values are refused."""


def excluded(spec: ClusterSpec, field: str, flags: Flags) -> Iterator[str]:
    """A problem for each of `flags` that is given with a value which `field` excludes."""
    extra = spec.engine.extra_args
    for flag, refused in flags:
        if flag in extra and refused(extra[flag]):
            yield (
                f"spec.{field}: excludes {EXTRA}.{flag}: {shown(extra[flag])}; remove one of them"
            )
