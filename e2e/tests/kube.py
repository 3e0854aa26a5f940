"""kubectl, as a user has it, for tests on the kind cluster."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from typing import Any

Manifest = dict[str, Any]

ENGINE_IMAGE = "docker.io/sglang-operator/engine-cpu:dev"
MODEL = "oci://docker.io/sglang-operator/tiny:dev"
"""Random weights: it starts fast and answers nonsense, which is enough to be Ready."""

ENGINE = "unified"
ROUTER = "router"
"""Roles of pods."""

CPU_ENGINE: Manifest = {
    "image": ENGINE_IMAGE,
    "accelerator": {"count": 1},
    "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"memory": "4Gi"}},
    "drainTimeout": "5s",
    "sharedMemory": "256Mi",
    "extraArgs": {
        "device": "cpu",
        "max-total-tokens": 4096,
        "sleep-on-idle": True,
    },
    "attentionBackend": "intel_amx",
}


class UnreachableError(AssertionError):
    """The API server did not answer."""


TRIES = 3


def kubectl(*arguments: str, stdin: str | None = None, check: bool = True) -> str:
    """What kubectl prints; with check=False also what it complains about."""
    done = subprocess.run(
        ["kubectl", *arguments], input=stdin, capture_output=True, text=True, check=False
    )
    if check and done.returncode:
        unreachable = "Unable to connect to the server" in done.stderr
        error = UnreachableError if unreachable else AssertionError
        raise error(f"kubectl {' '.join(arguments)}: {done.stderr}")
    return done.stdout if check else done.stdout + done.stderr


def get(*arguments: str) -> Manifest:
    """As JSON. An API server that has no time to answer at the moment is asked again."""
    for _ in range(TRIES - 1):
        with suppress(UnreachableError):
            return _got(*arguments)
    return _got(*arguments)


def _got(*arguments: str) -> Manifest:
    answer: Manifest = json.loads(kubectl("get", *arguments, "-o", "json"))
    return answer


class Namespace:
    """One namespace and what tests do in it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        return kubectl("-n", self.name, *arguments, stdin=stdin, check=check)

    def apply(self, *manifests: Manifest) -> None:
        listing = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        self.kubectl("apply", "-f", "-", stdin=json.dumps(listing))

    def refused(self, manifest: Manifest) -> str:
        """What kubectl apply says when it refuses."""
        said = self.kubectl("apply", "-f", "-", stdin=json.dumps(manifest), check=False)
        assert "created" not in said, said
        return said

    def cluster(self, name: str) -> Manifest:
        return get("-n", self.name, "sglangcluster", name)

    def condition(self, name: str, type_: str) -> Manifest:
        """The condition, empty while there is none or it is about an older spec."""
        cluster = self.cluster(name)
        for condition in cluster.get("status", {}).get("conditions", []):
            fresh = condition.get("observedGeneration") == cluster["metadata"]["generation"]
            if condition["type"] == type_ and fresh:
                return dict(condition)
        return {}

    def pods(self, cluster: str, role: str = ENGINE) -> list[Manifest]:
        """Pods of a role that are not on their way out."""
        found = self.all_pods(cluster, role)
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def all_pods(self, cluster: str, role: str = ENGINE) -> list[Manifest]:
        """Those on their way out too."""
        labels = f"sglang.dev/cluster={cluster},sglang.dev/role={role}"
        return list(get("-n", self.name, "pods", "-l", labels)["items"])

    def inside(self, pod: Manifest, program: str, *arguments: str) -> None:
        """Run it in the engine's container. It may end the container, and with it itself."""
        name = pod["metadata"]["name"]
        run = ("python3", "-c", program, *arguments)
        self.kubectl("exec", name, "-c", "engine", "--", *run, check=False)

    def wait_ready(self, name: str, timeout_s: float = 300) -> None:
        wait_for(
            lambda: self.condition(name, "Ready").get("status") == "True",
            timeout_s,
            lambda: f"{name}: {self.condition(name, 'Ready')}",
        )

    def wait_reason(self, name: str, reason: str, timeout_s: float = 60) -> str:
        """Wait until Ready is False for that reason; its message."""
        ready: Manifest = {}

        def told() -> bool:
            ready.clear()
            ready.update(self.condition(name, "Ready"))
            return ready.get("reason") == reason

        wait_for(told, timeout_s, lambda: f"{name}: wanted {reason}, is {ready}")
        assert ready["status"] == "False"
        return str(ready["message"])

    def server_info(self, cluster: str) -> Manifest:
        """What an engine says of itself, asked through the engines' own Service."""
        service = f"{cluster}-engines:http"
        path = f"/api/v1/namespaces/{self.name}/services/{service}/proxy/server_info"
        info: Manifest = json.loads(kubectl("get", "--raw", path))
        return info


@contextmanager
def paused(node: str) -> Iterator[None]:
    """The node stands still, as if its power were gone, and goes on at the end."""
    subprocess.run(["docker", "pause", node], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["docker", "unpause", node], check=True, capture_output=True)
        kubectl("wait", "--for=condition=Ready", f"node/{node}", "--timeout=60s")


def is_ready(pod: Manifest) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def in_flight(namespace: Namespace, pod: Manifest) -> float:
    """What the engine's agent says; 0 while it does not know."""
    path = f"/api/v1/namespaces/{namespace.name}/pods/{pod['metadata']['name']}:30001/proxy/metrics"
    values = [
        float(line.split()[-1])
        for line in kubectl("get", "--raw", path).splitlines()
        if line.startswith("sglang_agent_in_flight")
    ]
    return sum(values)


def wait_for(
    true: Callable[[], bool], timeout_s: float, explain: Callable[[], str] = lambda: ""
) -> None:
    end = time.monotonic() + timeout_s
    while not true():
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout_s} s: {explain()}")
        time.sleep(1)


def a_cluster(name: str, engine: Manifest | None = None, **spec: Any) -> Manifest:
    """An SGLangCluster with the CPU engine and a tiny model; `engine` adds to its settings.

    It has no routers unless `router` is given: they all fit on one node only as long as they are few.
    """
    whole = deepcopy(CPU_ENGINE) | (engine or {})
    spec = {"router": {"enabled": False}} | spec
    model = {"source": MODEL, "dtype": "float32"} | spec.pop("model", {})
    return {
        "apiVersion": "sglang.dev/v1alpha1",
        "kind": "SGLangCluster",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "model": model, "engine": whole, **spec},
    }


NO_ACCELERATOR: Manifest = {"accelerator": {"count": 0}}
"""Engine settings of faults: the healthy clusters keep the accelerators."""


def on_gpu_nodes(cluster: Manifest) -> Manifest:
    """Only the GPU workers hold the engine's image; without an accelerator it must be said."""
    cluster["spec"]["podTemplate"] = {
        "spec": {
            "nodeSelector": {"sglang.dev/pool": "gpu"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        }
    }
    return cluster


def restricted_pod(name: str, container: Manifest) -> Manifest:
    """A pod of one container that runs once, as restricted Pod Security wants it."""
    locked = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 1000,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [{**container, "securityContext": locked}],
        },
    }


def with_arguments(**arguments: Any) -> Manifest:
    """Engine settings with these extraArgs beside the usual ones."""
    extra = {key.replace("_", "-"): value for key, value in arguments.items()}
    return {"extraArgs": {**CPU_ENGINE["extraArgs"], **extra}}


def drain_cut_told(namespace: Namespace, pod: Manifest) -> bool:
    """Whether an event tells that requests of this pod were cut."""
    events = get("-n", namespace.name, "events")["items"]
    cut = [event["message"] for event in events if event["reason"] == "DrainCut"]
    return any(pod["metadata"]["name"] in message for message in cut)


def drains_cut(namespace: Namespace) -> float:
    """How many, as the operator counts them."""
    (operator,) = get("-n", "sglang-system", "pods")["items"]
    name = operator["metadata"]["name"]
    path = f"/api/v1/namespaces/sglang-system/pods/{name}:8080/proxy/metrics"
    wanted = ("sglang_operator_drains", f'namespace="{namespace.name}"', 'outcome="cut"')
    return sum(
        float(line.split()[-1])
        for line in kubectl("get", "--raw", path).splitlines()
        if all(part in line for part in wanted)
    )
