"""A small world for the planner: API server, Deployment controller, scheduler and kubelet.

It keeps only what the planner reads. tests/integration and e2e check the same stories against the
real ones.
"""

from collections.abc import Callable
from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any

from sglang_controllers import names
from sglang_controllers.manifest import Manifest, ObjectKey, key_of
from sglang_controllers.plan import Plan
from sglang_controllers.planner import plan
from sglang_controllers.pods import (
    condition,
    is_alive,
    is_ready,
    revision_of,
    role_of,
    worker_url,
)
from sglang_controllers.reports import EngineReport, RouterReport, WarmingReport
from sglang_controllers.router_rollout import COMPLETED
from sglang_controllers.snapshot import Snapshot
from sglang_controllers.warming.sources import Source, digests_of
from tests.builders import NOW, a_cluster

GOOD, BROKEN = "good", "broken"


class World:
    """One cluster in a world with `slots` free places for its pods."""

    def __init__(self, cluster: Manifest, slots: int = 100) -> None:
        self.cluster = cluster
        self.slots = slots
        self.now: datetime = NOW
        self.children: dict[ObjectKey, Manifest] = {}
        self.pods: list[Manifest] = []
        self.behaviour: Callable[[str], str] = lambda _revision: GOOD
        self.unplaced = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
        self.quota = 1000
        self.loads: dict[str, int] = {}
        self.talk = True
        self.tokens = True
        self.sources: dict[str, Source | None] = {}
        self.warming: Callable[[str], WarmingReport | None] = lambda _pod: None
        self.report_age = timedelta()
        self.serial = 0
        self.writes = 0

    def snapshot(self) -> Snapshot:
        engines = {
            pod["metadata"]["uid"]: EngineReport(
                self.now - self.report_age,
                self.loads.get(_name(pod), 0),
                self.tokens,
                self.warming(_name(pod)),
            )
            for pod in self.pods
            if not is_router(pod) and is_ready(pod)
        }
        sees = {str(worker_url(pod)) for pod in self.engines if is_ready(pod)}
        routers = {
            pod["metadata"]["uid"]: RouterReport(self.now, frozenset(sees) if self.talk else None)
            for pod in self.pods
            if is_router(pod) and is_ready(pod)
        }
        return deepcopy(
            Snapshot(
                self.cluster,
                self.now,
                dict(self.children),
                tuple(self.pods),
                engine_reports=engines,
                router_reports=routers,
                warming_sources=dict(self.sources),
            )
        )

    def reconcile(self, stop_after: int | None = None) -> Plan:
        """Plan and execute; only the first `stop_after` writes when given, as in a crash."""
        answer = plan(self.snapshot())
        self.execute(answer, stop_after)
        return answer

    def execute(self, answer: Plan, stop_after: int | None = None) -> None:
        writes: list[Callable[[], None]] = [
            *(lambda m=m: self._create(m) for m in answer.create),
            *(lambda a=a: self._apply(a.manifest, a.uid) for a in answer.apply),
            *(lambda d=d: self._delete(d.kind, d.name, d.uid) for d in answer.delete),
        ]
        if answer.status is not None:
            writes.append(lambda: self.cluster.update(status=deepcopy(answer.status)))
        for write in writes[:stop_after]:
            write()
            self.writes += 1

    def live(self, turns: int = 1) -> None:
        """Let the other controllers do one thing each, `turns` times."""
        for _ in range(turns):
            self.now += timedelta(seconds=20)
            self._deployments()
            self._kubelet()
            self._progress()

    def turns(self, count: int) -> None:
        """Reconcile and live, again and again."""
        for _ in range(count):
            self.reconcile()
            self.live()

    def settle(self, turns: int = 60) -> None:
        """Reconcile and live until nothing is written any more."""
        for _ in range(turns):
            before, moving = self.writes, self._pending_change()
            self.reconcile()
            self.live()
            if self.writes == before and not moving and not self._pending_change():
                return

    @property
    def engines(self) -> list[Manifest]:
        return [pod for pod in self.pods if not is_router(pod)]

    @property
    def routers(self) -> list[Manifest]:
        return [pod for pod in self.pods if is_router(pod)]

    def ready(self, revision: str | None = None) -> int:
        return sum(is_ready(p) for p in self.engines if revision in (None, revision_of(p)))

    def revisions(self) -> dict[str, int]:
        """Live engines by revision."""
        counts: dict[str, int] = {}
        for pod in filter(is_alive, self.engines):
            counts[revision_of(pod)] = counts.get(revision_of(pod), 0) + 1
        return counts

    def condition(self, type_: str) -> dict[str, Any] | None:
        found = self.cluster.get("status", {}).get("conditions", [])
        return next((c for c in found if c["type"] == type_), None)

    def change(self, **spec: Any) -> None:
        self.cluster["spec"].update(spec)
        self.cluster["metadata"]["generation"] += 1

    def _create(self, manifest: Manifest) -> None:
        key = key_of(manifest)
        if key not in self.children:
            self.serial += 1
            live = _as_cached(manifest)
            live["metadata"] |= {
                "uid": f"child-{self.serial}",
                "creationTimestamp": self.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
            self.children[key] = live

    def _apply(self, manifest: Manifest, uid: str) -> None:
        live = self.children.get(key_of(manifest))
        if manifest["kind"] == "Pod":
            live = next((p for p in self.pods if _name(p) == manifest["metadata"]["name"]), None)
        if live and live["metadata"]["uid"] == uid:
            _lay(live, _as_cached(manifest))

    def _delete(self, kind: str, name: str, uid: str) -> None:
        live = self.children.get(ObjectKey(kind, name))
        if live and live["metadata"]["uid"] == uid:
            del self.children[ObjectKey(kind, name)]

    def _deployments(self) -> None:
        self.pods = [pod for pod in self.pods if is_alive(pod)]
        deployments = {
            revision_of(live): live
            for key, live in self.children.items()
            if key.kind == "Deployment"
        }
        wanted = {name: live["spec"]["replicas"] for name, live in deployments.items()}
        for pod in self.pods:
            if revision_of(pod) not in wanted:
                _leave(pod)
        for revision, count in wanted.items():
            mine = [p for p in self.pods if revision_of(p) == revision and is_alive(p)]
            mine.sort(key=lambda pod: (is_ready(pod), _cost(pod)), reverse=True)
            for pod in mine[count:]:
                _leave(pod)
            for _ in range(count - len(mine)):
                refused = len(self.engines) >= self.quota
                self._replica_failure(revision, refused)
                if not refused:
                    self.pods.append(self._new_pod(revision, role_of(deployments[revision])))

    def _replica_failure(self, revision: str, refused: bool) -> None:
        for key, live in self.children.items():
            if key.kind == "Deployment" and revision_of(live) == revision:
                live.setdefault("status", {})
                _become(live, "ReplicaFailure", str(refused), self.now)
                failure = condition(live, "ReplicaFailure") or {}
                failure["message"] = 'exceeded quota: "gpus"'

    def _progress(self) -> None:
        """Once all pods of a Deployment were available, it says so for ever."""
        for key, live in self.children.items():
            if key.kind == "Deployment":
                mine = [p for p in self.pods if revision_of(p) == revision_of(live)]
                ready = [pod for pod in mine if is_ready(pod)]
                live.setdefault("status", {})["readyReplicas"] = len(ready)
                before = condition(live, "Progressing") or {}
                complete = before.get("reason") == COMPLETED or 0 < len(mine) == len(ready)
                _become(live, "Progressing", "True", self.now)
                found = condition(live, "Progressing") or {}
                found["reason"] = COMPLETED if complete else "ReplicaSetUpdated"

    def _new_pod(self, revision: str, role: str) -> Manifest:
        self.serial += 1
        gpu = {} if role == names.ROUTER_ROLE else {"nvidia.com/gpu": "1"}
        return {
            "metadata": {
                "name": f"pod-{self.serial}",
                "uid": f"pod-{self.serial}",
                "creationTimestamp": self.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "labels": {names.REVISION_LABEL: revision, names.ROLE_LABEL: role},
            },
            "spec": {"containers": [{"name": role, "resources": {"limits": gpu}}]},
            "status": {"phase": "Pending", "podIP": f"10.0.0.{self.serial}"},
        }

    def _kubelet(self) -> None:
        for pod in self.pods:
            if not pod["spec"].get("nodeName"):
                self._schedule(pod)
            elif is_router(pod) and self._runs_idle(pod):
                _become(pod, "Ready", "False", self.now)
                pod["status"]["phase"] = "Running"
            elif self.behaviour(revision_of(pod)) == GOOD:
                _become(pod, "Ready", "True", self.now)
                pod["status"]["phase"] = "Running"
            else:
                pod["status"]["containerStatuses"] = [
                    {
                        "name": "engine",
                        "ready": False,
                        "state": {
                            "waiting": {"reason": "ErrImagePull", "message": "no such image"}
                        },
                    }
                ]

    def _runs_idle(self, router: Manifest) -> bool:
        """It runs, and there is no engine for it to be ready with."""
        good = self.behaviour(revision_of(router)) == GOOD
        return good and not any(map(is_ready, self.engines))

    def _schedule(self, pod: Manifest) -> None:
        used = sum(1 for other in self.engines if other["spec"].get("nodeName"))
        if is_router(pod) or used < self.slots:
            pod["spec"]["nodeName"] = "node"
            _become(pod, "PodScheduled", "True", self.now)
        else:
            _become(pod, "PodScheduled", "False", self.now)
            scheduled = pod["status"]["conditions"][0]
            scheduled["reason"] = "Unschedulable"
            scheduled["message"] = self.unplaced

    def _pending_change(self) -> bool:
        """Something moves by itself: a pod that leaves, starts, or waits for its patience to end."""
        return any(
            not is_ready(pod) and self.behaviour(revision_of(pod)) == GOOD
            for pod in self.pods
            if not is_router(pod) or any(map(is_ready, self.engines))
        )


def a_serving_world(slots: int = 100, **spec: Any) -> World:
    world = World(a_cluster(**spec), slots)
    world.settle()
    assert reason(world) in ("Serving", "ScaledToZero")
    return world


def engines_key(world: World) -> ObjectKey:
    """The engines' Deployment, where there is one revision."""
    (key,) = (
        key
        for key, live in world.children.items()
        if key.kind == "Deployment" and role_of(live) != names.ROUTER_ROLE
    )
    return key


def is_router(pod: Manifest) -> bool:
    return bool(pod["metadata"]["labels"].get(names.ROLE_LABEL) == names.ROUTER_ROLE)


def _name(pod: Manifest) -> str:
    return str(pod["metadata"]["name"])


def _cost(pod: Manifest) -> int:
    return int(pod["metadata"].get("annotations", {}).get(names.DELETION_COST, 0))


def reason(world: World) -> str:
    ready = world.condition("Ready")
    assert ready is not None
    return str(ready["reason"])


def _become(pod: Manifest, type_: str, status: str, now: datetime) -> None:
    conditions = pod["status"].setdefault("conditions", [])
    old = next((c for c in conditions if c["type"] == type_), None)
    if old and old["status"] == status:
        return
    stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    if old:
        conditions.remove(old)
    conditions.insert(0, {"type": type_, "status": status, "lastTransitionTime": stamp})


def _as_cached(manifest: Manifest) -> Manifest:
    """Of a ConfigMap that may change, digests stand for its content."""
    live = deepcopy(manifest)
    if manifest["kind"] == "ConfigMap" and not manifest.get("immutable"):
        live["digests"] = digests_of(live)
        live.pop("data", None)
        live.pop("binaryData", None)
    return live


def _leave(pod: Manifest) -> None:
    pod["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z"


def _lay(live: dict[str, Any], manifest: dict[str, Any]) -> None:
    for key, value in manifest.items():
        if isinstance(value, dict) and isinstance(live.get(key), dict):
            _lay(live[key], value)
        else:
            live[key] = deepcopy(value)
