"""Metrics of each cluster's pods."""

from collections.abc import Iterable
from typing import Any

import pytest

from sglang_controllers import names
from sglang_controllers.manifest import Manifest
from sglang_controllers.reports import EngineReport, RouterReport
from sglang_operator.answers import MAX_IN_FLIGHT
from sglang_operator.cache import Cache
from sglang_operator.metrics import Metrics
from sglang_operator.polls import Reports
from tests.builders import NOW, a_cluster, a_pod

CHAT = 'cluster="chat",namespace="team"'
DRAINED = '{"drain": {"outcome": "drained", "seconds": 8.0, "in_flight": 0}}'
CUT = '{"drain": {"outcome": "cut", "seconds": 60.0, "in_flight": 3}}'


def running(name: str, role: str = "unified", *, going: bool = False) -> Manifest:
    pod = a_pod(name=name, phase="Running", podIP="10.0.0.1")
    pod["metadata"]["labels"][names.ROLE_LABEL] = role
    if going:
        pod["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z"
    return pod


def ended(name: str, message: str) -> Manifest:
    state = {"terminated": {"exitCode": 0, "message": message}}
    return a_pod(name=name, initContainerStatuses=[{"name": "agent", "state": state}])


def cached(*items: Manifest) -> Cache:
    cache = Cache()
    for item in items:
        item["metadata"]["resourceVersion"] = "1"
        cache.put(item)
    return cache


def samples(metrics: Metrics, *families: str) -> list[str]:
    text = metrics.exposition().decode()
    return [line for line in text.splitlines() if line.startswith(families)]


def asked(pods: Iterable[Manifest], reports: Reports) -> list[str]:
    """What is said of a cluster with these pods."""
    metrics = Metrics(cached(a_cluster(), *pods), lambda: 0, dict, lambda _: reports)
    names_ = ("router_workers", "in_flight", "agents_unknown")
    lines = samples(metrics, *(f"sglang_operator_{name}" for name in names_))
    return [line.removeprefix("sglang_operator_").replace("{" + CHAT + "}", "") for line in lines]


def engine(in_flight: int | None) -> EngineReport:
    return EngineReport(NOW, in_flight, has_token=True)


def router(*workers: str) -> RouterReport:
    return RouterReport(NOW, frozenset(workers))


ENGINES = [running("a"), running("b")]
ROUTERS = [running("r", "router"), running("s", "router")]


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        ({"uid-a": engine(2), "uid-b": engine(3)}, ["in_flight 5.0", "agents_unknown 0.0"]),
        ({"uid-a": engine(2), "uid-b": engine(None)}, ["in_flight 2.0", "agents_unknown 1.0"]),
        ({"uid-a": engine(0)}, ["in_flight 0.0", "agents_unknown 1.0"]),
        ({"uid-a": engine(None)}, ["agents_unknown 2.0"]),
        ({}, ["agents_unknown 2.0"]),
    ],
)
def test_what_is_in_flight_is_the_sum_of_what_is_known(
    reports: dict[str, EngineReport], expected: list[str]
) -> None:
    assert asked(ENGINES, Reports(engines=reports)) == expected


def test_where_no_engine_runs_nothing_is_in_flight() -> None:
    assert asked([a_pod()], Reports()) == ["in_flight 0.0", "agents_unknown 0.0"]


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        ({"uid-r": router("a", "b"), "uid-s": router("a")}, ["router_workers 1.0"]),
        ({"uid-r": router("a", "b"), "uid-s": router()}, ["router_workers 0.0"]),
        ({"uid-r": router("a", "b"), "uid-s": RouterReport(NOW, None)}, ["router_workers 2.0"]),
        ({"uid-s": router("a")}, ["router_workers 1.0"]),
        ({"uid-r": RouterReport(NOW, None)}, []),
        ({}, []),
    ],
)
def test_workers_are_those_of_the_router_that_sees_fewest(
    reports: dict[str, RouterReport], expected: list[str]
) -> None:
    lines = asked(ROUTERS, Reports(routers=reports))

    assert [line for line in lines if line.startswith("router")] == expected


def test_a_router_on_its_way_out_does_not_count() -> None:
    pods = [running("r", "router", going=True), running("s", "router")]
    reports = Reports(routers={"uid-r": router(), "uid-s": router("a")})

    assert "router_workers 1.0" in asked(pods, reports)


def test_routers_are_no_engines() -> None:
    assert "agents_unknown 0.0" in asked(ROUTERS, Reports())


def test_where_pods_are_not_asked_nothing_is_said_of_them() -> None:
    metrics = Metrics(cached(a_cluster(), *ENGINES, *ROUTERS), lambda: 0, dict)

    lines = samples(metrics, "sglang_operator_in", "sglang_operator_a", "sglang_operator_router")
    assert lines == []


def drains(metrics: Metrics) -> dict[str, float]:
    """Counts of the cluster `chat` by outcome."""
    start = f"sglang_operator_drains_total{{{CHAT},outcome="
    lines = [line.removeprefix(start).split("} ") for line in samples(metrics, start)]
    return {outcome.strip('"'): float(count) for outcome, count in lines}


def test_drains_are_counted_once_per_pod() -> None:
    metrics = Metrics(cached(a_cluster()), lambda: 0, dict)
    assert drains(metrics) == {"drained": 0, "cut": 0, "restarted": 0}

    told = [metrics.saw_pod(pod) for pod in [ended("a", DRAINED)] * 3]
    for pod in (ended("b", CUT), ended("c", CUT), ended("d", "no JSON"), running("e")):
        metrics.saw_pod(pod)

    assert drains(metrics) == {"drained": 1, "cut": 2, "restarted": 0}
    assert [drain is not None for drain in told] == [True, False, False]


def test_drains_of_one_cluster_are_not_those_of_another() -> None:
    other = a_cluster(name="other", uid="uid-2")
    metrics = Metrics(cached(a_cluster(), other), lambda: 0, dict)
    metrics.exposition()

    metrics.saw_pod(ended("a", CUT))

    assert drains(metrics)["cut"] == 1
    text = metrics.exposition().decode()
    assert 'drains_total{cluster="other",namespace="team",outcome="cut"} 0.0' in text


def test_a_cluster_that_is_gone_takes_its_counts_along() -> None:
    cluster = a_cluster()
    cache = cached(cluster)
    metrics = Metrics(cache, lambda: 0, dict)
    metrics.saw_pod(ended("a", CUT))

    cache.remove(cluster)
    metrics.saw_pod(ended("b", CUT))

    assert drains(metrics) == {}
    assert metrics._fleet._drains == {}


def test_a_pod_of_no_cluster_counts_nowhere() -> None:
    metrics = Metrics(cached(a_cluster()), lambda: 0, dict)
    pod: dict[str, Any] = ended("a", CUT)
    del pod["metadata"]["labels"]

    assert metrics.saw_pod(pod) is None
    assert drains(metrics)["cut"] == 0


def test_the_most_that_pods_may_say_can_be_added_up() -> None:
    most = {f"uid-{number}": engine(MAX_IN_FLIGHT) for number in range(3)}
    pods = [running(str(number)) for number in range(3)]

    assert "in_flight 3e+06" in asked(pods, Reports(engines=most))
