"""The options of `sglang-operator run`, each also an environment variable."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

from sglang_controllers.images import Images
from sglang_operator.settings import Settings, own_namespace

PREFIX = "SGLANG_OPERATOR_"
LOG_FORMATS = ("json", "text")
LOG_LEVELS = ("debug", "info", "warning", "error")
DEFAULTS = Settings(lease_namespace="", identity="")


class UsageError(Exception):
    """An option or environment variable that cannot be used, in words."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Variables that begin with PREFIX. An empty one counts as unset."""

    variables: Mapping[str, str]

    def get(self, name: str, default: str) -> str:
        return self.variables.get(PREFIX + name) or default

    def choice(self, name: str, default: str, choices: tuple[str, ...]) -> str:
        # argparse checks the choices of what is typed, not of defaults.
        value = self.get(name, default)
        if value not in choices:
            known = ", ".join(choices)
            raise UsageError(f'{PREFIX}{name}: got "{value}"; write one of {known}')
        return value

    def truth(self, name: str, default: str) -> bool:
        return self.choice(name, default, ("true", "false")) == "true"

    def names(self, name: str) -> tuple[str, ...]:
        return tuple(filter(None, map(str.strip, self.get(name, "").split(","))))


def add_options(run: argparse.ArgumentParser, variables: Mapping[str, str]) -> None:
    """All options of `run`. `variables` give their defaults."""
    environment = Environment(variables)
    _add_scope(run, environment)
    _add_lease(run, environment)
    _add_work(run, environment)
    _add_images(run, environment)
    _add_logs(run, environment)


def settings_of(options: argparse.Namespace) -> Settings:
    """The parsed command line as settings."""
    from_environment = () if options.all_namespaces else options.given_namespaces
    return Settings(
        namespaces=tuple(dict.fromkeys(options.namespace or from_environment)),
        leader_election=options.leader_election,
        lease_name=options.lease_name,
        lease_namespace=options.lease_namespace or own_namespace(),
        health_port=options.health_port,
        workers=options.workers,
        resync_s=options.resync,
        log_format=options.log_format,
        log_level=options.log_level,
        images=Images(agent=options.agent_image, router=options.router_image),
    )


def _add_scope(run: argparse.ArgumentParser, environment: Environment) -> None:
    where = run.add_mutually_exclusive_group()
    where.add_argument(
        "--namespace",
        action="append",
        metavar="NS",
        help="serve this namespace; repeat for more",
    )
    where.add_argument(
        "--all-namespaces", action="store_true", help="serve all namespaces (the default)"
    )
    run.set_defaults(given_namespaces=environment.names("NAMESPACES"))


def _add_lease(run: argparse.ArgumentParser, environment: Environment) -> None:
    run.add_argument(
        "--leader-election",
        action=argparse.BooleanOptionalAction,
        default=environment.truth("LEADER_ELECTION", "true"),
        help="act only while holding a Lease, so that several can run (default: true)",
    )
    run.add_argument(
        "--lease-namespace",
        default=environment.get("LEASE_NAMESPACE", ""),
        metavar="NS",
        help="namespace of the Lease (default: the pod's own)",
    )
    run.add_argument(
        "--lease-name",
        default=environment.get("LEASE_NAME", DEFAULTS.lease_name),
        metavar="NAME",
        help="name of the Lease (default: %(default)s)",
    )


def _add_work(run: argparse.ArgumentParser, environment: Environment) -> None:
    run.add_argument(
        "--health-port",
        type=_port,
        default=environment.get("HEALTH_PORT", str(DEFAULTS.health_port)),
        metavar="PORT",
        help="of /healthz, /readyz and /metrics (default: %(default)s; 0: any free one)",
    )
    run.add_argument(
        "--workers",
        type=_positive,
        default=environment.get("WORKERS", str(DEFAULTS.workers)),
        metavar="N",
        help="clusters worked on at a time (default: %(default)s)",
    )
    run.add_argument(
        "--resync",
        type=_seconds,
        default=environment.get("RESYNC", f"{DEFAULTS.resync_s:g}"),
        metavar="SECONDS",
        help="time between comparisons with what the API server lists (default: %(default)s)",
    )


def _add_images(run: argparse.ArgumentParser, environment: Environment) -> None:
    run.add_argument(
        "--agent-image",
        default=environment.get("AGENT_IMAGE", DEFAULTS.images.agent),
        metavar="IMAGE",
        help="what runs beside each engine; running engines keep theirs (default: %(default)s)",
    )
    run.add_argument(
        "--router-image",
        default=environment.get("ROUTER_IMAGE", DEFAULTS.images.router),
        metavar="IMAGE",
        help="what runs before the engines; running routers keep theirs (default: %(default)s)",
    )


def _add_logs(run: argparse.ArgumentParser, environment: Environment) -> None:
    run.add_argument(
        "--log-format",
        choices=LOG_FORMATS,
        default=environment.choice("LOG_FORMAT", DEFAULTS.log_format, LOG_FORMATS),
        help="(default: %(default)s)",
    )
    run.add_argument(
        "--log-level",
        choices=LOG_LEVELS,
        default=environment.choice("LOG_LEVEL", DEFAULTS.log_level, LOG_LEVELS),
        help="(default: %(default)s)",
    )


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
