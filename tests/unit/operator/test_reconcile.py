"""When a cluster is looked at again, and what the next plan is told."""

import asyncio
from collections.abc import Callable

import pytest

from sglang_controllers.images import Images
from sglang_controllers.manifest import ObjectKey
from sglang_controllers.names import CLUSTER_LABEL
from sglang_controllers.plan import Plan
from sglang_controllers.snapshot import Snapshot, WriteError
from sglang_operator.cache import Cache, Key
from sglang_operator.clock import Clock
from sglang_operator.execute import Around, Executor
from sglang_operator.kube import ApiError, NetworkError
from sglang_operator.metrics import Metrics
from sglang_operator.observe import Observer
from sglang_operator.polls import Polls
from sglang_operator.queue import WorkQueue
from sglang_operator.reconcile import RESTLESS, Reconciler
from sglang_operator.sources import Sources
from tests.builders import NOW, a_cluster
from tests.unit.operator.api import Answer, ScriptedApi

CHAT = Key("team", "chat")
SERVICES = "/api/v1/namespaces/team/services"
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "chat", "labels": {CLUSTER_LABEL: "chat"}},
}
MADE = {
    **SERVICE,
    "metadata": {
        **SERVICE["metadata"],  # type: ignore[dict-item]
        "namespace": "team",
        "uid": "s1",
        "resourceVersion": "1",
    },
}
REFUSED = ApiError(403, "Forbidden", "no")
TOLD = WriteError("create", 403, "Forbidden", "no")


class Bench:
    def __init__(self, plan: Callable[[Snapshot], Plan]) -> None:
        self.now = 0.0
        self.api = ScriptedApi()
        self.cache = Cache()
        self.queue: WorkQueue[Key] = WorkQueue(lambda: self.now, lambda: 0.0)
        self.snapshots: list[Snapshot] = []
        clock = Clock(lambda: self.now, lambda: NOW)
        metrics = Metrics(self.cache, lambda: 0, dict)
        around = Around(lambda: self.leading, metrics.wrote)
        self.leading = True
        executor = Executor(self.api.kube(), self.cache, around, clock, "me")
        polls = Polls(self.cache, clock, self.queue.add)
        sources = Sources(self.api.kube(), (None,), self.queue.add)
        observer = Observer(self.api.kube(), self.cache, clock, polls, sources, Images())

        def noted(snapshot: Snapshot) -> Plan:
            self.snapshots.append(snapshot)
            return plan(snapshot)

        self.reconciler = Reconciler(self.queue, observer, noted, executor, metrics)
        self.metrics = metrics
        cluster = a_cluster()
        cluster["metadata"]["resourceVersion"] = "1"
        self.cache.put(cluster)

    def run(self) -> None:
        asyncio.run(self.reconciler.work_on(CHAT))

    def due_in(self) -> float | None:
        """Seconds until the key comes up again, None: it does not."""
        due = vars(self.queue)["_due"].get(CHAT)
        return None if due is None else due - self.now


def creating(_: Snapshot) -> Plan:
    return Plan(create=(SERVICE,))


def creating_once(snapshot: Snapshot) -> Plan:
    return Plan() if snapshot.children else Plan(create=(SERVICE,))


def resting(_: Snapshot) -> Plan:
    return Plan()


def a_bench(plan: Callable[[Snapshot], Plan], *answers: Answer) -> Bench:
    bench = Bench(plan)
    bench.api.on("POST", SERVICES, *answers)
    return bench


def test_at_rest_nobody_looks_again() -> None:
    bench = Bench(resting)
    bench.run()

    assert bench.due_in() is None
    assert bench.api.requests == []


def test_the_planner_may_ask_for_another_look() -> None:
    bench = Bench(lambda _: Plan(again_after_s=10.0))
    bench.run()

    assert bench.due_in() == 10.0


def test_a_write_asks_for_the_next_step_at_once_and_that_one_rests() -> None:
    bench = a_bench(creating_once, MADE)
    bench.run()
    assert bench.due_in() == 0.0

    bench.queue.take()
    bench.run()

    assert bench.due_in() is None
    assert len(bench.api.requests) == 1


def test_a_refusal_is_told_to_the_next_plan_which_comes_soon() -> None:
    bench = a_bench(creating, REFUSED)
    bench.run()
    assert bench.due_in() == 1.0

    bench.run()

    assert bench.snapshots[1].errors == {ObjectKey("Service", "chat"): TOLD}


def test_refusals_back_off() -> None:
    bench = a_bench(creating, REFUSED)
    waits = []
    for _ in range(4):
        bench.run()
        waits.append(bench.due_in())
        bench.queue.take()
        bench.now += 100.0
        bench.queue.take()
        bench.queue.done(CHAT)

    assert waits == [1.0, 2.0, 4.0, 8.0]


def test_a_success_clears_the_refusal() -> None:
    bench = a_bench(creating, REFUSED, MADE)
    for _ in range(3):
        bench.run()

    assert [bool(snapshot.errors) for snapshot in bench.snapshots] == [False, True, False]


def test_a_refusal_of_what_is_no_longer_planned_is_forgotten() -> None:
    plans = [Plan(create=(SERVICE,)), Plan(), Plan()]
    bench = a_bench(lambda _: plans.pop(0), REFUSED)
    for _ in range(3):
        bench.run()

    assert [bool(snapshot.errors) for snapshot in bench.snapshots] == [False, True, False]


def test_a_refusal_outlasts_a_run_that_got_no_answer() -> None:
    bench = a_bench(creating, REFUSED, NetworkError("no answer"), REFUSED)
    for _ in range(3):
        bench.run()

    assert bool(bench.snapshots[2].errors)


def test_no_answer_is_tried_again_and_not_told() -> None:
    bench = a_bench(creating, NetworkError("no answer"))
    bench.run()

    assert bench.due_in() == 1.0
    bench.run()
    assert bench.snapshots[1].errors == {}
    assert bench.due_in() == 1.0


def test_a_planner_that_raises_costs_a_delay_and_no_worker() -> None:
    def broken(_: Snapshot) -> Plan:
        raise KeyError("oops")

    bench = Bench(broken)
    bench.run()

    assert bench.due_in() == 1.0
    assert 'seconds_count{outcome="error"} 1.0' in bench.metrics.exposition().decode()


def test_a_cluster_that_is_gone_is_not_planned_and_its_refusals_are_forgotten() -> None:
    bench = a_bench(creating, REFUSED)
    bench.run()
    cluster = a_cluster()
    cluster["metadata"]["resourceVersion"] = "1"
    bench.cache.remove(cluster)
    bench.run()

    assert len(bench.snapshots) == 1
    assert vars(bench.reconciler)["_errors"] == {}


def test_without_the_lease_the_cluster_stays_in_the_queue() -> None:
    bench = a_bench(creating, MADE)
    bench.leading = False
    bench.run()

    assert bench.due_in() == 0.0
    assert bench.api.requests == []


@pytest.mark.parametrize("runs", [RESTLESS, RESTLESS + 4, RESTLESS + 30])
def test_a_plan_that_never_settles_is_slowed_down(runs: int) -> None:
    bench = a_bench(creating, MADE)
    for _ in range(runs):
        bench.queue.take()
        bench.run()
        bench.queue.done(CHAT)
        bench.now += 1000.0
    bench.queue.take()
    bench.run()

    wait_s = bench.reconciler.calm_s(CHAT)
    assert wait_s == min(0.1 * 2 ** (runs + 1 - RESTLESS), 30.0)
    assert bench.due_in() == pytest.approx(wait_s)


def test_one_quiet_run_ends_the_slowing_down() -> None:
    plans = [*[Plan(create=(SERVICE,))] * (RESTLESS + 5), Plan()]
    bench = a_bench(lambda _: plans.pop(0), MADE)
    for _ in range(RESTLESS + 5):
        bench.run()
    assert bench.reconciler.calm_s(CHAT) > 0

    bench.run()

    assert bench.reconciler.calm_s(CHAT) == 0.0


def test_a_refusal_is_logged_once_and_a_different_one_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = a_bench(creating, REFUSED, REFUSED, REFUSED, ApiError(422, "Invalid", "other"))
    for _ in range(5):
        bench.run()

    told = [record.getMessage() for record in caplog.records]
    assert told == ["create refused: no", "create refused: other"]


def test_a_refused_status_is_not_told_to_the_planner_which_could_not_show_it() -> None:
    bench = Bench(lambda _: Plan(status={}))
    path = "/apis/sglang.dev/v1alpha1/namespaces/team/sglangclusters/chat/status"
    bench.api.on("PATCH", path, ApiError(422, "Invalid", "no"))
    bench.run()
    bench.run()

    assert bench.snapshots[1].errors == {}
    assert bench.due_in() == 1.0
