"""The work queue, in simulated time."""

import asyncio

import pytest

from sglang_operator.queue import Backoff, QueueClosedError, WorkQueue
from tests.unit.operator.simulated import now, run


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(clock: Clock) -> WorkQueue[str]:
    return WorkQueue(clock, chance=lambda: 0.0)


def test_keys_come_in_the_order_in_which_they_were_due(queue: WorkQueue[str]) -> None:
    for key in ("a", "b", "c"):
        queue.add(key)

    assert [queue.take() for _ in range(4)] == ["a", "b", "c", None]


def test_a_key_added_many_times_is_taken_once(queue: WorkQueue[str]) -> None:
    for _ in range(5):
        queue.add("a")

    assert [queue.take(), queue.take()] == ["a", None]


def test_a_key_at_work_is_not_given_out_again_until_it_is_done(queue: WorkQueue[str]) -> None:
    queue.add("a")
    assert queue.take() == "a"
    queue.add("a")
    assert queue.take() is None

    queue.done("a")

    assert queue.take() == "a"


def test_a_key_that_was_not_added_meanwhile_is_gone_when_done(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.take()
    queue.done("a")

    assert queue.take() is None


def test_a_delayed_key_comes_when_it_is_due(queue: WorkQueue[str], clock: Clock) -> None:
    queue.add_after("a", 5.0)
    clock.now = 4.9
    assert queue.take() is None

    clock.now = 5.0

    assert queue.take() == "a"


@pytest.mark.parametrize("delays", [(1.0, 9.0), (9.0, 1.0)])
def test_of_two_delays_the_earlier_one_wins(
    queue: WorkQueue[str], clock: Clock, delays: tuple[float, float]
) -> None:
    for delay_s in delays:
        queue.add_after("a", delay_s)
    clock.now = 1.0
    assert queue.take() == "a"
    queue.done("a")

    clock.now = 20.0

    assert queue.take() is None


def test_a_delay_given_at_work_counts_from_then(queue: WorkQueue[str], clock: Clock) -> None:
    queue.add("a")
    queue.take()
    queue.add_after("a", 5.0)
    clock.now = 2.0
    queue.done("a")
    assert queue.take() is None

    clock.now = 5.0

    assert queue.take() == "a"


def test_failures_back_off_doubling_up_to_a_limit(queue: WorkQueue[str]) -> None:
    delays = [queue.retry("a") for _ in range(9)]

    assert delays == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]


def test_a_success_starts_the_backoff_over(queue: WorkQueue[str]) -> None:
    queue.retry("a")
    queue.retry("a")
    queue.succeeded("a")

    assert queue.retry("a") == 1.0


def test_keys_back_off_apart_from_each_other(queue: WorkQueue[str]) -> None:
    queue.retry("a")
    queue.retry("a")

    assert queue.retry("b") == 1.0


def test_chance_spreads_retries(clock: Clock) -> None:
    queue: WorkQueue[str] = WorkQueue(clock, chance=lambda: 1.0, backoff=Backoff(spread=0.5))

    assert queue.retry("a") == 1.5


def test_an_event_does_not_wait_for_the_backoff(queue: WorkQueue[str]) -> None:
    queue.retry("a")
    queue.add("a")

    assert queue.take() == "a"


def test_the_depth_counts_what_is_due_and_not_at_work(queue: WorkQueue[str], clock: Clock) -> None:
    queue.add("a")
    queue.add("b")
    queue.add_after("c", 5.0)
    queue.take()
    queue.add("a")
    assert len(queue) == 1

    clock.now = 5.0

    assert len(queue) == 2


def test_the_wait_is_measured_from_when_a_key_was_due(clock: Clock) -> None:
    waits: list[float] = []
    queue: WorkQueue[str] = WorkQueue(clock, chance=lambda: 0.0, waited=waits.append)
    queue.add_after("a", 2.0)
    clock.now = 5.0
    queue.take()

    assert waits == [3.0]


def test_a_waiting_worker_gets_a_key_at_the_moment_it_is_due() -> None:
    async def main() -> tuple[str, float]:
        queue: WorkQueue[str] = WorkQueue(now, chance=lambda: 0.0)
        began = now()
        waiting = asyncio.create_task(queue.get())
        await asyncio.sleep(1.0)
        queue.add_after("late", 100.0)
        queue.add_after("soon", 10.0)
        return await waiting, round(now() - began, 6)

    assert run(main()) == ("soon", 11.0)


def test_several_workers_share_the_keys() -> None:
    async def main() -> list[tuple[str, int]]:
        queue: WorkQueue[str] = WorkQueue(now, chance=lambda: 0.0)
        began = now()
        seen: list[tuple[str, int]] = []

        async def work() -> None:
            while True:
                key = await queue.get()
                await asyncio.sleep(10.0)
                seen.append((key, round(now() - began)))
                queue.done(key)

        workers = [asyncio.create_task(work()) for _ in range(2)]
        for key in ("a", "b", "a", "c"):
            queue.add(key)
        await asyncio.sleep(1.0)
        queue.add("a")  # at work: comes up again afterwards
        await asyncio.sleep(60.0)
        for worker in workers:
            worker.cancel()
        return seen

    assert run(main()) == [("a", 10), ("b", 10), ("c", 20), ("a", 20)]


def test_a_closed_queue_sends_waiting_workers_home_and_gives_nothing_out() -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue(now, chance=lambda: 0.0)
        waiting = asyncio.create_task(queue.get())
        await asyncio.sleep(1.0)
        queue.close()
        with pytest.raises(QueueClosedError):
            await waiting
        queue.add("a")
        with pytest.raises(QueueClosedError):
            await queue.get()

    run(main())


def test_a_worker_that_is_cancelled_while_waiting_loses_no_key() -> None:
    async def main() -> str:
        queue: WorkQueue[str] = WorkQueue(now, chance=lambda: 0.0)
        waiting = asyncio.create_task(queue.get())
        await asyncio.sleep(1.0)
        waiting.cancel()
        await asyncio.sleep(0)
        queue.add("a")
        return await queue.get()

    assert run(main()) == "a"
