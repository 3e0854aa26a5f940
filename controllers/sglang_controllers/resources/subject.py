"""The cluster that objects are built for."""

from dataclasses import dataclass, replace
from typing import Self

from sglang_controllers.names import ROUTER_ROLE

UNIFIED = "unified"
"""The role whose engines do both prefill and decode."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Identity of an SGLangCluster and the role in question."""

    namespace: str
    name: str
    uid: str
    role: str = UNIFIED

    @property
    def router(self) -> Self:
        """The routers of the same cluster."""
        return replace(self, role=ROUTER_ROLE)

    @property
    def engines_service(self) -> str:
        return f"{self.name}-engines"

    @property
    def agents_service(self) -> str:
        return f"{self.name}-agents"

    @property
    def token_secret(self) -> str:
        return f"{self.name}-agent"

    @property
    def role_name(self) -> str:
        """Name of objects that exist once a role."""
        return f"{self.name}-{self.role}"

    def revision_name(self, revision: str) -> str:
        """Name of objects that exist once a revision."""
        return f"{self.role_name}-{revision}"

    @property
    def service_account(self) -> str:
        return f"{self.name}-engine"
