"""The routers: which are wanted, whom the cluster's Service points to, and what routers see."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sglang_controllers.api.router import Router
from sglang_controllers.manifest import Manifest, ObjectKey
from sglang_controllers.names import ROLE_LABEL
from sglang_controllers.pods import is_alive, is_ready, revision_of, uid_of, worker_url
from sglang_controllers.reports import RouterReport
from sglang_controllers.resources.router_deployment import router_replicas
from sglang_controllers.resources.subject import Subject
from sglang_controllers.revision import Revision


@dataclass(frozen=True, slots=True)
class Routing:
    """Routers as they are wanted and as they are.

    `revision` None: none are wanted. `pods` are those of our router Deployments, the oldest first,
    `reports` what they answered, by pod uid.
    """

    revision: Revision | None = None
    wanted: int = 0
    pods: tuple[Manifest, ...] = ()
    reports: Mapping[str, RouterReport] = field(default_factory=dict)

    @property
    def enabled(self) -> bool:
        return self.revision is not None

    @property
    def ready(self) -> list[Manifest]:
        """Routers, of whatever revision, that clients may reach."""
        return [pod for pod in self.pods if is_ready(pod)]

    @property
    def updated(self) -> list[Manifest]:
        """Live routers of the wanted revision."""
        name = self.revision.name if self.revision else None
        return [pod for pod in self.pods if is_alive(pod) and revision_of(pod) == name]

    @property
    def older(self) -> list[Manifest]:
        name = self.revision.name if self.revision else None
        return [pod for pod in self.pods if is_alive(pod) and revision_of(pod) != name]

    @property
    def complete(self) -> bool:
        """As many as wanted are ready, and all that run are of the wanted revision."""
        return self.complete_but_for_older and not self.older

    @property
    def complete_but_for_older(self) -> bool:
        updated = self.updated
        return len(updated) == self.wanted and all(map(is_ready, updated))

    @property
    def run_but_for_older(self) -> bool:
        """As many as wanted run, whether they are ready or not: no router is without an engine."""
        updated = self.updated
        return len(updated) == self.wanted and all(map(_runs, updated))

    def seen(self, engine: Manifest) -> bool:
        """Whether no router is known not to send requests to an engine.

        A router that does not answer us is not known to lack anything.
        """
        url = worker_url(engine)
        return not any(
            workers is not None and url not in workers
            for workers in (self._workers(router) for router in self.ready)
        )

    def lacks(self, engine: Manifest) -> bool:
        """Whether an engine is ready and a router is known not to have found it."""
        return is_ready(engine) and not self.seen(engine)

    def reaches(self, engine: Manifest) -> bool:
        """Whether some router may send requests to an engine."""
        url = worker_url(engine)
        known = (self._workers(router) for router in self.ready)
        return any(workers is None or url in workers for workers in known)

    def proved(self, engines: Iterable[Manifest]) -> bool:
        """Whether every router has answered, and sees all of these engines."""
        urls = {worker_url(engine) for engine in engines}
        known = [self._workers(router) for router in self.ready]
        return bool(known) and all(workers is not None and urls <= workers for workers in known)

    def _workers(self, router: Manifest) -> frozenset[str] | None:
        report = self.reports.get(uid_of(router))
        return report.workers if report else None


def _runs(pod: Manifest) -> bool:
    status = pod.get("status") or {}
    statuses = status.get("containerStatuses") or []
    return status.get("phase") == "Running" and not any(
        (each.get("state") or {}).get("waiting") for each in statuses
    )


def points_to(
    spec: Router | None, subject: Subject, live: Mapping[ObjectKey, Manifest], routers: Routing
) -> Subject:
    """Whom the cluster's Service sends clients to. `spec` None: it cannot be told what is wanted.

    Where it points to engines, because there was no router until now, it goes on to until there
    is one.
    """
    if spec is not None and spec.enabled is False:
        return subject
    service: dict[str, Any] = live.get(ObjectKey("Service", subject.name)) or {}
    points = (service.get("spec") or {}).get("selector") or {}
    at_engines = points.get(ROLE_LABEL) == subject.role
    if spec is None:
        return subject if at_engines else subject.router
    if at_engines and spec.api_key_secret_ref is None and not routers.ready:
        return subject
    return subject.router


def wanted_routers(spec: Router) -> int:
    return 0 if spec.enabled is False else router_replicas(spec)
