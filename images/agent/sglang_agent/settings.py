"""What the agent is told: environment variables, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sglang_agent.warming.settings import WarmingError, WarmingSettings, warming_settings

DEFAULTS = {
    "SGLANG_AGENT_ENGINE_URL": "http://127.0.0.1:30000",
    "SGLANG_AGENT_PORT": "30001",
    "SGLANG_AGENT_SOCKET": "/run/sglang-agent/agent.sock",
    "SGLANG_AGENT_TOKEN_FILE": "/run/secrets/sglang-agent/token",
    "SGLANG_AGENT_DRAIN_TIMEOUT_S": "120",
    "SGLANG_AGENT_REACTION_S": "5",
    "SGLANG_AGENT_TERMINATION_LOG": "/dev/termination-log",
}

MAX_SOCKET_PATH = 107
"""Bytes. The kernel's limit for the name of a Unix socket."""


class SettingsError(ValueError):
    """A variable that cannot be used; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Settings:
    engine_url: str
    port: int
    socket: Path
    token_file: Path
    drain_timeout_s: float
    reaction_s: float
    termination_log: Path
    warming: WarmingSettings | None = None

    @property
    def engine_port(self) -> int:
        return urlsplit(self.engine_url).port or 80


def settings_from(environment: Mapping[str, str]) -> Settings:
    """The settings, with defaults for what is unset. SettingsError for what cannot be used."""

    def value(name: str) -> str:
        return environment.get(name, DEFAULTS[name]).strip()

    return Settings(
        engine_url=_url("SGLANG_AGENT_ENGINE_URL", value("SGLANG_AGENT_ENGINE_URL")),
        port=_port("SGLANG_AGENT_PORT", value("SGLANG_AGENT_PORT")),
        socket=_socket("SGLANG_AGENT_SOCKET", value("SGLANG_AGENT_SOCKET")),
        token_file=_path("SGLANG_AGENT_TOKEN_FILE", value("SGLANG_AGENT_TOKEN_FILE")),
        drain_timeout_s=_seconds(
            "SGLANG_AGENT_DRAIN_TIMEOUT_S", value("SGLANG_AGENT_DRAIN_TIMEOUT_S")
        ),
        reaction_s=_seconds("SGLANG_AGENT_REACTION_S", value("SGLANG_AGENT_REACTION_S")),
        termination_log=_path(
            "SGLANG_AGENT_TERMINATION_LOG", value("SGLANG_AGENT_TERMINATION_LOG")
        ),
        warming=_warming(environment),
    )


def _warming(environment: Mapping[str, str]) -> WarmingSettings | None:
    try:
        return warming_settings(environment)
    except WarmingError as error:
        raise SettingsError(str(error)) from error


def _url(name: str, value: str) -> str:
    try:
        parts = urlsplit(value)
        good = parts.scheme == "http" and parts.hostname and parts.port != 0
        bare = not (parts.query or parts.fragment or parts.path.strip("/") or parts.username)
    except ValueError:
        good = bare = False
    if not (good and bare):
        raise SettingsError(
            f'{name}: got "{value}"; it is where the engine listens; '
            f'write it like "{DEFAULTS["SGLANG_AGENT_ENGINE_URL"]}"'
        )
    return value.rstrip("/")


def _port(name: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and 1 <= int(value) <= 65535):
        raise SettingsError(
            f'{name}: got "{value}"; a port is a number from 1 to 65535; '
            f'write it like "{DEFAULTS[name]}"'
        )
    return int(value)


def _path(name: str, value: str) -> Path:
    if not value.startswith("/"):
        raise SettingsError(
            f'{name}: got "{value}"; a path has to start with "/"; write it like "{DEFAULTS[name]}"'
        )
    return Path(value)


def _socket(name: str, value: str) -> Path:
    path = _path(name, value)
    if len(value.encode()) > MAX_SOCKET_PATH:
        raise SettingsError(
            f'{name}: got "{value}"; a socket\'s path has {MAX_SOCKET_PATH} bytes at most; '
            "write a shorter one"
        )
    return path


def _seconds(name: str, value: str) -> float:
    # Not what float() also takes: nan, inf, 1_000, minus.
    whole, _, fraction = value.partition(".")
    digits = whole + fraction
    if not (whole and digits.isascii() and digits.isdigit()):
        raise SettingsError(
            f'{name}: got "{value}"; it is a number of seconds without a unit; '
            f'write it like "{DEFAULTS[name]}"'
        )
    return float(value)
