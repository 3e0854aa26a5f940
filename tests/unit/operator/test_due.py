"""When pods are asked: spread over a period, and at once when somebody is in a hurry."""

from collections import Counter

import pytest

from sglang_operator.due import PERIOD_S, Timetable

MANY = [f"uid-{number}" for number in range(3000)]


def taken(timetable: Timetable, now_s: float) -> list[str]:
    """All that are due."""
    uids = []
    while uid := timetable.take(now_s):
        uids.append(uid)
    return uids


def with_added(*uids: str, now_s: float = 1000.0) -> Timetable:
    timetable = Timetable()
    for uid in uids:
        timetable.add(uid, now_s)
    return timetable


def test_nobody_is_due_where_nobody_is() -> None:
    timetable = Timetable()

    assert timetable.next_s() == float("inf")
    assert timetable.take(1e9) is None


def test_pods_found_at_once_are_not_asked_in_one_burst() -> None:
    timetable = with_added(*MANY)

    seconds = [len(taken(timetable, 1000.0 + second)) for second in range(1, 61)]

    assert sum(seconds) == 2 * len(MANY)
    assert max(seconds) < 1.5 * len(MANY) / PERIOD_S
    assert min(seconds) > 0.5 * len(MANY) / PERIOD_S


def test_each_pod_is_due_once_a_period() -> None:
    timetable = with_added(*MANY)
    counts: Counter[str] = Counter()

    for step in range(1, 1001):
        counts.update(taken(timetable, 1000.0 + step * PERIOD_S / 100))

    assert set(counts.values()) == {10}


def test_rounds_that_were_missed_are_not_made_up_for() -> None:
    timetable = with_added("uid-1")

    assert taken(timetable, 1000.0 + 100 * PERIOD_S) == ["uid-1"]
    assert 1000.0 + 100 * PERIOD_S < timetable.next_s() <= 1000.0 + 101 * PERIOD_S


def test_who_is_in_a_hurry_goes_first_and_keeps_its_round() -> None:
    timetable = with_added(*MANY)
    timetable.hurry("uid-7", 1090.0)

    first, *others = taken(timetable, 1090.0)

    assert first == "uid-7"
    assert sorted(others) == sorted(MANY)


@pytest.mark.parametrize("moments", [(1005.0, 1002.0), (1002.0, 1005.0), (1002.0, 1002.0)])
def test_the_sooner_of_two_hurries_counts_for_both(moments: tuple[float, float]) -> None:
    timetable = with_added()
    for moment in moments:
        timetable.hurry("uid-1", moment)

    assert timetable.next_s() == 1002.0
    assert taken(timetable, 1001.9) == []
    assert taken(timetable, 1010.0) == ["uid-1"]


def test_a_pod_that_is_forgotten_is_never_due() -> None:
    timetable = with_added("uid-1")
    timetable.hurry("uid-1", 1001.0)

    timetable.forget("uid-1")
    timetable.forget("uid-2")

    assert timetable.next_s() == float("inf")
    assert taken(timetable, 1100.0) == []


def test_a_pod_that_comes_back_has_one_round() -> None:
    timetable = with_added("uid-1")
    timetable.forget("uid-1")
    timetable.add("uid-1", 1010.0)

    assert taken(timetable, 1010.0 + PERIOD_S) == ["uid-1"]
