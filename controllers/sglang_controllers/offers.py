"""Values out of lists that differ between SGLang's versions, checked against the right list."""

import difflib
from collections.abc import Iterator
from typing import Any

from sglang_controllers.api import ClusterSpec
from sglang_controllers.api.choices import CHOICES
from sglang_controllers.api.problems import shown
from sglang_controllers.api.settings import ENGINE_VERSION, SETTINGS, Kind, field_value

NEARLY = 0.8
"""Likeness from which a value is taken for a slip of another one. Backends have similar names."""


def known_engine(spec: ClusterSpec) -> bool:
    """False when the engine may be another SGLang, or have plugins with flags of their own."""
    return not spec.engine.allow_unknown_version and spec.engine.version in (None, ENGINE_VERSION)


def version_problems(spec: ClusterSpec) -> Iterator[str]:
    """A release that no table here knows: nothing could be checked before a pod is made."""
    version = spec.engine.version
    if version in (None, ENGINE_VERSION) or spec.engine.allow_unknown_version:
        return
    yield (
        f"spec.engine.version: got {shown(version)}; settings are checked against SGLang "
        f'{ENGINE_VERSION}; write "{ENGINE_VERSION}", or set '
        "spec.engine.allowUnknownVersion: true to leave the check to SGLang itself"
    )


def image_hint(spec: ClusterSpec) -> str:
    """What else may be meant by something that SGLang itself does not have."""
    if spec.engine.image is None:
        return ""
    return "; if spec.engine.image has it, set spec.engine.allowUnknownVersion: true"


def unoffered_values(spec: ClusterSpec) -> Iterator[str]:
    """Typed values that the engine's version has no more, or not yet."""
    if not known_engine(spec):
        return
    for setting in SETTINGS:
        value = field_value(spec, setting.field) if setting.kind is Kind.VALUE else None
        problem = None if value is None else choice_problem(setting.flag, value)
        if problem:
            yield f"spec.{setting.field}: {problem}{image_hint(spec)}"


def choice_problem(flag: str, value: Any) -> str | None:
    """What is wrong with a value of `flag`; None when SGLang offers it or takes any value."""
    offered = CHOICES.get(flag)
    if offered is None:
        return None
    for item in value if isinstance(value, list) else [value]:
        if str(item) not in offered:
            close = difflib.get_close_matches(str(item), offered, n=1, cutoff=NEARLY)
            fix = f'write "{close[0]}"' if close else "write one of them"
            listed = ", ".join(offered)
            return f"got {shown(item)}; SGLang {ENGINE_VERSION} offers {listed}; {fix}"
    return None
