"""Prometheus metrics. Each operator has its own registry: tests run several in one process."""

from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sglang_controllers.manifest import Manifest
from sglang_controllers.reports import Drain
from sglang_operator.cache import Cache, Key, key_of
from sglang_operator.drains import Drains
from sglang_operator.execute import Write
from sglang_operator.fleet import Fleet
from sglang_operator.polls import Reports

PHASES = ("Ready", "Reconciling", "Stalled", "Unknown")


class Metrics:
    """`queue_depth`, `watch_ages` and `reports` are read when somebody scrapes.

    `reports` None: pods are not asked, and there is nothing to say of what they know.
    """

    def __init__(
        self,
        cache: Cache,
        queue_depth: Callable[[], int],
        watch_ages: Callable[[], Mapping[tuple[str, str], float]],
        reports: Callable[[Key], Reports] | None = None,
    ) -> None:
        self.registry = CollectorRegistry()
        self._reconciles = Histogram(
            "sglang_operator_reconcile_seconds",
            "Time of one reconcile, by its outcome.",
            ["outcome"],
            registry=self.registry,
        )
        self._writes = Counter(
            "sglang_operator_writes",
            "Requests that write, by verb, kind and outcome.",
            ["verb", "kind", "outcome"],
            registry=self.registry,
        )
        self.queue_wait = Histogram(
            "sglang_operator_queue_wait_seconds",
            "Time from when a cluster was due until a worker took it.",
            registry=self.registry,
        )
        self.leading = Gauge(
            "sglang_operator_leading",
            "1 where this process may write, else 0.",
            registry=self.registry,
        )
        self.watch_restarts = Counter(
            "sglang_operator_watch_restarts",
            "Times the watches ended and were started again.",
            registry=self.registry,
        )
        build = Info("sglang_operator_build", "What runs here.", registry=self.registry)
        build.info({"version": version("sglang-operator"), "kopf": version("kopf")})
        self.registry.register(_Live(cache, queue_depth, watch_ages))
        self._drains = Drains()
        self._fleet = Fleet(cache, reports)
        self.registry.register(self._fleet)

    def reconciled(self, outcome: str, seconds: float) -> None:
        self._reconciles.labels(outcome).observe(seconds)

    def wrote(self, write: Write, outcome: str) -> None:
        self._writes.labels(write.verb, write.kind, outcome).inc()

    def saw_pod(self, pod: Manifest) -> Drain | None:
        """There was an event of a pod. The drain that it tells of, if this is news of one."""
        key = key_of(pod)
        drain = self._drains.news(pod) if key else None
        if key and drain:
            self._fleet.drained(key, drain.outcome)
        return drain

    def exposition(self) -> bytes:
        """The text that Prometheus scrapes."""
        return generate_latest(self.registry)


class _Live(Collector):
    """Figures that are read off the running parts, not counted."""

    def __init__(
        self,
        cache: Cache,
        queue_depth: Callable[[], int],
        watch_ages: Callable[[], Mapping[tuple[str, str], float]],
    ) -> None:
        self._cache = cache
        self._queue_depth = queue_depth
        self._watch_ages = watch_ages

    def collect(self) -> Iterator[Metric]:
        depth = GaugeMetricFamily("sglang_operator_queue_depth", "Clusters waiting for a worker.")
        depth.add_metric([], self._queue_depth())
        yield depth
        ages = GaugeMetricFamily(
            "sglang_operator_watch_age_seconds",
            "Time since a watch was last proven to deliver. Above three resyncs it has stalled.",
            labels=["resource", "namespace"],
        )
        for (resource, namespace), age_s in self._watch_ages().items():
            ages.add_metric([resource, namespace], age_s)
        yield ages
        clusters = GaugeMetricFamily(
            "sglang_operator_clusters", "SGLangClusters by phase.", labels=["phase"]
        )
        phases = [phase(cluster) for _, cluster in self._cache.clusters()]
        for name in PHASES:
            clusters.add_metric([name], phases.count(name))
        yield clusters


def phase(cluster: Manifest) -> str:
    """One word for a cluster's conditions, the one to act on first."""
    conditions = (cluster.get("status") or {}).get("conditions") or ()
    true = {condition["type"] for condition in conditions if condition["status"] == "True"}
    for name in ("Stalled", "Reconciling", "Ready"):
        if name in true:
            return name
    return "Unknown"
