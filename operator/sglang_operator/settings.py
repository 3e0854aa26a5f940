"""What a run of the operator is told: every command-line option, and nothing else."""

import os
import secrets
import socket
from dataclasses import dataclass, field
from pathlib import Path

from sglang_controllers.images import Images

SERVICE_ACCOUNT_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def new_identity() -> str:
    """A name no other process has, even one in the same pod after a restart."""
    return f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}"


def own_namespace() -> str:
    """The namespace of the pod this runs in, `default` outside a cluster."""
    try:
        return SERVICE_ACCOUNT_NAMESPACE.read_text().strip() or "default"
    except FileNotFoundError:
        return "default"


@dataclass(frozen=True, slots=True)
class Settings:
    """`namespaces` empty: all of them. `health_port` 0: any free one.

    `kubeconfig` None: the pod's service account if there is one, else what KUBECONFIG names.
    """

    namespaces: tuple[str, ...] = ()
    leader_election: bool = True
    lease_name: str = "sglang-operator"
    lease_namespace: str = field(default_factory=own_namespace)
    identity: str = field(default_factory=new_identity)
    health_port: int = 8080
    workers: int = 8
    resync_s: float = 60.0
    log_format: str = "json"
    log_level: str = "info"
    kubeconfig: Path | None = None
    images: Images = field(default_factory=Images)

    @property
    def scopes(self) -> tuple[str | None, ...]:
        """The namespaces to list and watch in, None standing for all at once."""
        return self.namespaces or (None,)
