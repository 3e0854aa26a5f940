"""The command `sglang-operator`."""

import argparse
import asyncio
import logging
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from sglang_controllers.api.schema import crd_yaml
from sglang_controllers.convert import ConvertError, as_yaml, converted
from sglang_operator import logs
from sglang_operator.kube import NotConfiguredError
from sglang_operator.options import PREFIX, UsageError, add_options, settings_of
from sglang_operator.render import RenderError, render
from sglang_operator.run import Operator, PartEndedError, PortTakenError

log = logging.getLogger(__name__)

MISTAKES = (UsageError, RenderError, ConvertError, NotConfiguredError, PortTakenError)
"""What a user can put right: told in words, without a traceback."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the answer is the exit code."""
    try:
        options = parser(os.environ).parse_args(arguments)
        match options.command:
            case "run":
                return _run(options)
            case "render":
                sys.stdout.write(render(_text(options.file)))
            case "convert":
                sys.stdout.write(as_yaml(converted(_command(options.launch), options.name)))
            case "crds":
                sys.stdout.write(crd_yaml())
            case _:
                sys.stdout.write(f"{_version()}\n")
    except MISTAKES as error:
        sys.stderr.write("".join(f"sglang-operator: {line}\n" for line in str(error).split("\n")))
        return 1
    return 0


def _version() -> str:
    return f"sglang-operator {version('sglang-operator')}"


def parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    """The command line. `environment` gives the defaults of `run`."""
    whole = argparse.ArgumentParser(
        prog="sglang-operator", description="Serve language models with SGLang on Kubernetes."
    )
    whole.add_argument("--version", action="version", version=_version())
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser(
        "run",
        help="run the operator",
        description=f"Each option can be given by environment: {PREFIX}NAMESPACES (separated "
        f"by commas), {PREFIX}WORKERS, and so on. The command line wins.",
    )
    add_options(run, environment)
    shown = commands.add_parser(
        "render", help="print the objects a SGLangCluster becomes; needs no cluster"
    )
    shown.add_argument(
        "-f", "--file", required=True, metavar="FILE", help="YAML file, - for standard input"
    )
    convert = commands.add_parser(
        "convert", help="print the SGLangCluster that runs what a launch command of SGLang runs"
    )
    convert.add_argument("--name", help="name of the cluster (default: like the model)")
    convert.add_argument(
        "launch",
        nargs=argparse.REMAINDER,
        metavar="COMMAND",
        help="the command, in quotes or not; - or nothing: from standard input",
    )
    commands.add_parser("crds", help="print the CustomResourceDefinition")
    commands.add_parser("version", help="print the version")
    return whole


def _run(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    logs.set_up(settings.log_format, settings.log_level)

    async def operate() -> None:
        await Operator(settings, handle_signals=True).run()

    try:
        asyncio.run(operate())
    except PartEndedError:
        log.exception("the operator cannot go on")
        return 1
    log.info("stopped")
    return 0


def _command(words: Sequence[str]) -> str:
    """A quoted command is one word, and its own quotes count."""
    if not words or list(words) == ["-"]:
        return _text("-")
    return words[0] if len(words) == 1 else shlex.join(words)


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file}: {error}") from error
