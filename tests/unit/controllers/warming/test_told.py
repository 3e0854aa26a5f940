"""What status says of warming."""

from typing import Any

import pytest

from sglang_controllers.api.warming import Warming
from sglang_controllers.diagnosis import Finding
from sglang_controllers.manifest import Manifest
from sglang_controllers.reasons import Reason
from sglang_controllers.reports import EngineReport, PromptFailure, WarmingReport
from sglang_controllers.warming.slots import Slots
from sglang_controllers.warming.told import Warmth, warmth
from tests.builders import NOW, a_pod

SEEN = "abc"
FAILED = PromptFailure("prompts", "", "a.jsonl", "3")


def said(state: str = "warmed", sources: str = SEEN, **more: Any) -> WarmingReport:
    return WarmingReport(state, sources, **({"warmed": 10} | more))


def of(*reports: WarmingReport | None, slots: Slots | None = None, **warming: Any) -> Warmth:
    """One pod for each report."""
    pods = [a_pod(name=f"pod-{number}") for number in range(len(reports))]
    answers = {
        f"uid-pod-{number}": EngineReport(NOW, 0, True, report)
        for number, report in enumerate(reports)
    }
    return warmth(Warming.model_validate(warming), slots or Slots(hash=SEEN), "r1", pods, answers)


def test_engines_that_have_warmed_everything_are_warm() -> None:
    told = of(said(), said()).condition

    assert (told.status, told.reason) == ("True", "Warmed")
    assert told.message == "2 of 2 engines warmed 10 prompts"


@pytest.mark.parametrize(
    "late",
    [said("warming"), said("waiting"), said(sources="other"), None],
    ids=["warms", "waits", "sees older prompts", "says nothing"],
)
def test_an_engine_that_is_not_done_is_told(late: WarmingReport | None) -> None:
    told = of(said(), late).condition

    assert (told.status, told.reason) == ("False", "Warming")
    assert told.message == "1 of 2 engines warmed their prompts"


def test_progress_within_a_tenth_changes_nothing() -> None:
    earlier = said("warming", warmed=4_000, pending=6_000)
    later = said("warming", warmed=4_900, failed=90, pending=5_010, tokens=500)

    assert of(earlier) == of(later)
    assert of(earlier, said()).condition.message == (
        "1 of 2 engines warmed their prompts, the slowest 40 % of them so far"
    )


@pytest.mark.parametrize(
    ("slots", "reason", "words"),
    [
        (Slots(missing=("ConfigMap a",)), "WarmingSourceMissing", "there is no ConfigMap a. "),
        (Slots(missing=("a", "b", "c", "d", "e")), "WarmingSourceMissing", "a, b, c and 2 more"),
        (Slots(too_large=("key k of ConfigMap a",)), "WarmingSourceTooLarge", "4 x 1,000,000"),
    ],
)
def test_what_is_not_copied_is_told_first(slots: Slots, reason: str, words: str) -> None:
    told = of(said(), slots=slots).condition

    assert (told.status, told.reason) == ("False", reason)
    assert words in told.message


@pytest.mark.parametrize(
    ("report", "reason", "words"),
    [
        (said(failed=2), "PromptsFailed", "2 of 12 prompts"),
        (said("full"), "CacheFull", "10 prompts are warmed"),
        (said("timed_out"), "GateTimedOut", "1 of 1"),
    ],
)
def test_what_did_not_work_is_told(report: WarmingReport, reason: str, words: str) -> None:
    told = of(report).condition

    assert (told.status, told.reason) == ("False", reason)
    assert words in told.message


def test_nothing_is_known_before_all_is_read_or_without_engines() -> None:
    unread = warmth(Warming(), None, "r1", [a_pod()], {}).condition

    assert (unread.status, unread.reason) == ("Unknown", "SourcesUnread")
    assert (of().condition.status, of().condition.reason) == ("Unknown", "NoEngines")


READY = [{"type": "Ready", "status": "True"}]
SILENT = EngineReport(NOW, None, True)


@pytest.mark.parametrize("answers", [{}, {"uid-pod-1": SILENT}], ids=["not asked", "no answer"])
def test_an_engine_that_serves_and_is_not_heard_makes_it_unknown(
    answers: dict[str, EngineReport],
) -> None:
    pod = a_pod(conditions=READY)

    told = warmth(Warming(), Slots(), "r1", [pod], answers).condition

    assert (told.status, told.reason) == ("Unknown", "AgentsSilent")
    assert "1 of 1 do not tell" in told.message


def test_an_engine_that_does_not_answer_for_once_stays_warm() -> None:
    pod, before = a_pod(conditions=READY), EngineReport(NOW, None, True, said())

    told = warmth(Warming(), Slots(hash=SEEN), "r1", [pod], {"uid-pod-1": before}).condition

    assert told.reason == "Warmed"


def test_an_engine_that_answers_neither_us_nor_kubernetes_is_warm_no_more() -> None:
    before = EngineReport(NOW, None, True, said())

    told = warmth(Warming(), Slots(hash=SEEN), "r1", [a_pod()], {"uid-pod-1": before}).condition

    assert told.reason == "Warming"


def test_copies_that_cannot_be_written_are_told() -> None:
    refused = Finding(Reason.QUOTA_EXCEEDED, "exceeded quota. Raise it")

    told = warmth(Warming(), Slots(), "r1", [], {}, refused).condition

    assert (told.status, told.reason) == ("False", "QuotaExceeded")
    assert told.message == "prompts are not copied: exceeded quota. Raise it"


def test_a_copy_that_is_named_as_a_source_is_told() -> None:
    told = of(said(), slots=Slots(copied=("chat-warming-0",))).condition

    assert (told.status, told.reason) == ("False", "WarmingSourceMissing")
    assert told.message.startswith("nothing is read from chat-warming-0, which an operator made")


def test_pods_of_other_revisions_do_not_count() -> None:
    found = warmth(Warming(), Slots(), "r1", [a_pod("r0")], {})

    assert found.summary["pods"] == 0


def test_the_summary_counts_engines_that_are_done() -> None:
    found = of(said(failed=1, tokens=900, failures=(FAILED,)), said("warming", warmed=3))

    assert found.summary == {
        "pods": 2,
        "warmed": 1,
        "prompts": 11,
        "failed": 1,
        "tokens": 900,
        "failures": [{"configMap": "prompts", "key": "a.jsonl", "index": 3}],
    }


def test_failures_are_listed_once_in_order_and_not_endlessly() -> None:
    many = tuple(PromptFailure("", "claim", "f", str(number)) for number in range(25, 0, -1))
    whole = PromptFailure("", "claim", "f", "")

    listed = of(said(failures=(*many, whole)), said(failures=many)).summary["failures"]

    assert len(listed) == 20
    assert listed[0] == {"persistentVolumeClaim": "claim", "key": "f"}
    assert [each["index"] for each in listed[1:]] == list(range(1, 20))


def a_gated_pod(name: str = "pod-0") -> Manifest:
    return a_pod(name=name, containerStatuses=[{"name": "engine", "ready": True}])


def gated(pod: Manifest, report: WarmingReport | None, **warming: Any) -> int:
    answers = {"uid-pod-0": EngineReport(NOW, 0, True, report)}
    found = warmth(Warming.model_validate(warming), Slots(hash=SEEN), "r1", [pod], answers)
    return found.gated


def test_a_pod_waits_at_the_gate_when_its_engine_is_ready_and_its_prompts_are_not() -> None:
    assert gated(a_gated_pod(), said("warming"), gate={}) == 1
    assert gated(a_gated_pod(), said("waiting"), gate={}) == 1


def test_no_pod_waits_at_a_gate_that_is_not_there_or_open() -> None:
    loading = a_pod(name="pod-0", containerStatuses=[{"name": "engine", "ready": False}])

    assert gated(a_gated_pod(), said("warming")) == 0
    assert gated(a_gated_pod(), None, gate={}) == 0
    assert gated(a_gated_pod(), said("timed_out"), gate={}) == 0
    assert gated(a_gated_pod(), said("warmed"), gate={}) == 0
    assert gated(loading, said("waiting"), gate={}) == 0
