"""What a raw spec asks for: the spec, understood, and the revisions it stands for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sglang_controllers.api import ClusterSpec, InvalidSpec, parse_spec
from sglang_controllers.arguments import argument_problems
from sglang_controllers.children import own_deployments, own_pods, spec_hash_of
from sglang_controllers.manifest import Manifest
from sglang_controllers.pods import revision_of
from sglang_controllers.podtemplate import router_template_problems, template_problems
from sglang_controllers.reasons import Reason
from sglang_controllers.resources.subject import Subject
from sglang_controllers.revision import (
    Revision,
    new_revision,
    router_hash,
    spec_hash,
    usual_names,
)
from sglang_controllers.routing import Routing, wanted_routers
from sglang_controllers.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Problems:
    """Why the current spec cannot be run at all."""

    reason: Reason
    messages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Current:
    """The spec, understood, and the revision it stands for."""

    spec: ClusterSpec
    revision: Revision


def understood(
    raw: Mapping[str, object], deployments: Iterable[Manifest]
) -> tuple[Current | None, Problems | None]:
    """`deployments` are the engines' that there are."""
    try:
        spec = parse_spec(raw)
    except InvalidSpec as error:
        return None, Problems(Reason.INVALID_SPEC, error.problems)
    current = Current(spec, _revision(spec_hash(raw), deployments))
    wrong = template_problems(spec.pod_template)
    if wrong := (*wrong, *router_template_problems(spec.router.pod_template)):
        return current, Problems(Reason.INVALID_SPEC, wrong)
    if wrong := argument_problems(spec):
        return current, Problems(Reason.BAD_ENGINE_ARGS, wrong)
    return current, None


def replicas_of(raw: Mapping[str, object]) -> int:
    """Wanted replicas of a spec that is otherwise not understood."""
    replicas = raw.get("replicas", 1)
    return replicas if isinstance(replicas, int) and replicas >= 0 else 1


def routing_of(snapshot: Snapshot, subject: Subject, current: Current | None) -> Routing:
    """The routers: as the spec wants them, or as they are while it is not understood."""
    deployments = own_deployments(snapshot, subject.router)
    pods = own_pods(snapshot, deployments)
    if current is None:
        if not deployments:
            return Routing()
        newest = deployments[-1]
        revision = Revision(revision_of(newest), spec_hash_of(newest) or "")
        wanted = (newest.get("spec") or {}).get("replicas", 1)
        return Routing(revision, wanted, pods, snapshot.router_reports)
    if current.spec.router.enabled is False:
        return Routing(None, 0, pods, snapshot.router_reports)
    raw = (snapshot.cluster.get("spec") or {}).get("router") or {}
    # Routers that go may take as long as engines.
    about_pods = {**raw, "drainTimeout": current.spec.engine.drain_timeout}
    revision = _revision(router_hash(about_pods), deployments)
    return Routing(revision, wanted_routers(current.spec.router), pods, snapshot.router_reports)


def _revision(whole: str, deployments: Iterable[Manifest]) -> Revision:
    """The revision of a hash: the one it was given when its Deployment was made, if it has one."""
    taken: set[str] = set()
    usual = usual_names(whole)
    for live in deployments:
        made_from = spec_hash_of(live)
        # Without the annotation, which somebody has removed, the name is as good a witness.
        if made_from == whole or (made_from is None and revision_of(live) in usual):
            return Revision(revision_of(live), whole)
        taken.add(revision_of(live))
    return new_revision(whole, taken)
