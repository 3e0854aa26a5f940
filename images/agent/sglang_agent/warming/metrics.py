"""What warming tells Prometheus, and the operator. Read off at each scrape."""

from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sglang_agent.warming.peers import REASONS
from sglang_agent.warming.warming import STATES, Warming

PREFIX = "sglang_agent_warming_"


class WarmingCollector(Collector):
    def __init__(self, warming: Warming) -> None:
        self._warming = warming

    def collect(self) -> Iterator[Metric]:
        warming = self._warming
        progress, tallies = warming.loop.progress, warming.loop.tallies
        states = {state: float(state == warming.state) for state in STATES}
        yield _gauges("state", "1 for the state it is in.", "state", states)
        prompts = {
            "warmed": progress.warmed,
            "failed": progress.failed,
            "pending": progress.pending,
        }
        yield _gauges("prompts", "Prompts since the cache was empty.", "state", prompts)
        tokens = {"computed": tallies.computed_tokens, "cached": tallies.cached_tokens}
        yield _counters("tokens", "Tokens of prompts that were sent.", "kind", tokens)
        yield _counter("seconds", "Time in which a prompt was in flight.", tallies.seconds)
        yield self._sources()
        yield self._failures()
        yield _gauge("failures_count", "Prompts that cannot be warmed.", progress.failed)
        yield _counter("peer_prefixes", "Prefixes taken from peers.", warming.taken_prefixes)
        yield _counter("peer_tokens", "Tokens of these prefixes.", warming.taken_tokens)
        skipped = {reason: warming.skipped[reason] for reason in REASONS}
        yield _counters("peers_skipped", "Peers without a usable answer.", "reason", skipped)
        if warming.hit_ratio is not None:
            yield _gauge(
                "hit_ratio",
                "Share of tokens still cached of prompts sent again.",
                warming.hit_ratio,
            )

    def _sources(self) -> Metric:
        family = GaugeMetricFamily(
            PREFIX + "sources_info", "Hash of the prompts seen in the pod.", labels=["hash"]
        )
        family.add_metric([self._warming.volume.hash], 1)
        return family

    def _failures(self) -> Metric:
        labels = ["config_map", "claim", "key", "index"]
        family = GaugeMetricFamily(PREFIX + "failures", "The first of them.", labels=labels)
        told = {
            (
                failure.source.name if failure.source.kind == "configMap" else "",
                failure.source.name if failure.source.kind == "claim" else "",
                failure.source.key,
                "" if failure.index is None else str(failure.index),
            )
            for failure in self._warming.loop.progress.failures
        }
        for values in sorted(told):
            family.add_metric(values, 1)
        return family


def _gauge(name: str, documentation: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, documentation, value=value)


def _counter(name: str, documentation: str, value: float) -> Metric:
    return CounterMetricFamily(PREFIX + name, documentation, value=value)


def _gauges(name: str, documentation: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(PREFIX + name, documentation, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family


def _counters(name: str, documentation: str, label: str, values: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(PREFIX + name, documentation, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family
