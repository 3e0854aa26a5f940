"""What the agent is told about warming. Without any of these variables nothing of it runs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DEFAULT_FOLDER = "/run/sglang-warming"
VARIABLES = (
    "SGLANG_AGENT_WARMING_DIR",
    "SGLANG_AGENT_WARMING_PATHS",
    "SGLANG_AGENT_WARMING_GATE_S",
    "SGLANG_AGENT_PEERS_SERVICE",
    "SGLANG_AGENT_PEERS_MAX_TOKENS",
)
"""Any of them turns warming on."""


class WarmingError(ValueError):
    """A variable that cannot be used; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A file or a folder of a volume. `path` is in it, `mount` is where it is mounted."""

    name: str
    path: str
    mount: Path

    @property
    def place(self) -> Path:
        return self.mount / self.path.lstrip("/")


@dataclass(frozen=True, slots=True)
class Peers:
    """Agents of the same cluster. `own_ip` is not asked. `port` None: the own one is theirs too."""

    service: str
    max_tokens: int
    revision: str
    own_ip: str
    port: int | None = None


@dataclass(frozen=True, slots=True)
class WarmingSettings:
    """`gate_s` None: readiness does not wait."""

    folder: Path
    claims: tuple[Claim, ...] = ()
    gate_s: float | None = None
    peers: Peers | None = None
    revision: str = ""


def warming_settings(environment: Mapping[str, str]) -> WarmingSettings | None:
    """None: nothing is to be warmed. WarmingError for what cannot be used."""
    given = {name: environment[name].strip() for name in VARIABLES if name in environment}
    if not given:
        return None
    revision = environment.get("SGLANG_AGENT_REVISION", "").strip()
    return WarmingSettings(
        folder=_folder(given.get("SGLANG_AGENT_WARMING_DIR", DEFAULT_FOLDER)),
        claims=_claims(given.get("SGLANG_AGENT_WARMING_PATHS", "[]")),
        gate_s=_gate_s(given.get("SGLANG_AGENT_WARMING_GATE_S")),
        peers=_peers(given, revision, environment.get("SGLANG_AGENT_POD_IP", "").strip()),
        revision=revision,
    )


def _folder(value: str) -> Path:
    if not value.startswith("/"):
        raise WarmingError(
            f'SGLANG_AGENT_WARMING_DIR: got "{value}"; a path has to start with "/"; '
            f'write it like "{DEFAULT_FOLDER}"'
        )
    return Path(value)


def _claims(value: str) -> tuple[Claim, ...]:
    try:
        return tuple(
            Claim(_text(item["claim"]), _text(item.get("path") or ""), Path(_text(item["mount"])))
            for item in json.loads(value)
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise WarmingError(
            f'SGLANG_AGENT_WARMING_PATHS: got "{value[:80]}"; it is a list of claims; '
            'write it like [{"claim": "prompts", "path": "a.jsonl", "mount": "/warming/0"}]'
        ) from None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _gate_s(value: str | None) -> float | None:
    if value is None:
        return None
    whole, _, fraction = value.partition(".")
    if not (whole and (whole + fraction).isascii() and (whole + fraction).isdigit()):
        raise WarmingError(
            f'SGLANG_AGENT_WARMING_GATE_S: got "{value}"; it is a number of seconds without a '
            'unit; write it like "300"'
        )
    return float(value)


def _peers(given: Mapping[str, str], revision: str, own_ip: str) -> Peers | None:
    service = given.get("SGLANG_AGENT_PEERS_SERVICE", "")
    if not service:
        return None
    tokens = given.get("SGLANG_AGENT_PEERS_MAX_TOKENS", "")
    if not (tokens.isascii() and tokens.isdigit() and 0 < int(tokens) < 2**31):
        raise WarmingError(
            f'SGLANG_AGENT_PEERS_MAX_TOKENS: got "{tokens}"; it is how many tokens a new engine '
            'takes from its peers; write it like "65536"'
        )
    name, colon, port = service.partition(":")
    if colon and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise WarmingError(
            f'SGLANG_AGENT_PEERS_SERVICE: got "{service}"; it is a name, and a port where that is '
            'not the own one; write it like "peers.default.svc"'
        )
    return Peers(name, int(tokens), revision, own_ip, int(port) if port else None)
