"""What fails behind or beside the routers costs what was in flight there, and nothing more."""

import time
from collections.abc import Iterator

import pytest

from e2e.tests.inside import KILL, SLOW
from e2e.tests.kube import (
    NO_ACCELERATOR,
    ROUTER,
    Manifest,
    Namespace,
    a_cluster,
    drain_cut_told,
    drains_cut,
    get,
    in_flight,
    is_ready,
    kubectl,
    on_gpu_nodes,
    paused,
    wait_for,
)
from e2e.tests.load import REPEATS, Load, Request, report

NAME = "router"
OPERATOR = ("-n", "sglang-system")

pytestmark = pytest.mark.timeout(600)
"""Engines start slowly beside a load."""

LONG = 600
"""Tokens: such a request takes so long that some are always in flight."""

REACTION_S = 2
"""From the death of an engine until no router sends it anything."""

OUT_S = 14
"""From an engine's silence until it gets no more requests: two health checks 2 s apart, each of
which waits 5 s for an answer, and 2 s for the next to begin."""

PAUSED_S = 36
"""Less than Kubernetes needs to give the node up."""

ANSWERED_S = 10
"""A short request, by an engine that has to do the work of two."""

SPREAD_S = 5
"""Until every node sends clients to routers that have just become ready."""

BACK_S = 120
MISSING = "docker.io/sglang-operator/missing:dev"


@pytest.fixture(scope="module", params=range(REPEATS), autouse=True)
def _again() -> None:
    """All of them so often, round after round (`make soak`)."""


@pytest.fixture(scope="module")
def load(namespace: Namespace, request: pytest.FixtureRequest) -> Iterator[Load]:
    """Two engines behind their routers, and clients with long requests."""
    engine = NO_ACCELERATOR | {"drainTimeout": "8s"}
    namespace.apply(on_gpu_nodes(a_cluster(NAME, engine, replicas=2, router={})))
    namespace.wait_ready(NAME)
    load = Load(namespace, f"http://{NAME}:8000/v1", NAME, long=LONG)
    load.start()
    yield load
    load.stop()
    report(request.config, load, "router-faults")


def a_busy_engine(namespace: Namespace) -> Manifest:
    """One with at least two requests in flight just now."""
    found: list[Manifest] = []

    def busy() -> bool:
        found[:] = [pod for pod in namespace.pods(NAME) if in_flight(namespace, pod) >= 2]
        return bool(found)

    wait_for(busy, 60)
    return found[0]


def restarts(namespace: Namespace, pod: Manifest) -> int:
    live = get("-n", namespace.name, "pod", pod["metadata"]["name"])
    return int(live["status"]["containerStatuses"][0]["restartCount"])


def lost_after(requests: list[Request], moment: float) -> list[Request]:
    return [r for r in requests if r.outcome != "ok" and r.start > moment]


def test_a_killed_engine_costs_what_it_had_in_flight(namespace: Namespace, load: Load) -> None:
    with load.event("engine kill -9") as event:
        pod = a_busy_engine(namespace)
        before = restarts(namespace, pod)
        killed = time.time()
        namespace.inside(pod, KILL, "engine")
        time.sleep(REACTION_S)
        wait_for(lambda: restarts(namespace, pod) == before + 1, 60)
        namespace.wait_ready(NAME)

    # Not all that was in flight: routers send again what had no answer yet.
    assert not lost_after(event.requests, killed + REACTION_S), event.explain()


def test_an_engine_on_a_silent_node_gets_no_more_requests(namespace: Namespace, load: Load) -> None:
    first, second = (pod["spec"]["nodeName"] for pod in namespace.pods(NAME))
    assert first != second, "one engine has to be left"

    with load.event("node paused") as event:
        with paused(first):
            silent = time.time()
            time.sleep(PAUSED_S)
            back = time.time()
        namespace.wait_ready(NAME)

    later = [r for r in event.requests if silent + OUT_S < r.start < back]
    assert later
    assert all(r.outcome == "ok" for r in later), event.explain()
    # Those that a silent engine holds end only when its node is back.
    soon = [r for r in later if r.tokens < LONG and r.start < back - ANSWERED_S]
    stuck = [r for r in soon if r.end > back]
    assert soon
    assert not stuck, "\n".join(request.told(event.begin) for request in stuck)


def test_routers_come_back_without_the_operator(namespace: Namespace, load: Load) -> None:
    before = {pod["metadata"]["uid"] for pod in namespace.pods(NAME, ROUTER)}

    def new_ones_serve() -> bool:
        pods = namespace.pods(NAME, ROUTER)
        fresh = before.isdisjoint(pod["metadata"]["uid"] for pod in pods)
        return len(pods) == len(before) and fresh and all(map(is_ready, pods))

    with load.event("all routers killed, no operator") as event:
        kubectl(*OPERATOR, "scale", "deployment", "--all", "--replicas=0")
        try:
            gone = ("wait", "--for=delete", "pods", "--all", "--timeout=60s")
            kubectl(*OPERATOR, *gone)
            routers = f"-l=sglang.dev/cluster={NAME},sglang.dev/role={ROUTER}"
            namespace.kubectl("delete", "pods", routers, "--force", "--grace-period=0")
            wait_for(new_ones_serve, BACK_S)
            back = time.time()
            time.sleep(2 * SPREAD_S)
        finally:
            kubectl(*OPERATOR, "scale", "deployment", "--all", "--replicas=1")
            kubectl(*OPERATOR, "rollout", "status", "deployment", f"--timeout={BACK_S}s")

    assert [r for r in event.requests if r.start > back + SPREAD_S]
    assert not lost_after(event.requests, back + SPREAD_S), event.explain()


@pytest.mark.soak  # test_drain has one without a load
def test_a_drain_that_is_cut_is_told_and_counted(namespace: Namespace, load: Load) -> None:
    with load.event("drain cut") as event:
        pod = a_busy_engine(namespace)
        namespace.inside(pod, SLOW)
        wait_for(lambda: in_flight(namespace, pod) >= 1, 60)  # what it has now stays
        deleted = time.time()
        namespace.kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false")
        wait_for(lambda: len(namespace.all_pods(NAME)) == 3, 30)
        wait_for(lambda: len(namespace.all_pods(NAME)) == 2, BACK_S)
        namespace.wait_ready(NAME)

    assert not lost_after(event.requests, deleted + REACTION_S), event.explain()
    assert drain_cut_told(namespace, pod)
    assert drains_cut(namespace) == 1


def test_between_the_faults_nothing_was_lost(load: Load) -> None:
    between = load.between_events()

    assert not between.lost(), between.explain()


def test_without_routers_engines_serve_on_their_own_service(namespace: Namespace) -> None:
    router = {"podTemplate": {"spec": {"containers": [{"name": "router", "image": MISSING}]}}}
    namespace.apply(on_gpu_nodes(a_cluster("routerless", NO_ACCELERATOR, router=router)))

    wait_for(lambda: any(map(is_ready, namespace.pods("routerless"))), 300)
    message = namespace.wait_reason("routerless", "ImagePull")

    assert MISSING in message
    assert "router" in message
    assert namespace.server_info("routerless")["served_model_name"] == "routerless"
