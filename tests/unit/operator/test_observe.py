"""What the planner gets to see, and what it costs."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from sglang_controllers.images import Images
from sglang_controllers.manifest import Manifest, ObjectKey
from sglang_controllers.snapshot import Snapshot, WriteError
from sglang_controllers.warming.sources import source_of
from sglang_operator.cache import Cache, Key
from sglang_operator.clock import Clock
from sglang_operator.kube import ApiError
from sglang_operator.observe import PODS_ASKED, Observer
from sglang_operator.polls import Polls
from sglang_operator.sources import Sources
from tests.builders import NOW, a_cluster, a_pod
from tests.unit.operator.api import ScriptedApi

CHAT = Key("team", "chat")
EVENTS = "/api/v1/namespaces/team/events"
WARNING = {"type": "Warning", "reason": "FailedMount", "message": "no such claim"}
READY: dict[str, Any] = {"conditions": [{"type": "Ready", "status": "True"}]}
UNREADY: dict[str, Any] = {"conditions": [{"type": "Ready", "status": "False"}]}


def ignored(_: Key) -> None:
    return


class NotedPolls(Polls):
    """Notes whose pods are asked at once, and asks nobody."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.asked: list[Key] = []

    async def ask(self, key: Key) -> None:
        self.asked.append(key)


class Bench:
    def __init__(self, *pods: Manifest) -> None:
        self.now: datetime = NOW
        self.api = ScriptedApi()
        self.cache = Cache()
        clock = Clock(lambda: 0.0, lambda: self.now)
        kube, polls = self.api.kube(), NotedPolls(self.cache, clock, ignored)
        self.polls = polls
        sources = Sources(kube, (None,), ignored)
        self.observer = Observer(kube, self.cache, clock, polls, sources, Images())
        for item in (a_cluster(), *pods):
            item["metadata"]["resourceVersion"] = "1"
            self.cache.put(item)
        listed = {"metadata": {"resourceVersion": "1"}, "items": [{**WARNING, "metadata": {}}]}
        self.api.on("GET", EVENTS, listed)

    def observe(self, errors: dict[ObjectKey, WriteError] | None = None) -> Snapshot:
        snapshot = asyncio.run(self.observer.observe(CHAT, errors or {}))
        assert snapshot is not None
        return snapshot

    @property
    def asked(self) -> list[str]:
        return [query["fieldSelector"] for query in self.api.queries]


def pod(name: str = "pod-1", age_s: float = 60.0, **status: Any) -> Manifest:
    made = a_pod(name=name, **status)
    created = NOW - timedelta(seconds=age_s)
    made["metadata"]["creationTimestamp"] = created.strftime("%Y-%m-%dT%H:%M:%SZ")
    return made


def test_there_is_no_snapshot_of_a_cluster_that_is_not_there() -> None:
    bench = Bench()

    assert asyncio.run(bench.observer.observe(Key("team", "unknown"), {})) is None


def test_the_snapshot_has_the_time_and_the_last_refusals() -> None:
    error = {ObjectKey("Service", "chat"): WriteError("create", 403, "Forbidden", "no")}

    snapshot = Bench().observe(error)

    assert snapshot.now == NOW
    assert snapshot.errors == error


def test_the_prompts_that_a_cluster_names_are_in_its_snapshot() -> None:
    bench = Bench()
    prompts = [{"configMap": {"name": "there"}}, {"configMap": {"name": "gone"}}]
    cluster = a_cluster(cache={"warming": {"promptsFrom": prompts}})
    cluster["metadata"]["resourceVersion"] = "2"
    bench.cache.put(cluster)
    held = {"metadata": {"resourceVersion": "7"}, "data": {"a": "Hello"}}
    bench.api.on("GET", "/api/v1/namespaces/team/configmaps/there", held)

    sources = bench.observe().warming_sources

    assert sources == {"there": source_of(held), "gone": None}


@pytest.mark.parametrize(
    ("cache", "ready", "asked"),
    [({"warming": {}}, READY, [CHAT]), ({"warming": {}}, UNREADY, []), ({}, READY, [])],
    ids=["warms", "is not ready", "warms nothing"],
)
def test_engines_that_warm_are_asked_before_the_first_plan(
    cache: dict[str, Any], ready: dict[str, Any], asked: list[Key]
) -> None:
    bench = Bench(pod(**ready))
    cluster = a_cluster(cache=cache)
    cluster["metadata"]["resourceVersion"] = "2"
    bench.cache.put(cluster)

    bench.observe()

    assert bench.polls.asked == asked


def test_events_of_a_pod_that_is_not_ready_are_asked_for_by_its_uid() -> None:
    bench = Bench(pod(**UNREADY))

    snapshot = bench.observe()

    assert bench.asked == ["involvedObject.uid=uid-pod-1"]
    assert snapshot.events == {"uid-pod-1": (WARNING,)}


def test_pods_that_are_ready_young_or_leaving_cost_no_request() -> None:
    leaving = pod("leaving", **UNREADY)
    leaving["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z"
    bench = Bench(pod("ready", **READY), pod("young", age_s=4.0, **UNREADY), leaving)

    assert bench.observe().events == {}
    assert bench.asked == []


def test_many_unready_pods_cost_few_requests_the_oldest_first() -> None:
    pods = [pod(f"pod-{age}", age_s=float(age), **UNREADY) for age in range(100, 130)]
    bench = Bench(*pods)
    bench.observe()

    assert len(bench.asked) == PODS_ASKED
    assert bench.asked[0] == "involvedObject.uid=uid-pod-129"


def test_answers_are_kept_for_some_seconds() -> None:
    bench = Bench(pod(**UNREADY))
    bench.observe()
    bench.now += timedelta(seconds=2)
    assert bench.observe().events
    assert len(bench.asked) == 1

    bench.now += timedelta(seconds=5)
    bench.observe()

    assert len(bench.asked) == 2


def test_events_that_cannot_be_read_are_those_that_were() -> None:
    bench = Bench(pod(**UNREADY))
    bench.observe()
    bench.api.on("GET", EVENTS, ApiError(403, "Forbidden", "no"))
    bench.now += timedelta(seconds=60)

    assert bench.observe().events == {"uid-pod-1": (WARNING,)}


def test_answers_about_pods_that_are_gone_are_forgotten() -> None:
    bench = Bench(pod(**UNREADY))
    bench.observe()
    gone = pod(**UNREADY)
    gone["metadata"]["resourceVersion"] = "2"
    bench.cache.remove(gone)

    assert bench.observe().events == {}
    assert vars(bench.observer)["_asked"] == {CHAT: {}}


def test_events_that_cannot_be_read_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(pod(**UNREADY))
    bench.api.on("GET", EVENTS, ApiError(403, "Forbidden", "no"))
    for _ in range(3):
        bench.observe()
        bench.now += timedelta(seconds=60)

    assert len(bench.asked) == 3
    assert len(caplog.records) == 1


def test_of_the_normal_events_only_those_that_tell_of_a_kill_are_kept() -> None:
    bench = Bench(pod(**UNREADY))
    killing = {"type": "Normal", "reason": "Killing", "message": "failed startup probe"}
    started = {"type": "Normal", "reason": "Started", "message": "Started container engine"}
    items = [{**item, "metadata": {}} for item in (started, killing, WARNING)]
    bench.api.on("GET", EVENTS, {"metadata": {"resourceVersion": "1"}, "items": items})

    assert bench.observe().events == {"uid-pod-1": (killing, WARNING)}
