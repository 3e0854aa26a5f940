"""What a scheduler and a kubelet would do to pods, where there are no nodes."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sglang_controllers.manifest import Manifest
from sglang_controllers.names import CLUSTER_LABEL
from sglang_controllers.pods import is_ready
from sglang_operator.kube import MERGE_PATCH, ApiError, Kube, KubeError, load_configuration
from sglang_operator.resources import LEASES, PODS, Resource
from tests.integration.pod_answers import PodAnswers

NODE = "test-node"
NODES = Resource("Node", "", "v1", "nodes")
NAMESPACES = Resource("Namespace", "", "v1", "namespaces")
POLL_S = 0.1
BEAT_S = 5.0

Fate = Callable[[Manifest], str]
"""Decides over a pod: ready, gated, pending, unschedulable, image, crash, or oom."""


def always(fate: str) -> Fate:
    return lambda _: fate


def by_image(**fates: str) -> Fate:
    """The fate of the first word that the engine's image contains; ready without one."""

    def decide(pod: Manifest) -> str:
        images = [c["image"] for c in pod["spec"]["containers"] if c["name"] == "engine"]
        image = images[0] if images else ""  # a router has no engine
        return next((fate for word, fate in fates.items() if word in image), "ready")

    return decide


class FakeKubelet:
    """Serves every pod of every SGLangCluster from a thread of its own."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._fates: dict[str, Fate] = {}
        self._met: dict[str, str] = {}
        self.answers = PodAnswers()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(timeout=10)

    def decide(self, namespace: str, fate: Fate | str) -> None:
        """From now on, pods of the namespace meet this fate. Ready without one."""
        self._fates[namespace] = always(fate) if isinstance(fate, str) else fate

    async def _run(self) -> None:
        configuration = await load_configuration(self._kubeconfig)
        async with Kube(configuration) as kube, self.answers:
            await self._register(kube)
            beating = asyncio.create_task(self._live(kube))
            while not self._ended.is_set():
                with suppress(KubeError):
                    await self._serve(kube)
                await asyncio.sleep(POLL_S)
            beating.cancel()

    async def _live(self, kube: Kube) -> None:
        while True:
            with suppress(KubeError):
                await self._beat(kube)
            await asyncio.sleep(BEAT_S)

    async def _register(self, kube: Kube) -> None:
        """A node that is ready: pods on nodes that do not exist are collected as garbage."""
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
        lease = {
            "apiVersion": LEASES.api_version,
            "kind": "Lease",
            "metadata": {"name": NODE, "namespace": "kube-node-lease"},
            "spec": {"holderIdentity": NODE, "leaseDurationSeconds": 40},
        }
        for path, body in (("/api/v1/nodes", node), (LEASES.path("kube-node-lease"), lease)):
            try:
                await kube.request("POST", path, body=body)
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise

    async def _beat(self, kube: Kube) -> None:
        now = datetime.now(UTC)
        renewed = {"spec": {"renewTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}}
        path = LEASES.path("kube-node-lease", NODE)
        await kube.request("PATCH", path, body=renewed, content_type=MERGE_PATCH)
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
        status = {"conditions": [{**ready, "lastHeartbeatTime": _stamp(now)}]}
        path = f"/api/v1/nodes/{NODE}/status"
        await kube.request("PATCH", path, body={"status": status}, content_type=MERGE_PATCH)

    async def _serve(self, kube: Kube) -> None:
        selectors = {"labelSelector": CLUSTER_LABEL}
        listing = await kube.list_all(PODS, None, selectors=selectors)
        for pod in listing.items:
            fate = self._fates.get(pod["metadata"]["namespace"], always("ready"))
            decided = "deleted" if "deletionTimestamp" in pod["metadata"] else fate(pod)
            uid = pod["metadata"]["uid"]
            # A busy machine may be late with the node's heartbeat, which makes pods unready.
            lost = decided == "ready" and not is_ready(pod)
            if self._met.get(uid) != decided or lost:
                with suppress(ApiError):  # gone or changed meanwhile: the next round sees
                    await _meet(kube, pod, decided, self.answers.address)
                    self._met[uid] = decided


async def _meet(kube: Kube, pod: Manifest, fate: str, address: str) -> None:
    """Bring one pod a step nearer to its fate."""
    metadata, spec = pod["metadata"], pod["spec"]
    path = PODS.path(metadata["namespace"], metadata["name"])
    if fate == "deleted":
        await kube.request("DELETE", path, body={"gracePeriodSeconds": 0})
        return
    if fate == "pending":
        return
    if fate == "unschedulable":
        await _set_status(kube, pod, {"conditions": [_unschedulable()]})
        return
    if "nodeName" not in spec:
        target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
        about = {"name": metadata["name"], "namespace": metadata["namespace"]}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": about, "target": target}
        await kube.request("POST", f"{path}/binding", body=binding)
    where = {"podIP": address, "podIPs": [{"ip": address}]}
    await _set_status(kube, pod, _status(pod, fate) | where)


async def _set_status(kube: Kube, pod: Manifest, status: Manifest) -> None:
    now = _stamp(datetime.now(UTC))
    known = pod.get("status") or {}
    before = {c["type"]: c for c in known.get("conditions") or ()}
    for condition in status["conditions"]:
        old = before.get(condition["type"]) or {}
        same = old.get("status") == condition["status"]
        condition["lastTransitionTime"] = old.get("lastTransitionTime", now) if same else now
    path = PODS.path(pod["metadata"]["namespace"], pod["metadata"]["name"], "status")
    await kube.request("PATCH", path, body={"status": status}, content_type=MERGE_PATCH)


def _status(pod: Manifest, fate: str) -> Manifest:
    ready = "True" if fate == "ready" else "False"
    return {
        "phase": "Running" if fate in ("ready", "gated", "crash", "oom") else "Pending",
        "conditions": [
            {"type": "PodScheduled", "status": "True"},
            {"type": "Ready", "status": ready},
            {"type": "ContainersReady", "status": ready},
        ],
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": fate in ("ready", "gated"),
                "restartCount": 0,
                **_container(fate),
            }
            for container in pod["spec"]["containers"]
        ],
    }


def _container(fate: str) -> dict[str, Any]:
    back_off = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting"}}
    match fate:
        case "ready" | "gated":
            return {"started": True, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
        case "image":
            waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "x"'}
            return {"started": False, "state": {"waiting": waiting}}
        case "crash":
            ended = {"exitCode": 1, "reason": "Error", "message": "ValueError: no such option"}
        case "oom":
            ended = {"exitCode": 137, "reason": "OOMKilled", "message": ""}
        case _:
            raise ValueError(f"no such fate: {fate}")
    times = {"startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:01Z"}
    return {"started": False, "state": back_off, "lastState": {"terminated": {**ended, **times}}}


def _unschedulable() -> dict[str, Any]:
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
    }


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
