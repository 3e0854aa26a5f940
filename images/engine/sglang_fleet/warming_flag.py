"""What is wrong with --cache-warming-prompts, told before the model is loaded."""

import argparse
from collections.abc import Mapping
from pathlib import Path

from sglang_fleet.flags import CACHE_WARMING_PROMPTS
from sglang_warming.files import Problem, entries

FLAG = CACHE_WARMING_PROMPTS.name

CONTRADICTIONS = {
    "disable_radix_cache": "the engine keeps no cache",
    "encoder_only": "an encoder has no cache of prompts",
    "grpc_mode": "the prompts are sent over HTTP",
    "smg_grpc_mode": "the prompts are sent over HTTP",
}
"""Flags of SGLang that leave nothing to warm, or no way to do it."""


def problem_with(
    path: str, arguments: argparse.Namespace, environment: Mapping[str, str]
) -> str | None:
    return _contradiction(arguments, environment) or _unusable(Path(path))


def _contradiction(arguments: argparse.Namespace, environment: Mapping[str, str]) -> str | None:
    for attribute, reason in CONTRADICTIONS.items():
        if getattr(arguments, attribute, False):
            flag = f"--{attribute.replace('_', '-')}"
            return f"{FLAG}: does not go with {flag}: {reason}; leave out one of the two"
    mode = getattr(arguments, "disaggregation_mode", "null")
    if mode != "null":
        return (
            f"{FLAG}: does not go with --disaggregation-mode {mode}: the requests of one server "
            "cannot fill the caches of two; leave out one of the two"
        )
    if getattr(arguments, "tokenizer_worker_num", 1) > 1:
        return (
            f"{FLAG}: does not go with --tokenizer-worker-num {arguments.tokenizer_worker_num}: "
            "whether the server is idle is not known in one place then; leave out one of the two"
        )
    if environment.get("SGLANG_RUST_SERVER", "").lower() in ("1", "true", "yes", "y"):
        return f"{FLAG}: does not go with SGLANG_RUST_SERVER; leave out one of the two"
    return None


def _unusable(path: Path) -> str | None:
    """A prompt is enough: what is wrong with the others is told when their turn comes."""
    try:
        with path.open("rb") as stream:
            first = None
            for entry in entries(path.name, stream):
                if not isinstance(entry, Problem):
                    return None
                first = first or entry
    except OSError as error:
        reason = error.strerror or error
        return f'{FLAG}: got "{path}"; it cannot be read ({reason}); name a file of prompts'
    if first is None:
        return f'{FLAG}: got "{path}"; it has no prompt; write one, or leave out the flag'
    place = "" if first.index is None else f"entry {first.index}: "
    return f'{FLAG}: got "{path}"; it has no prompt; {place}{first.message}'
