"""Which field is which argument of SGLang 0.5.23: the one table of typed settings.

It drives the arguments of engines, the check of `extraArgs` against typed fields, the settings
reference and the conversion of launch commands.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic.alias_generators import to_snake

from sglang_controllers.api.spec import ClusterSpec


class Kind(StrEnum):
    """How a field's value becomes an argument."""

    VALUE = "value"
    """`--flag=<the field's value>`"""

    SWITCH = "switch"
    """`--flag` when the field's value is `value`, else nothing"""

    PRESENCE = "presence"
    """`--flag=<value>` when the field is there, even if empty"""


@dataclass(frozen=True, slots=True)
class Setting:
    """`field` is its path below `spec`, `aliases` are other flags of the same argument.

    `within` names an object of the spec. The flag is the field's only while that object is there,
    because other features use the flag too; empty: it is always the field's.
    """

    field: str
    flag: str
    kind: Kind = Kind.VALUE
    value: str = ""
    aliases: tuple[str, ...] = ()
    within: str = ""


ENGINE_VERSION = "0.5.23"
"""The SGLang release that the table was checked with."""

NGRAM = "speculative.ngram"

SETTINGS: tuple[Setting, ...] = (
    Setting("engine.parallelism.tensor", "tp-size", aliases=("tensor-parallel-size",)),
    Setting("cache.eviction.policy", "radix-eviction-policy"),
    Setting("cache.pageSize", "page-size"),
    Setting("scheduling.policy", "schedule-policy"),
    Setting("scheduling.overlap.mode", "disable-overlap-schedule", Kind.SWITCH, "disabled"),
    Setting(NGRAM, "speculative-algorithm", Kind.PRESENCE, "NGRAM", within=NGRAM),
    Setting("speculative.ngram.numDraftTokens", "speculative-num-draft-tokens", within=NGRAM),
    Setting("speculative.ngram.maxTrieDepth", "speculative-ngram-max-trie-depth"),
    Setting("speculative.ngram.minBfsBreadth", "speculative-ngram-min-bfs-breadth"),
    Setting("speculative.ngram.maxBfsBreadth", "speculative-ngram-max-bfs-breadth"),
    Setting("speculative.ngram.matchType", "speculative-ngram-match-type"),
    Setting("speculative.ngram.capacity", "speculative-ngram-capacity"),
)


def field_value(spec: ClusterSpec, field: str) -> Any:
    """The value at a path below `spec` as users write it, None when unset."""
    value: Any = spec
    for part in field.split("."):
        value = None if value is None else getattr(value, to_snake(part))
    return value


@dataclass(frozen=True, slots=True)
class Reserved:
    """Flags that are the operator's. `fix` tells what to do instead of passing them."""

    flags: tuple[str, ...]
    fix: str


_ONE_POD = "one pod is one engine; remove it"
_PLAIN_HTTP = "probes and the Service speak plain HTTP; end TLS in front of the Service"
_SECRET = "a secret must not be an argument, anyone who sees the pod reads it; remove it"  # noqa: S105

RESERVED: tuple[Reserved, ...] = (
    Reserved(("model-path", "model"), "set spec.model.source"),
    Reserved(("served-model-name",), "set spec.model.servedName"),
    Reserved(("host", "port"), "the Service finds engines by it; remove it"),
    Reserved(("enable-metrics",), "it is always on; remove it"),
    Reserved(("nnodes", "node-rank", "dist-init-addr", "nccl-init-addr"), _ONE_POD),
    Reserved(("elastic-ep-join-mode", "elastic-ep-join-rank-offset"), _ONE_POD),
    Reserved(("use-ray",), _ONE_POD),
    Reserved(
        ("disaggregation-mode", "encoder-only", "enable-pd-role-switch"),
        "every engine of a cluster does the whole work; remove it",
    ),
    Reserved(
        ("smg-grpc-mode", "grpc-mode"),
        "it replaces the HTTP server that probes and the Service need; remove it",
    ),
    Reserved(("ssl-keyfile", "ssl-certfile", "ssl-ca-certs", "enable-ssl-refresh"), _PLAIN_HTTP),
    Reserved(
        ("api-key", "admin-api-key", "ssl-keyfile-password"),
        _SECRET,
    ),
    Reserved(("config",), "a file of arguments hides what runs; write them in extraArgs"),
    Reserved(("help", "h"), "it ends the engine; remove it"),
)
