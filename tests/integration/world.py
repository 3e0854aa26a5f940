"""A namespace of its own on a real API server, and an operator that serves it."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sglang_controllers.manifest import Manifest
from sglang_controllers.names import (
    API_VERSION,
    CLUSTER_LABEL,
    KIND,
    MANIFEST_HASH_ANNOTATION,
    ROLE_LABEL,
    ROUTER_ROLE,
)
from sglang_controllers.planner import plan
from sglang_controllers.pods import role_of
from sglang_operator.execute import AfterWrite, Write
from sglang_operator.kube import MERGE_PATCH, ApiError, Kube
from sglang_operator.reconcile import Planner
from sglang_operator.resources import BY_KIND, CHILDREN, CLUSTERS, PODS, Resource
from sglang_operator.run import Operator
from sglang_operator.settings import Settings
from tests.integration.kubelet import NAMESPACES, FakeKubelet

PATIENCE_S = 90.0
"""For anything to come true. What must be fast is measured by its own test.

The garbage collector of a new control plane takes up to 30 s to see a new kind of owner.
"""

POLL_S = 0.05

VOLATILE = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields")


@dataclass
class World:
    """Helpers around one namespace."""

    kube: Kube
    kubelet: FakeKubelet
    kubeconfig: Path
    namespace: str
    writes: list[Write] = field(default_factory=list)

    async def create(self, name: str = "chat", **spec: Any) -> Manifest:
        whole = {"replicas": 1, "model": {"source": "image:///models/m"}, **spec}
        return await self.kube.create(CLUSTERS, self.manifest(name, whole))

    def manifest(self, name: str, spec: Mapping[str, Any]) -> Manifest:
        metadata = {"name": name, "namespace": self.namespace}
        return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": dict(spec)}

    async def change(self, name: str = "chat", **spec: Any) -> Manifest:
        """Merge into the spec; None removes a field."""
        return await self.patch(CLUSTERS, name, {"spec": spec})

    async def patch(self, resource: Resource, name: str, patch: object) -> Manifest:
        return await self.kube.patch(resource, self.namespace, name, patch, MERGE_PATCH)

    async def delete(self, resource: Resource, name: str) -> None:
        live = await self.kube.get(resource, self.namespace, name)
        await self.kube.delete(resource, self.namespace, name, live["metadata"]["uid"])

    async def get(self, kind: str, name: str) -> Manifest | None:
        """A live object, None: there is none."""
        try:
            return await self.kube.get(BY_KIND[kind], self.namespace, name)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def ready(self, name: str = "chat") -> Mapping[str, Any]:
        """The Ready condition of the current generation; empty: there is none yet."""
        live = await self.get(KIND, name)
        status = (live or {}).get("status") or {}
        conditions = {c["type"]: c for c in status.get("conditions") or ()}
        found: Mapping[str, Any] = conditions.get("Ready", {})
        if live is None or found.get("observedGeneration") != live["metadata"]["generation"]:
            return {}
        return found

    async def until_serving(self, name: str = "chat") -> None:
        """Ready, and nothing of older revisions left."""

        async def serving() -> bool:
            return (
                (await self.ready(name)).get("status") == "True"
                and len(await self.deployments(name)) == 1
                and len(await self.deployments(name, ROUTER_ROLE)) <= 1
            )

        await self.until(serving, f"{name} serves")

    async def until_reason(self, reason: str, name: str = "chat") -> Mapping[str, Any]:
        """The Ready condition, once it gives this reason."""

        async def given() -> bool:
            return (await self.ready(name)).get("reason") == reason

        await self.until(given, f"{name} says {reason}")
        return await self.ready(name)

    async def until(self, true: Callable[[], Awaitable[bool]], what: str) -> float:
        """Wait for something to come true; the answer is how many seconds it took."""
        return await until(true, what, self.explain)

    async def children(self, name: str | None = None) -> list[Manifest]:
        """Everything the operator made, of one cluster or of all, in a fixed order."""
        selectors = {"labelSelector": f"{CLUSTER_LABEL}={name}" if name else CLUSTER_LABEL}
        found: list[Manifest] = []
        for resource in CHILDREN:
            listing = await self.kube.list_all(resource, self.namespace, selectors=selectors)
            found += listing.items
        return sorted(found, key=lambda item: (item["kind"], item["metadata"]["name"]))

    async def deployments(self, name: str | None = None, role: str = "unified") -> list[Manifest]:
        """Of the engines, or of another role."""
        found = [item for item in await self.children(name) if item["kind"] == "Deployment"]
        return [item for item in found if role_of(item) == role]

    async def pods(self, role: str = "unified") -> list[Manifest]:
        """The engines', or those of another role."""
        selectors = {"labelSelector": f"{CLUSTER_LABEL},{ROLE_LABEL}={role}"}
        return list((await self.kube.list_all(PODS, self.namespace, selectors=selectors)).items)

    async def state(self, name: str = "chat") -> dict[str, Manifest]:
        """What a cluster has become, without what differs between two equal ones."""
        live = await self.get(KIND, name)
        parts = {
            f"{i['kind']}/{i['metadata']['name']}": _lasting(i) for i in await self.children(name)
        }
        whole = {**parts, KIND: _lasting_status(live)} if live else parts
        # Routers are told where to look for engines.
        anywhere: dict[str, Manifest] = json.loads(json.dumps(whole).replace(self.namespace, "NS"))
        return anywhere

    async def versions(self) -> dict[str, str]:
        """Resource versions of everything the operator could write to."""
        clusters = await self.kube.list_all(CLUSTERS, self.namespace, selectors={})
        items = [*clusters.items, *await self.children()]
        return {
            f"{i['kind']}/{i['metadata']['name']}": i["metadata"]["resourceVersion"] for i in items
        }

    async def explain(self) -> str:
        clusters = await self.kube.list_all(CLUSTERS, self.namespace, selectors={})
        told = [f"{c['metadata']['name']}: {c.get('status')}" for c in clusters.items]
        names = [f"{i['kind']}/{i['metadata']['name']}" for i in await self.children()]
        pods = [(p["metadata"]["name"], p["status"].get("phase")) for p in await self.pods()]
        return "\n".join([*told, *names, *map(str, pods), *map(str, self.writes[-20:])])

    def settings(self, **changes: Any) -> Settings:
        given: dict[str, Any] = {
            "namespaces": (self.namespace,),
            "leader_election": False,
            "lease_namespace": self.namespace,
            "health_port": 0,
            "resync_s": 2.0,
            "kubeconfig": self.kubeconfig,
        }
        return Settings(**{**given, **changes})

    @asynccontextmanager
    async def operator(
        self,
        *,
        planner: Planner = plan,
        after_write: AfterWrite | None = None,
        **settings: Any,
    ) -> AsyncIterator[Operator]:
        """A running operator that has seen everything, stopped in order at the end."""

        async def note(write: Write) -> None:
            self.writes.append(write)
            if after_write is not None:
                await after_write(write)

        operator = Operator(self.settings(**settings), plan=planner, after_write=note)
        task = asyncio.create_task(operator.run(), name="operator")
        try:
            await until_synced(operator, task)
            yield operator
        finally:
            operator.stop()
            await task


async def until_synced(operator: Operator, task: asyncio.Task[None]) -> None:
    async def synced() -> bool:
        if task.done():
            await task
        return operator.health_port != 0 and operator.synced

    await until(synced, "the operator has listed everything")


async def until(
    true: Callable[[], Awaitable[bool]],
    what: str,
    explain: Callable[[], Awaitable[str]] | None = None,
    patience_s: float = PATIENCE_S,
) -> float:
    """Wait for something to come true; the answer is how many seconds it took."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    while not await true():
        if loop.time() - started > patience_s:
            told = await explain() if explain else ""
            raise AssertionError(f"not within {patience_s:.0f} s: {what}\n{told}")
        await asyncio.sleep(POLL_S)
    return loop.time() - started


@asynccontextmanager
async def fresh_namespace(kube: Kube) -> AsyncIterator[str]:
    """Deleted at the end, without waiting for it."""
    name = f"test-{secrets.token_hex(4)}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await kube.request("POST", "/api/v1/namespaces", body=body)
    account = Resource("ServiceAccount", "", "v1", "serviceaccounts")

    async def usable() -> bool:
        try:
            await kube.get(account, name, "default")
        except ApiError:
            return False
        return True

    await until(usable, f"namespace {name} has its service account")
    try:
        yield name
    finally:
        await kube.request("DELETE", f"/api/v1/{NAMESPACES.plural}/{name}")


def _lasting(item: Manifest) -> Manifest:
    metadata = {k: v for k, v in item["metadata"].items() if k not in VOLATILE}
    metadata.pop("namespace")
    annotations = dict(metadata.get("annotations") or {})
    # Counted by the Deployment controller; and a hash that holds the cluster's uid.
    for name in ("deployment.kubernetes.io/revision", MANIFEST_HASH_ANNOTATION):
        annotations.pop(name, None)
    owners = metadata.get("ownerReferences") or ()
    metadata["annotations"] = annotations
    metadata["ownerReferences"] = [(o["kind"], o["name"]) for o in owners]
    rest = {k: v for k, v in item.items() if k not in ("metadata", "status")}
    spec = dict(rest.get("spec") or {})
    for allocated in ("clusterIP", "clusterIPs"):
        spec.pop(allocated, None)
    return {**rest, "metadata": metadata, "spec": spec}


def _lasting_status(cluster: Manifest) -> Manifest:
    status = dict(cluster.get("status") or {})
    status.pop("observedGeneration", None)
    times = ("lastTransitionTime", "observedGeneration")
    conditions = status.get("conditions") or ()
    status["conditions"] = [{k: v for k, v in c.items() if k not in times} for c in conditions]
    return status
