"""Images that the operator brings along, as its installation names them."""

from dataclasses import dataclass

DEFAULT_AGENT = "docker.io/sglang-operator/agent:0.1.0"


@dataclass(frozen=True, slots=True)
class Images:
    """`agent` runs beside each engine. A running engine keeps the one that it was started with."""

    agent: str = DEFAULT_AGENT
