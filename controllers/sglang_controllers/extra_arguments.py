"""What is wrong with `spec.engine.extraArgs`: flags with another owner, typos, impossible values."""

import re
from collections.abc import Iterator
from typing import Any

from sglang_controllers.api import ClusterSpec
from sglang_controllers.api.flags import FLAGS, Takes
from sglang_controllers.api.problems import shown
from sglang_controllers.api.settings import (
    ENGINE_VERSION,
    RESERVED,
    SETTINGS,
    Setting,
    field_value,
)
from sglang_controllers.offers import choice_problem, image_hint, known_engine
from sglang_controllers.unknown_flags import contrary, meant

FLAG_PATTERN = r"[a-z0-9]+(-[a-z0-9]+)*"


def extra_argument_problems(spec: ClusterSpec) -> Iterator[str]:
    extra = spec.engine.extra_args
    for flag in sorted(extra):
        for problem in _problems(flag, extra[flag], spec):
            yield f"spec.engine.extraArgs.{flag}{problem}"


def _problems(flag: str, value: Any, spec: ClusterSpec) -> Iterator[str]:
    """Each begins with what follows the flag in the path of the field: nothing or an index."""
    plain = flag.lstrip("-").replace("_", "-").lower()
    owner = _owner(plain.partition("=")[0].strip(), value, spec)
    if owner:
        yield f": {owner}"
    elif not re.fullmatch(FLAG_PATTERN, flag):
        yield f": {_spelling(flag, plain)}"
    else:
        impossible = list(_impossible(flag, value))
        yield from impossible or (_unlike_sglang(flag, value, spec) if known_engine(spec) else [])


def _owner(flag: str, value: Any, spec: ClusterSpec) -> str | None:
    """Why `flag` cannot be in extraArgs, None when it can.

    argparse takes a flag's beginning for the flag, so a beginning belongs to its owner as well.
    """
    if not flag:
        return None
    for setting in SETTINGS:
        for name in (setting.flag, *setting.aliases):
            if name.startswith(flag) and _owned(setting, value, spec):
                return f"{_is(flag, name)}spec.{setting.field} sets it; use that field"
    for reserved in RESERVED:
        for name in reserved.flags:
            if name.startswith(flag):
                return f"{_is(flag, name)}the operator sets it or does without; {reserved.fix}"
    return None


def _owned(setting: Setting, value: Any, spec: ClusterSpec) -> bool:
    if not setting.within or field_value(spec, setting.within) is not None:
        return True
    return str(value).upper() in setting.claims


def _is(flag: str, name: str) -> str:
    return "" if flag == name else f"SGLang reads it as {name}; "


def _spelling(flag: str, plain: str) -> str:
    name, equals, value = plain.partition("=")
    name = re.sub(r"[^a-z0-9]+", "-", name).strip("-")
    if equals:
        return f'got {shown(flag)}; the value is not part of the name; write "{name}: {value}"'
    rule = "a flag is written without leading dashes, with dashes between its words"
    return f'got {shown(flag)}; {rule}; write "{name}"' if name else f"got {shown(flag)}; {rule}"


def _impossible(flag: str, value: Any) -> Iterator[str]:
    """Values that cannot be written as an argument of any program."""
    if value is None:
        yield ": got null; a flag needs a value; write true for a flag without one"
    elif value is False:
        off = f"write no-{flag}: true" if f"no-{flag}" in FLAGS else "remove it"
        yield f": got false; a flag that is off is left out; {off}"
    elif value == []:
        yield ": got []; a list needs an item; add one or remove the flag"
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if item is None or isinstance(item, bool | list):
                yield f"[{index}]: got {shown(item)}; must be text, a number or an object"
            elif isinstance(item, str) and item.startswith("-"):
                yield f"[{index}]: got {shown(item)}; SGLang takes it for a flag; remove the dash"


def _unlike_sglang(flag: str, value: Any, spec: ClusterSpec) -> Iterator[str]:
    takes = FLAGS.get(flag)
    if takes is None:
        if not any(name.startswith(flag) for name in FLAGS):
            yield (
                f": SGLang {ENGINE_VERSION} has no such argument; {_meant(flag, value, spec)}"
                f"{image_hint(spec)}"
            )
    elif takes is Takes.SWITCH and value is not True:
        yield f": got {shown(value)}; the flag takes no value; write true, or remove the flag"
    elif value is True and takes not in (Takes.SWITCH, Takes.OPTIONAL):
        yield f": got true; the flag takes {takes}; write it"
    elif isinstance(value, list) and takes not in (Takes.LIST, Takes.OPTIONAL):
        yield f": got {shown(value)}; the flag takes {takes}; write it without brackets"
    elif takes in (Takes.WHOLE, Takes.DECIMAL) and not _number(value, whole=takes is Takes.WHOLE):
        yield f": got {shown(value)}; the flag takes {takes}; write it as digits"
    elif problem := choice_problem(flag, value):
        yield f": {problem}{image_hint(spec)}"


def _meant(flag: str, value: Any, spec: ClusterSpec) -> str:
    """What to do about a flag that is not there."""
    if other := contrary(flag):
        return f"it is the default, for {other} changes it; remove it"
    close = meant(flag)
    if close is None:
        return "remove it"
    owner = _owner(close, value, spec)
    return f"if {close} is meant: {owner}" if owner else f'write "{close}"'


def _number(value: Any, *, whole: bool) -> bool:
    """Whether SGLang's parser reads `value` as a number."""
    try:
        number = float(value)
        if whole and isinstance(value, str):
            int(value)
    except (TypeError, ValueError):
        return False
    return number.is_integer() or not whole
