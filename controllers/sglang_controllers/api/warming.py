"""`spec.cache.warming`: prompts whose prefixes are in the cache before users ask for them."""

import re
from typing import Annotated, Any

from pydantic import Field

from sglang_controllers.api.duration import DURATION_PATTERN, duration_s
from sglang_controllers.api.files import Claim
from sglang_controllers.api.model import Model, Rule, Worded

MAX_GATE_S = 24 * 3600

CONFIG_MAP_NAME = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"

ConfigMapName = Annotated[
    str,
    Worded(
        CONFIG_MAP_NAME,
        "a ConfigMap is named in small letters, digits, dashes and dots; write for example "
        '"prompts"',
        253,
    ),
]
DataKey = Annotated[
    str,
    Worded(
        r"^[A-Za-z0-9._-]+$",
        'a key has letters, digits and . _ -; write for example "system.jsonl"',
        253,
    ),
]


def _gate_holds(gate: Any) -> bool:
    if gate.timeout is None:
        return True
    try:
        return 0 < duration_s(gate.timeout) <= MAX_GATE_S
    except ValueError:
        return False


class ConfigMapPrompts(Model):
    """A ConfigMap of this namespace. It may come, change and go while engines run."""

    name: ConfigMapName
    """Name of the ConfigMap."""

    key: DataKey | None = None
    """The one key that is read. Default: all keys."""


class ClaimPrompts(Model):
    """Files of a claim of this namespace, for more than ConfigMaps hold."""

    claim_name: Claim
    """Name of the PersistentVolumeClaim. Replicas on several nodes need one that many nodes can
    mount."""

    path: str | None = Field(default=None, pattern=r"^[A-Za-z0-9._/-]*$", max_length=512)
    """File, or folder whose files are read. Default: the volume's root."""

    rules = (
        Rule(
            field="path",
            message="a path has no '..' and no leading '/'; write \"prompts/chat.jsonl\"",
            cel="!has(self.path) || !(self.path.startsWith('/') || "
            "self.path.matches(r'(^|/)[.][.](/|$)'))",
            holds=lambda claim: not claim.path or not re.search(r"^/|(^|/)\.\.(/|$)", claim.path),
        ),
    )


class PromptSource(Model):
    """Where prompts are: exactly one of the fields."""

    config_map: ConfigMapPrompts | None = None
    """A ConfigMap. A change restarts nothing."""

    persistent_volume_claim: ClaimPrompts | None = None
    """Files of a claim."""

    rules = (
        Rule(
            field="",
            message="name exactly one of configMap and persistentVolumeClaim; remove the other",
            cel="has(self.configMap) != has(self.persistentVolumeClaim)",
            holds=lambda source: (
                (source.config_map is None) != (source.persistent_volume_claim is None)
            ),
        ),
    )


class Gate(Model):
    """Clients get to a pod when its prompts are warmed. `{}` switches it on with its default."""

    timeout: str | None = Field(default=None, max_length=20)
    """How long a pod whose engine is ready may wait for that, in hours, minutes and seconds. Then
    it serves all the same, and the status says so. At most 24h. Default 5m."""

    rules = (
        Rule(
            field="timeout",
            message='a duration needs units (h, m or s), more than 0s and at most 24h; write "5m"',
            cel=f"!has(self.timeout) || (self.timeout.matches(r'{DURATION_PATTERN}') "
            "&& duration(self.timeout) > duration('0s') "
            "&& duration(self.timeout) <= duration('24h'))",
            seen="timeout",
            holds=_gate_holds,
        ),
    )


class FromPeers(Model):
    """A new pod also warms what engines that serve already use most."""

    max_tokens: int = Field(ge=1, le=100_000_000)
    """Most tokens that it takes over."""


class Warming(Model):
    prompts_from: list[PromptSource] = Field(default_factory=list, max_length=16)
    """Prompts in JSON, JSONL or plain text, warmed in this order, while no request runs. ConfigMaps
    may hold 4 MB together. Default: none."""

    gate: Gate | None = None
    """Keeps clients from a new pod until its prompts are warmed. Default: none, a pod serves while
    it warms; with fromPeers that of `{}`."""

    from_peers: FromPeers | None = None
    """Takes over the hottest prefixes of engines that serve already, before it is ready itself.
    Default: none."""
