"""The arguments of an engine, and what is wrong with those that a user wrote by hand."""

import json
import re
from collections.abc import Iterator
from typing import Any

from pydantic.alias_generators import to_snake

from sglang_controllers import names
from sglang_controllers.api import ClusterSpec
from sglang_controllers.api.problems import shown
from sglang_controllers.api.settings import NGRAM, RESERVED, SETTINGS, Kind, Setting
from sglang_controllers.api.source import ImagePath, parse_source
from sglang_controllers.contradictions import contradictions

FLAG_PATTERN = r"[a-z0-9]+(-[a-z0-9]+)*"


def engine_arguments(spec: ClusterSpec, *, cluster_name: str) -> tuple[str, ...]:
    """What follows `python3 -m sglang.launch_server`: fixed ones, typed fields, extraArgs."""
    source = parse_source(spec.model.source)
    extra = spec.engine.extra_args
    return (
        f"--model-path={source.path if isinstance(source, ImagePath) else names.MODEL_MOUNT}",
        f"--served-model-name={spec.model.served_name or cluster_name}",
        "--host=0.0.0.0",
        f"--port={names.ENGINE_PORT}",
        "--enable-metrics",
        *(token for setting in SETTINGS for token in _typed(setting, spec)),
        *(token for flag in sorted(extra) for token in _extra(flag, extra[flag])),
    )


def argument_problems(spec: ClusterSpec) -> tuple[str, ...]:
    """What SGLang would refuse, or what two places say differently. Empty: an engine may start."""
    extra = spec.engine.extra_args
    return (
        *(
            f"spec.engine.extraArgs.{flag}{problem}"
            for flag in sorted(extra)
            for problem in _flag_problems(flag, extra[flag], spec)
        ),
        *contradictions(spec),
    )


def field_value(spec: ClusterSpec, field: str) -> Any:
    """The value at a path below `spec` as users write it, None when unset."""
    value: Any = spec
    for part in field.split("."):
        value = None if value is None else getattr(value, to_snake(part))
    return value


def _typed(setting: Setting, spec: ClusterSpec) -> Iterator[str]:
    value = field_value(spec, setting.field)
    if value is None:
        return
    match setting.kind:
        case Kind.VALUE:
            yield f"--{setting.flag}={value}"
        case Kind.PRESENCE:
            yield f"--{setting.flag}={setting.value}"
        case Kind.SWITCH:
            if value == setting.value:
                yield f"--{setting.flag}"


def _extra(flag: str, value: Any) -> Iterator[str]:
    if value is True:
        yield f"--{flag}"
    elif isinstance(value, list):
        yield f"--{flag}"
        yield from (_text(item) for item in value)
    else:
        yield f"--{flag}={_text(value)}"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        # The API server reads 1e6 as a float; a flag that takes whole numbers refuses 1000000.0.
        return str(int(value))
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _flag_problems(flag: str, value: Any, spec: ClusterSpec) -> Iterator[str]:
    plain = flag.lstrip("-").replace("_", "-").lower()
    owner = _owner(plain.partition("=")[0].strip(), value, spec)
    if owner:
        yield f": {owner}"
    elif not re.fullmatch(FLAG_PATTERN, flag):
        yield f": {_spelling(flag, plain)}"
    else:
        yield from _value_problems(value)


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
    return setting.field == NGRAM and str(value).upper() == setting.value


def _is(flag: str, name: str) -> str:
    return "" if flag == name else f"SGLang reads it as {name}; "


def _spelling(flag: str, plain: str) -> str:
    name, equals, value = plain.partition("=")
    name = re.sub(r"[^a-z0-9]+", "-", name).strip("-")
    if equals:
        return f'got {shown(flag)}; the value is not part of the name; write "{name}: {value}"'
    rule = "a flag is written without leading dashes, with dashes between its words"
    return f'got {shown(flag)}; {rule}; write "{name}"' if name else f"got {shown(flag)}; {rule}"


def _value_problems(value: Any) -> Iterator[str]:
    if value is None:
        yield ": got null; a flag needs a value; write true for a flag without one"
    elif value is False:
        yield ": got false; a flag that is off is left out; remove it"
    elif value == []:
        yield ": got []; a list needs an item; add one or remove the flag"
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if item is None or isinstance(item, bool | list):
                yield f"[{index}]: got {shown(item)}; must be text, a number or an object"
            elif isinstance(item, str) and item.startswith("-"):
                yield f"[{index}]: got {shown(item)}; SGLang takes it for a flag; remove the dash"
