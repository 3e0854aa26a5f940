"""Images that the operator brings along, as its installation names them."""

from dataclasses import dataclass

DEFAULT_AGENT = "docker.io/sglang-operator/agent:0.1.0"
DEFAULT_ROUTER = "docker.io/sglang-operator/router:0.1.0"


@dataclass(frozen=True, slots=True)
class Images:
    """`agent` runs beside each engine, `router` before them. What runs keeps its image."""

    agent: str = DEFAULT_AGENT
    router: str = DEFAULT_ROUTER
