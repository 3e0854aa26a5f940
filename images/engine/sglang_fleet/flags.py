"""The flags that SGLang's command line gets.

One that is given neither there nor in the file of --config is as its environment variable says.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Flag:
    name: str
    metavar: str
    help: str

    @property
    def attribute(self) -> str:
        return self.name.removeprefix("--").replace("-", "_")

    @property
    def variable(self) -> str:
        return f"SGLANG_FLEET_{self.attribute.upper()}"


CACHE_WARMING_PROMPTS = Flag(
    "--cache-warming-prompts",
    "FILE",
    "Prompts (JSON, JSONL or plain text) that are computed into the cache while the engine is idle.",
)
FLAGS = (CACHE_WARMING_PROMPTS,)


def add_to(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    for flag in FLAGS:
        parser.add_argument(
            flag.name,
            metavar=flag.metavar,
            default=environment.get(flag.variable) or None,
            help=f"{flag.help} Environment variable: {flag.variable}.",
        )


def given(arguments: argparse.Namespace) -> dict[str, str]:
    """The values of the flags that are given, by attribute."""
    values = {flag.attribute: getattr(arguments, flag.attribute, None) for flag in FLAGS}
    return {name: value for name, value in values.items() if value}
