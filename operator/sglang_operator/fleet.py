"""Metrics of each cluster's pods: what they said when they were last asked, and their drains."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sglang_controllers.manifest import Manifest
from sglang_controllers.pods import is_alive
from sglang_operator.cache import Cache, Key, uid_of
from sglang_operator.drains import OUTCOMES
from sglang_operator.polls import Reports
from sglang_operator.targets import is_asked, is_router

CLUSTER = ("namespace", "cluster")


class Fleet(Collector):
    """Everything is read when somebody scrapes, but drains, which are counted.

    Clusters that are gone take their figures along.
    """

    def __init__(self, cache: Cache, reports: Callable[[Key], Reports] | None) -> None:
        self._cache = cache
        self._reports = reports
        self._drains: dict[Key, dict[str, int]] = {}

    def drained(self, key: Key, outcome: str) -> None:
        self._drains.setdefault(key, _none())[outcome] += 1

    def collect(self) -> Iterator[Metric]:
        keys = [key for key, _ in self._cache.clusters()]
        yield self._counted(keys)
        if self._reports is not None:
            yield from self._asked(keys, self._reports)

    def _counted(self, keys: Iterable[Key]) -> Metric:
        drains = CounterMetricFamily(
            "sglang_operator_drains",
            "Drains of engines, by how they ended, that this process has seen.",
            labels=[*CLUSTER, "outcome"],
        )
        # Also without any: a rate needs the zero before the first one.
        self._drains = {key: self._drains.get(key) or _none() for key in keys}
        for key, counts in self._drains.items():
            for outcome, count in counts.items():
                drains.add_metric([*key, outcome], count)
        return drains

    def _asked(self, keys: Iterable[Key], reports: Callable[[Key], Reports]) -> Iterator[Metric]:
        workers = GaugeMetricFamily(
            "sglang_operator_router_workers",
            "Engines that the router which sees fewest sends requests to. No sample: unknown.",
            labels=CLUSTER,
        )
        in_flight = GaugeMetricFamily(
            "sglang_operator_in_flight",
            "Requests that the engines owe somebody, of those whose agent told. No sample: none.",
            labels=CLUSTER,
        )
        unknown = GaugeMetricFamily(
            "sglang_operator_agents_unknown",
            "Running engines whose requests in flight are unknown, mostly as no agent answers.",
            labels=CLUSTER,
        )
        for key in keys:
            said = reports(key)
            pods = [pod for pod in self._cache.entry(key).pods.values() if is_asked(pod)]
            seen = fewest_workers(pods, said)
            if seen is not None:
                workers.add_metric(key, seen)
            loads = [load_of(pod, said) for pod in pods if not is_router(pod)]
            known = [load for load in loads if load is not None]
            if known or not loads:
                in_flight.add_metric(key, sum(known))
            unknown.add_metric(key, len(loads) - len(known))
        yield from (workers, in_flight, unknown)


def _none() -> dict[str, int]:
    return dict.fromkeys(OUTCOMES, 0)


def fewest_workers(pods: Iterable[Manifest], said: Reports) -> int | None:
    """Of the routers that stay and have answered. None: there is none."""
    routers = [said.routers.get(uid_of(pod)) for pod in pods if is_router(pod) and is_alive(pod)]
    seen = [len(each.workers) for each in routers if each and each.workers is not None]
    return min(seen, default=None)


def load_of(pod: Manifest, said: Reports) -> int | None:
    """Requests in flight at an engine, None: unknown."""
    report = said.engines.get(uid_of(pod))
    return report.in_flight if report else None
