"""When pods are marked, and when they are marked again."""

from datetime import timedelta

import pytest

from sglang_controllers.manifest import Manifest
from sglang_controllers.names import WARMING_ANNOTATION
from sglang_controllers.reports import EngineReport, WarmingReport
from sglang_controllers.warming.marks import Marks, marks
from tests.builders import NOW, a_pod

NOW_S = int(NOW.timestamp())


def a_running_pod(mark: str | None = None, revision: str = "r1") -> Manifest:
    pod = a_pod(revision, phase="Running")
    if mark is not None:
        pod["metadata"]["annotations"] = {WARMING_ANNOTATION: mark}
    return pod


def marked(pod: Manifest, shown: str | None = None, wanted: str = "new", age_s: int = 0) -> Marks:
    """`shown` is what its agent said `age_s` ago, None: nothing."""
    warming = WarmingReport("warmed", shown) if shown is not None else None
    report = EngineReport(NOW - timedelta(seconds=age_s), 0, True, warming)
    return marks([pod], {"uid-pod-1": report}, "r1", wanted, NOW)


def test_a_pod_without_a_mark_is_marked() -> None:
    assert marked(a_running_pod()) == Marks({"pod-1": f"new.0.{NOW_S}"}, unseen=False)


def test_a_pod_is_marked_anew_when_prompts_change() -> None:
    assert marked(a_running_pod(f"old.3.{NOW_S - 5}")).new == {"pod-1": f"new.0.{NOW_S}"}


def test_a_pod_is_not_marked_while_there_is_nothing_to_show() -> None:
    assert marked(a_running_pod(), wanted="") == Marks({}, unseen=False)


def test_a_pod_that_shows_its_prompts_rests() -> None:
    pod = a_running_pod(f"new.0.{NOW_S - 60}")

    assert marked(pod, shown="new") == Marks({}, unseen=False)


def test_a_pod_whose_agent_says_nothing_rests() -> None:
    assert marked(a_running_pod(f"new.0.{NOW_S - 60}")) == Marks({}, unseen=False)


def test_a_pod_that_shows_something_else_is_asked_again_for_a_while() -> None:
    assert marked(a_running_pod(f"new.0.{NOW_S - 9}"), shown="old") == Marks({}, unseen=True)


def test_a_pod_that_goes_on_to_show_something_else_is_marked_again() -> None:
    pod = a_running_pod(f"new.0.{NOW_S - 10}")

    assert marked(pod, shown="old").new == {"pod-1": f"new.1.{NOW_S}"}


def test_an_answer_from_before_is_no_reason_to_mark_again() -> None:
    pod = a_running_pod(f"new.0.{NOW_S - 12}")

    assert marked(pod, shown="old", age_s=5) == Marks({}, unseen=True)


@pytest.mark.parametrize(("tries", "waited_s"), [(1, 19), (2, 39), (4, 159)])
def test_each_try_has_twice_the_time_of_the_one_before(tries: int, waited_s: int) -> None:
    early = marked(a_running_pod(f"new.{tries}.{NOW_S - waited_s}"), shown="old")
    late = marked(a_running_pod(f"new.{tries}.{NOW_S - waited_s - 1}"), shown="old")

    assert early.new == {}
    assert late.new == {"pod-1": f"new.{tries + 1}.{NOW_S}"}


def test_the_tries_end() -> None:
    assert marked(a_running_pod("new.5.0"), shown="old") == Marks({}, unseen=False)


@pytest.mark.parametrize("mark", ["", "x", "new", "new.", "new.1", "new.a.b", "new.0." + "9" * 99])
def test_a_mark_that_nobody_of_ours_wrote_is_overwritten(mark: str) -> None:
    assert marked(a_running_pod(mark)).new == {"pod-1": f"new.0.{NOW_S}"}


def test_pods_that_do_not_run_get_the_prompts_when_they_are_made() -> None:
    pod = a_pod("r1")

    assert marks([pod], {}, "r1", "new", NOW).new == {}


def test_pods_of_an_older_revision_are_marked_if_they_warm() -> None:
    pod = a_running_pod(revision="r0")

    assert marked(pod).new == {}
    assert marked(pod, shown="old").new == {"pod-1": f"new.0.{NOW_S}"}


@pytest.mark.parametrize("at_s", [NOW_S + 60, 10**17])
def test_a_mark_of_the_future_is_set_anew(at_s: int) -> None:
    pod = a_running_pod(f"new.0.{at_s}")

    assert marked(pod, shown="old") == Marks({"pod-1": f"new.0.{NOW_S}"}, unseen=False)
