"""Under a steady load two engines are changed, moved and taken away: no request is ever lost."""

import json
import time
from collections.abc import Iterator

import pytest

from e2e.tests.inside import KILL
from e2e.tests.kube import (
    NO_ACCELERATOR,
    ROUTER,
    Manifest,
    Namespace,
    a_cluster,
    get,
    is_ready,
    kubectl,
    on_gpu_nodes,
    wait_for,
)
from e2e.tests.load import REPEATS, Load, report

NAME = "lost"
OPERATOR = ("-n", "sglang-system")

pytestmark = pytest.mark.timeout(900)
"""Engines start slowly beside a load."""

MOST = 1.5
"""Requests a second. With more, engines start for minutes on two cores."""

AGENT_BACK_S = 5
MOVED_S = 400
"""Two starts, beside a load, on a machine that has other work."""

RESET = ("ServerDisconnectedError", "ClientOSError", "ConnectionResetError")
"""What a client sees when the connection that it keeps is closed while it writes."""


@pytest.fixture(scope="module", params=range(REPEATS), autouse=True)
def _again() -> None:
    """All of them so often, round after round (`make soak`)."""


@pytest.fixture(scope="module")
def load(namespace: Namespace, request: pytest.FixtureRequest) -> Iterator[Load]:
    """Two engines behind their routers, and clients that do not stop."""
    engine = NO_ACCELERATOR | {"drainTimeout": "1m"}
    namespace.apply(on_gpu_nodes(a_cluster(NAME, engine, replicas=2, router={})))
    namespace.wait_ready(NAME, MOVED_S)
    load = Load(namespace, f"http://{NAME}:8000/v1", NAME, most=MOST)
    load.start()
    yield load
    load.stop()
    report(request.config, load, "no-request-lost")


def whole(namespace: Namespace) -> None:
    """Two engines serve, and none is on its way out any more."""
    wait_for(lambda: len(namespace.all_pods(NAME)) == 2, MOVED_S)
    namespace.wait_ready(NAME, MOVED_S)


def another_eviction_policy(namespace: Namespace) -> None:
    now = namespace.cluster(NAME)["spec"].get("cache", {}).get("eviction", {}).get("policy")
    change = {"spec": {"cache": {"eviction": {"policy": "lru" if now == "lfu" else "lfu"}}}}
    namespace.kubectl("patch", "sglc", NAME, "--type=merge", f"-p={json.dumps(change)}")


def revisions(namespace: Namespace) -> set[str]:
    return {pod["metadata"]["labels"]["sglang.dev/revision"] for pod in namespace.pods(NAME)}


def agent_of(namespace: Namespace, name: str) -> Manifest:
    pod = get("-n", namespace.name, "pod", name)
    statuses = pod["status"]["initContainerStatuses"]
    return next(dict(status) for status in statuses if status["name"] == "agent")


@pytest.mark.soak  # that in which the operator is killed is one, too
def test_a_rolling_update_loses_nothing(namespace: Namespace, load: Load) -> None:
    with load.event("rolling update") as event:
        another_eviction_policy(namespace)
        namespace.wait_ready(NAME, MOVED_S)
        whole(namespace)

    assert not event.lost(), event.explain()


@pytest.mark.soak  # test_drain has one without a load
def test_a_scale_in_aborts_no_request(namespace: Namespace, load: Load) -> None:
    with load.event("scale 2 -> 1 -> 2") as event:
        namespace.kubectl("scale", "sglc", NAME, "--replicas=1")
        wait_for(lambda: len(namespace.all_pods(NAME)) == 1, MOVED_S)
        namespace.kubectl("scale", "sglc", NAME, "--replicas=2")
        whole(namespace)

    assert not event.lost(), event.explain()


@pytest.mark.soak  # the same
def test_an_evicted_engine_loses_nothing(namespace: Namespace, load: Load) -> None:
    (name, _) = (pod["metadata"]["name"] for pod in namespace.pods(NAME))
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace.name},
    }
    path = f"/api/v1/namespaces/{namespace.name}/pods/{name}/eviction"

    with load.event("pod eviction") as event:
        kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))
        wait_for(lambda: name not in str(namespace.all_pods(NAME)), MOVED_S)
        whole(namespace)

    assert not event.lost(), event.explain()


@pytest.mark.soak  # engines go in the same way when they are updated
def test_a_drained_node_loses_nothing(namespace: Namespace, load: Load) -> None:
    node = namespace.pods(NAME)[0]["spec"]["nodeName"]
    ours = f"--pod-selector=sglang.dev/cluster={NAME}"

    with load.event("node drain") as event:
        try:
            options = ("--ignore-daemonsets", "--delete-emptydir-data", f"--timeout={MOVED_S}s")
            kubectl("drain", node, ours, *options)
            whole(namespace)
        finally:
            kubectl("uncordon", node)

    assert not event.lost(), event.explain()
    assert node not in {pod["spec"]["nodeName"] for pod in namespace.pods(NAME)}


def test_an_operator_killed_in_the_middle_of_an_update_loses_nothing(
    namespace: Namespace, load: Load
) -> None:
    with load.event("operator killed midway") as event:
        another_eviction_policy(namespace)
        wait_for(lambda: len(revisions(namespace)) == 2, 60)
        kubectl(*OPERATOR, "delete", "pods", "--all", "--force", "--grace-period=0")
        namespace.wait_ready(NAME, MOVED_S)
        whole(namespace)

    assert not event.lost(), event.explain()
    assert len(revisions(namespace)) == 1


def test_a_killed_agent_loses_nothing_and_is_back_at_once(namespace: Namespace, load: Load) -> None:
    pod = namespace.pods(NAME)[0]
    name = pod["metadata"]["name"]
    before = agent_of(namespace, name)["restartCount"]

    with load.event("agent killed") as event:
        namespace.inside(pod, KILL, "agent")
        killed = time.monotonic()
        wait_for(lambda: agent_of(namespace, name)["restartCount"] == before + 1, AGENT_BACK_S)
        wait_for(lambda: is_ready(get("-n", namespace.name, "pod", name)), AGENT_BACK_S)
        took_s = time.monotonic() - killed

    assert not event.lost(), event.explain()
    assert took_s <= AGENT_BACK_S


def test_new_routers_cost_the_sdk_nothing(namespace: Namespace, load: Load) -> None:
    """When smg goes, it closes connections that clients keep.

    One that is writing just then, and does not try again, loses that request. The SDK tries again.
    """
    before = {pod["metadata"]["uid"] for pod in namespace.pods(NAME, ROUTER)}
    now = namespace.cluster(NAME)["spec"].get("router", {}).get("policy")
    policy = "cache_aware" if now == "least_load" else "least_load"
    change = {"spec": {"router": {"policy": policy}}}

    with load.event("router rollout") as event:
        namespace.kubectl("patch", "sglc", NAME, "--type=merge", f"-p={json.dumps(change)}")
        wait_for(
            lambda: before.isdisjoint(
                p["metadata"]["uid"] for p in namespace.all_pods(NAME, ROUTER)
            ),
            MOVED_S,
        )
        namespace.wait_ready(NAME, MOVED_S)

    assert not event.lost("sdk"), event.explain()
    assert all(r.error.startswith(RESET) for r in event.lost("raw")), event.explain()
    assert all(r.outcome != "truncated" for r in event.requests), event.explain()


def test_between_the_events_nothing_was_lost_either(load: Load) -> None:
    between = load.between_events()

    assert not between.lost(), between.explain()
