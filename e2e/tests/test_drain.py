"""An engine that has to go finishes what it has begun; its agent may die meanwhile."""

import json
import time
from collections.abc import Iterator

import pytest

from e2e.tests.inside import KILL, SLOW
from e2e.tests.kube import (
    ENGINE_IMAGE,
    NO_ACCELERATOR,
    Manifest,
    Namespace,
    a_cluster,
    drain_cut_told,
    drains_cut,
    in_flight,
    on_gpu_nodes,
    restricted_pod,
    wait_for,
)

STREAM = """
import json, sys, urllib.request

url, tokens = sys.argv[1], int(sys.argv[2])
body = {
    "text": "Tell me a story.",
    "stream": True,
    "sampling_params": {"max_new_tokens": tokens, "ignore_eos": True, "temperature": 0},
}
request = urllib.request.Request(
    url + "/generate", json.dumps(body).encode(), {"Content-Type": "application/json"}
)
seen, end = 0, ""
try:
    for line in urllib.request.urlopen(request, timeout=60):
        if line.startswith(b"data: {"):
            info = json.loads(line[6:])["meta_info"]
            if not seen:
                print("begun", flush=True)
            seen, end = info["completion_tokens"], info["finish_reason"] or end
except Exception as error:
    print("broken", repr(error), flush=True)
print("seen", seen, "end", json.dumps(end), flush=True)
"""
"""A client: says when its stream has begun, and at the end how much it got."""

SOON_S = 30
"""From the end of the last request to the end of the pod."""


def client(name: str, cluster: str, tokens: int) -> Manifest:
    container = {
        "name": "client",
        "image": ENGINE_IMAGE,
        "command": ["python3", "-c", STREAM],
        "args": [f"http://{cluster}-engines:8000", str(tokens)],
    }
    pod = restricted_pod(name, container)
    where = {"nodeSelector": {"sglang.dev/pool": "gpu"}, "tolerations": [{"operator": "Exists"}]}
    return pod | {"spec": pod["spec"] | where}


@pytest.fixture(scope="module")
def drains(namespace: Namespace) -> Iterator[Namespace]:
    """Two clusters: one with time enough, and one without."""
    long = NO_ACCELERATOR | {"drainTimeout": "2m"}
    short = NO_ACCELERATOR | {"drainTimeout": "8s"}
    namespace.apply(
        on_gpu_nodes(a_cluster("patient", long)), on_gpu_nodes(a_cluster("hasty", short))
    )
    namespace.wait_ready("patient")
    namespace.wait_ready("hasty")
    yield namespace
    namespace.kubectl("delete", "pods", "--ignore-not-found", *CLIENTS)


CLIENTS = ("survives", "undisturbed", "cut", "stays")


def begun(namespace: Namespace, name: str, cluster: str, tokens: int) -> None:
    """A client whose stream is under way."""
    namespace.apply(client(name, cluster, tokens))
    wait_for(lambda: "begun" in log(namespace, name), 60, lambda: log(namespace, name))


def log(namespace: Namespace, name: str) -> str:
    return namespace.kubectl("logs", name, check=False)


def ended(namespace: Namespace, name: str, timeout_s: float) -> str:
    wait_for(lambda: "seen" in log(namespace, name), timeout_s, lambda: log(namespace, name))
    return log(namespace, name)


def gone(namespace: Namespace, pod: Manifest, timeout_s: float) -> None:
    name = pod["metadata"]["name"]
    namespace.kubectl("wait", "--for=delete", f"pod/{name}", f"--timeout={timeout_s}s")


def test_an_agent_that_is_killed_disturbs_no_request(drains: Namespace) -> None:
    (pod,) = drains.pods("patient")
    begun(drains, "undisturbed", "patient", 1500)

    drains.inside(pod, KILL, "agent")

    said = ended(drains, "undisturbed", 120)
    assert "broken" not in said
    assert "seen 1500" in said
    drains.wait_ready("patient", 30)
    (after,) = drains.pods("patient")
    agent = next(s for s in after["status"]["initContainerStatuses"] if s["name"] == "agent")
    assert (agent["restartCount"], agent["ready"]) == (1, True)
    assert after["status"]["containerStatuses"][0]["restartCount"] == 0


def test_a_stream_outlives_the_deletion_of_its_engine(drains: Namespace) -> None:
    (pod,) = drains.pods("patient")
    begun(drains, "survives", "patient", 3000)

    drains.kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false")
    said = ended(drains, "survives", 150)

    assert "broken" not in said
    assert "seen 3000" in said
    assert json.loads(said.rpartition("end ")[2])["type"] == "length"
    gone(drains, pod, SOON_S)


def test_a_scale_in_takes_the_engine_without_work(drains: Namespace) -> None:
    drains.kubectl("scale", "sglc", "patient", "--replicas=2")
    drains.wait_ready("patient")
    begun(drains, "stays", "patient", 3500)
    busy = [pod for pod in drains.pods("patient") if in_flight(drains, pod)]

    drains.kubectl("scale", "sglc", "patient", "--replicas=1")
    wait_for(lambda: len(drains.pods("patient")) == 1, 60)

    (left,) = drains.pods("patient")
    assert [left["metadata"]["uid"]] == [pod["metadata"]["uid"] for pod in busy]
    assert "seen 3500" in ended(drains, "stays", 150)


def test_a_drain_ends_at_its_time_out_and_is_told(drains: Namespace) -> None:
    (pod,) = drains.pods("hasty")
    begun(drains, "cut", "hasty", 2000)
    drains.inside(pod, SLOW)
    start = time.monotonic()

    drains.kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false")
    gone(drains, pod, 70)

    assert time.monotonic() - start > 8
    assert ended(drains, "cut", 30).rstrip().endswith('end ""')
    wait_for(lambda: drain_cut_told(drains, pod), 30)
    assert drains_cut(drains) == 1
