"""SGLang's own reading of arguments, one list a line. Runs in the engine environment.

Each line of the input is a JSON list of arguments, each line of the output a JSON object:
`refused` says why SGLang would not start an engine with them (on the CPU, without loading the
model), or is null; `read` is what SGLang makes of them. A list that begins with `parse` is only
parsed. The first line of the output describes
the parser: the flags of each argument, and what they take.
"""

import argparse
import importlib
import json
import logging
import sys
from types import SimpleNamespace
from typing import Any, NoReturn

answers = sys.stdout
sys.stdout = sys.stderr  # SGLang prints

sglang_arguments = importlib.import_module("sglang.srt.server_args")
schedule_policy = importlib.import_module("sglang.srt.managers.schedule_policy")
cache_utils = importlib.import_module("sglang.srt.mem_cache.utils")


class RefusedError(Exception):
    """What argparse says before it would end the process."""


def refuse(_: argparse.ArgumentParser, message: str) -> NoReturn:
    raise RefusedError(message)


def described() -> list[dict[str, Any]]:
    parser = argparse.ArgumentParser()
    sglang_arguments.ServerArgs.add_cli_args(parser)
    return [
        {
            "flags": action.option_strings,
            "choices": sorted(map(str, action.choices or ())),
            "nargs": action.nargs,
            "boolean": isinstance(action, argparse.BooleanOptionalAction),
            "type": getattr(action.type, "__name__", None),
        }
        for action in parser._actions
    ]


def resolved(arguments: list[str]) -> dict[str, Any]:
    """What an engine would run with, after every check that needs no hardware."""
    server_args = sglang_arguments.prepare_server_args(arguments)
    logging.disable(logging.CRITICAL)
    server_args.resolve_once()
    server_args.check_server_args()
    values: dict[str, Any] = server_args.resolved_dict()
    # The scheduler's first checks, before it loads the model.
    cache_utils.get_eviction_strategy(
        values["radix_eviction_policy"], values["radix_eviction_policy_config"]
    )
    schedule_policy.SchedulePolicy._validate_and_adjust_policy(
        SimpleNamespace(),
        values["schedule_policy"],
        SimpleNamespace(disable=values["disable_radix_cache"]),
    )
    return values


def parsed(arguments: list[str]) -> dict[str, Any]:
    """The arguments as SGLang's parser reads them, before any check."""
    parser = argparse.ArgumentParser()
    sglang_arguments.ServerArgs.add_cli_args(parser)
    return vars(parser.parse_args(arguments))


def answer(arguments: list[str]) -> dict[str, Any]:
    try:
        if arguments[:1] == ["parse"]:
            return {"refused": None, "read": parsed(arguments[1:])}
        return {"refused": None, "read": resolved(arguments)}
    except Exception as refusal:  # noqa: BLE001  SGLang refuses with any of them
        return {"refused": f"{type(refusal).__name__}: {refusal}", "read": {}}


def main() -> None:
    setattr(argparse.ArgumentParser, "error", refuse)  # noqa: B010  mypy
    print(json.dumps(described()), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line)), default=str), file=answers, flush=True)


if __name__ == "__main__":
    main()
