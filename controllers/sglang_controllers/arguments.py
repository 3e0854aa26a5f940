"""The arguments of an engine."""

import json
from collections.abc import Iterator
from typing import Any, assert_never

from sglang_controllers import names
from sglang_controllers.api import ClusterSpec
from sglang_controllers.api.settings import SETTINGS, Kind, Setting, field_value
from sglang_controllers.contradictions import contradictions
from sglang_controllers.extra_arguments import extra_argument_problems
from sglang_controllers.mounts import adapter_files, draft_files, model_files
from sglang_controllers.offers import unoffered_values, version_problems


def engine_arguments(spec: ClusterSpec, *, cluster_name: str) -> tuple[str, ...]:
    """What follows `python3 -m sglang.launch_server`: fixed ones, typed fields, extraArgs."""
    extra = spec.engine.extra_args
    return (
        f"--model-path={model_files(spec).folder}",
        f"--served-model-name={spec.model.served_name or cluster_name}",
        "--host=0.0.0.0",
        f"--port={names.ENGINE_PORT}",
        "--enable-metrics",
        *(token for setting in SETTINGS for token in _typed(setting, spec)),
        *(token for flag in sorted(extra) for token in _extra(flag, extra[flag])),
    )


def argument_problems(spec: ClusterSpec) -> tuple[str, ...]:
    """What SGLang would refuse, or what two places say differently. Empty: an engine may start."""
    return (
        *version_problems(spec),
        *extra_argument_problems(spec),
        *unoffered_values(spec),
        *contradictions(spec),
    )


def _typed(setting: Setting, spec: ClusterSpec) -> Iterator[str]:
    value = field_value(spec, setting.field)
    if value is None:
        return
    match setting.kind:
        case Kind.VALUE:
            yield f"--{setting.flag}={_text(value)}"
        case Kind.SWITCH:
            if value == setting.value:
                yield f"--{setting.flag}"
        case Kind.PRESENCE:
            yield f"--{setting.flag}={setting.value}" if setting.value else f"--{setting.flag}"
        case Kind.LIST:
            yield from _list(setting.flag, [_text(item) for item in value])
        case Kind.JSON:
            settings = value.model_dump(exclude_none=True)
            if settings:
                yield f"--{setting.flag}={_text(settings)}"
        case Kind.FOLDER:
            draft = draft_files(spec)
            yield f"--{setting.flag}={value if draft is None else draft.folder}"
        case Kind.FOLDERS:
            folders = adapter_files(spec).items()
            yield from _list(setting.flag, [f"{name}={files.folder}" for name, files in folders])
        case _:
            assert_never(setting.kind)


def _list(flag: str, items: list[str]) -> Iterator[str]:
    if items:
        yield f"--{flag}"
        yield from items


def _extra(flag: str, value: Any) -> Iterator[str]:
    if value is True:
        yield f"--{flag}"
    elif isinstance(value, list):
        yield from _list(flag, [_text(item) for item in value])
    else:
        yield f"--{flag}={_text(value)}"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        # A file may say 1e6; a flag that takes whole numbers refuses 1000000.0.
        return str(int(value))
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
