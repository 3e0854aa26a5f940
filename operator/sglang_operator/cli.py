"""The command `sglang-operator`."""

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from sglang_controllers.api.schema import crd_yaml
from sglang_operator import logs
from sglang_operator.kube import NotConfiguredError
from sglang_operator.render import RenderError, render
from sglang_operator.run import Operator, PartEndedError, PortTakenError
from sglang_operator.settings import Settings, own_namespace

PREFIX = "SGLANG_OPERATOR_"

log = logging.getLogger(__name__)


class UsageError(Exception):
    """An option or environment variable that cannot be used, in words."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the answer is the exit code."""
    try:
        options = parser(os.environ).parse_args(arguments)
        match options.command:
            case "run":
                return _run(options)
            case "render":
                sys.stdout.write(render(_text(options.file)))
            case "crds":
                sys.stdout.write(crd_yaml())
            case _:
                sys.stdout.write(f"sglang-operator {version('sglang-operator')}\n")
    except (UsageError, RenderError, NotConfiguredError, PortTakenError) as error:
        sys.stderr.write("".join(f"sglang-operator: {line}\n" for line in str(error).split("\n")))
        return 1
    return 0


def parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    """The command line. `environment` gives the defaults of `run`."""
    whole = argparse.ArgumentParser(
        prog="sglang-operator", description="Serve language models with SGLang on Kubernetes."
    )
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _run_options(
        commands.add_parser(
            "run",
            help="run the operator",
            description=f"Each option can be given by environment: {PREFIX}NAMESPACES (separated "
            f"by commas), {PREFIX}WORKERS, and so on. The command line wins.",
        ),
        environment,
    )
    shown = commands.add_parser(
        "render", help="print the objects a SGLangCluster becomes; needs no cluster"
    )
    shown.add_argument(
        "-f", "--file", required=True, metavar="FILE", help="YAML file, - for standard input"
    )
    commands.add_parser("crds", help="print the CustomResourceDefinition")
    commands.add_parser("version", help="print the version")
    return whole


def _run_options(run: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    def given(name: str, default: str) -> str:
        return environment.get(PREFIX + name) or default

    defaults = Settings(lease_namespace="", identity="")
    namespaces = [n.strip() for n in given("NAMESPACES", "").split(",") if n.strip()]
    where = run.add_mutually_exclusive_group()
    where.add_argument(
        "--namespace",
        action="append",
        default=None,
        metavar="NS",
        help="serve this namespace; repeat for more",
    )
    where.add_argument(
        "--all-namespaces", action="store_true", help="serve all namespaces (the default)"
    )
    run.set_defaults(given_namespaces=tuple(namespaces))
    run.add_argument(
        "--leader-election",
        action=argparse.BooleanOptionalAction,
        default=_truth("LEADER_ELECTION", given("LEADER_ELECTION", "true")),
        help="act only while holding a Lease, so that several can run (default: true)",
    )
    run.add_argument(
        "--lease-namespace",
        default=given("LEASE_NAMESPACE", ""),
        metavar="NS",
        help="namespace of the Lease (default: the pod's own)",
    )
    run.add_argument(
        "--lease-name",
        default=given("LEASE_NAME", defaults.lease_name),
        metavar="NAME",
        help="name of the Lease (default: %(default)s)",
    )
    run.add_argument(
        "--health-port",
        type=_port,
        default=given("HEALTH_PORT", str(defaults.health_port)),
        metavar="PORT",
        help="of /healthz, /readyz and /metrics (default: %(default)s; 0: any free one)",
    )
    run.add_argument(
        "--workers",
        type=_positive,
        default=given("WORKERS", str(defaults.workers)),
        metavar="N",
        help="clusters worked on at a time (default: %(default)s)",
    )
    run.add_argument(
        "--resync",
        type=_seconds,
        default=given("RESYNC", f"{defaults.resync_s:g}"),
        metavar="SECONDS",
        help="time between comparisons with what the API server lists (default: %(default)s)",
    )
    run.add_argument(
        "--log-format",
        choices=("json", "text"),
        default=given("LOG_FORMAT", defaults.log_format),
        help="(default: %(default)s)",
    )
    run.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default=given("LOG_LEVEL", defaults.log_level),
        help="(default: %(default)s)",
    )


def settings_of(options: argparse.Namespace) -> Settings:
    """The parsed command line as settings."""
    for name in ("log_format", "log_level"):
        # argparse checks choices of what is typed, not of defaults.
        _choice(name, getattr(options, name))
    named = () if options.all_namespaces else options.given_namespaces
    return Settings(
        namespaces=tuple(dict.fromkeys(options.namespace or named)),
        leader_election=options.leader_election,
        lease_name=options.lease_name,
        lease_namespace=options.lease_namespace or own_namespace(),
        health_port=options.health_port,
        workers=options.workers,
        resync_s=options.resync,
        log_format=options.log_format,
        log_level=options.log_level,
    )


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


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file}: {error}") from error


def _truth(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise UsageError(f'{PREFIX}{name}: got "{text}"; write "true" or "false"')
    return text.lower() == "true"


def _choice(name: str, value: str) -> None:
    allowed = {"log_format": ("json", "text"), "log_level": ("debug", "info", "warning", "error")}
    if value not in allowed[name]:
        known = ", ".join(allowed[name])
        raise UsageError(f'{PREFIX}{name.upper()}: got "{value}"; write one of {known}')


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'got "{text}"; must be a whole number of 1 or more')
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f'got "{text}"; must be a port from 0 to 65535')
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f'got "{text}"; must be seconds from 0.1 to 3600')
    return seconds
