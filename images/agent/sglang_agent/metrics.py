"""Prometheus metrics. Each agent has its own registry: tests run several in one process."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sglang_agent.drain import Outcome

DRAIN_BUCKETS_S = (5, 10, 20, 30, 60, 120, 300, 600, 1200, 3600)


@dataclass(frozen=True, slots=True)
class Figures:
    """What is read off at a scrape. `in_flight` None: unknown."""

    engine_ready: bool
    draining: bool
    in_flight: int | None


class Metrics:
    def __init__(self, figures: Callable[[], Figures]) -> None:
        self._registry = CollectorRegistry()
        self._drains = Counter(
            "sglang_agent_drains", "Drains that ended.", ["outcome"], registry=self._registry
        )
        for outcome in Outcome:
            self._drains.labels(outcome)  # a rate needs the zero before the first one
        self._drain_seconds = Histogram(
            "sglang_agent_drain_seconds",
            "Time from the request of a drain to its end.",
            buckets=DRAIN_BUCKETS_S,
            registry=self._registry,
        )
        self._cut = Counter(
            "sglang_agent_requests_cut",
            "Requests that were in flight when the time of a drain was over, where known.",
            registry=self._registry,
        )
        self.incarnation_changes = Counter(
            "sglang_agent_incarnation_changes",
            "Times that another engine process took over.",
            registry=self._registry,
        )
        self.token_present = Gauge(
            "sglang_agent_token_present",
            "1 where there is a token to compare with, so that the state can be asked for.",
            registry=self._registry,
        )
        build = Info("sglang_agent_build", "What runs here.", registry=self._registry)
        build.info({"version": version("sglang-agent")})
        self._registry.register(_Live(figures))

    def drained(self, outcome: Outcome, seconds: float, cut: int) -> None:
        self._drains.labels(outcome).inc()
        self._drain_seconds.observe(seconds)
        self._cut.inc(cut)

    def register(self, collector: Collector) -> None:
        self._registry.register(collector)

    def exposition(self) -> bytes:
        """The text that Prometheus scrapes."""
        return generate_latest(self._registry)


class _Live(Collector):
    def __init__(self, figures: Callable[[], Figures]) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        figures = self._figures()
        yield _gauge("engine_ready", "1 where the engine takes requests.", figures.engine_ready)
        yield _gauge("draining", "1 from the request of a drain on.", figures.draining)
        yield _gauge(
            "in_flight",
            "Requests that the engine still owes somebody. No sample where that is unknown.",
            figures.in_flight,
        )


def _gauge(name: str, documentation: str, value: float | None) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"sglang_agent_{name}", documentation)
    if value is not None:
        family.add_metric([], value)
    return family
