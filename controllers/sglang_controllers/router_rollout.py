"""Writes that bring the routers one step nearer to what is wanted.

New settings get a Deployment of their own; the old one goes when its successor serves. So a router
that cannot start takes nothing away. One that never served goes as soon as its settings are not
wanted any more: when what it lacked appears, it would serve with them, and with a withdrawn API key.
"""

from collections.abc import Iterable, Mapping

from sglang_controllers.api import ClusterSpec
from sglang_controllers.api.operation import Disruption
from sglang_controllers.drift import differs
from sglang_controllers.images import Images
from sglang_controllers.manifest import Manifest, ObjectKey, key_of
from sglang_controllers.ownership import is_ours
from sglang_controllers.plan import Apply, Delete
from sglang_controllers.pods import condition, revision_of
from sglang_controllers.resources.deployment import deployment_step
from sglang_controllers.resources.disruption_budget import disruption_budget
from sglang_controllers.resources.router_access import router_access
from sglang_controllers.resources.router_deployment import router_deployment
from sglang_controllers.resources.subject import Subject
from sglang_controllers.routing import Routing


def router_standing(subject: Subject) -> list[Manifest]:
    """What exists once a cluster has routers, whatever their settings."""
    router = subject.router
    return [*router_access(router), disruption_budget(router, Disruption())]


def router_objects(
    subject: Subject, spec: ClusterSpec, routing: Routing, live: Iterable[Manifest], images: Images
) -> list[Manifest]:
    """Objects that are wanted and written whole. `live` are the router Deployments there are."""
    if routing.revision is None:
        return []
    wanted = router_standing(subject)
    if routing.revision.name not in map(revision_of, live):
        wanted.append(router_deployment(subject.router, subject, spec, routing.revision, images))
    return wanted


def router_steps(
    subject: Subject,
    routing: Routing,
    live: Iterable[Manifest],
    children: Mapping[ObjectKey, Manifest],
    *,
    engines_serve: bool,
) -> tuple[tuple[Apply, ...], tuple[Delete, ...]]:
    """The scale of the wanted routers, and what is not wanted any more.

    `engines_serve`: there is an engine for a router to be ready with.
    """
    apply, gone = [], []
    replaced = routing.complete_but_for_older or (not engines_serve and routing.run_but_for_older)
    for deployment in live:
        revision = routing.revision
        if revision and revision_of(deployment) == revision.name:
            manifest = deployment_step(
                subject.router, revision.name, routing.wanted, revision.spec_hash, None
            )
            if differs(manifest, deployment):
                apply.append(Apply(manifest, deployment["metadata"]["uid"], complete=False))
        elif revision is None or replaced or _never_served(deployment):
            gone.append(_delete(deployment))
    if routing.revision is None:
        gone += [
            _delete(children[key])
            for key in map(key_of, router_standing(subject))
            if key in children
            and is_ours(children[key], subject)
            and not children[key]["metadata"].get("deletionTimestamp")
        ]
    return tuple(apply), tuple(gone)


COMPLETED = "NewReplicaSetAvailable"
"""Kubernetes' reason at a Deployment once all of its pods were available, and ever after."""


def _never_served(live: Manifest) -> bool:
    progress = condition(live, "Progressing")
    ready = (live.get("status") or {}).get("readyReplicas")
    return progress is not None and progress.get("reason") != COMPLETED and not ready


def _delete(live: Manifest) -> Delete:
    return Delete(live["kind"], live["metadata"]["name"], live["metadata"]["uid"])
