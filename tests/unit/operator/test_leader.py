"""Leader election, in simulated time, on a Lease in memory."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from sglang_controllers.manifest import Manifest
from sglang_operator.clock import Clock
from sglang_operator.kube import ApiError, NetworkError
from sglang_operator.leader import Leader, Timing
from tests.unit.operator.simulated import now, run

START = datetime(2026, 11, 29, tzinfo=UTC)


class LeaseInMemory:
    """What the API server does to one object: versions, and conflicts where they differ."""

    def __init__(self) -> None:
        self.live: Manifest | None = None
        self.version = 0

    async def read(self) -> Manifest | None:
        await asyncio.sleep(0)
        return self.live

    async def write(self, lease: Manifest) -> Manifest:
        await asyncio.sleep(0)
        based_on = lease["metadata"].get("resourceVersion")
        if based_on != (self.live and self.live["metadata"]["resourceVersion"]):
            raise ApiError(409, "Conflict", "changed meanwhile")
        self.version += 1
        self.live = {"metadata": {"resourceVersion": str(self.version)}, "spec": lease["spec"]}
        return self.live

    @property
    def holder(self) -> str:
        return str(self.live["spec"]["holderIdentity"]) if self.live else ""


class Candidate:
    """A leader that can be cut off from the API server, or killed."""

    def __init__(self, shared: LeaseInMemory, name: str, timing: Timing | None = None) -> None:
        self._shared = shared
        self.online = True
        self.latency_s = 0.0
        self.changes: list[tuple[bool, float]] = []
        clock = Clock(now, lambda: START + timedelta(seconds=now()))
        self.leader = Leader(
            self, name, clock, timing, lambda leading: self.changes.append((leading, now()))
        )
        self.task = asyncio.create_task(self.leader.run())

    async def read(self) -> Manifest | None:
        await self._reach()
        return await self._shared.read()

    async def write(self, lease: Manifest) -> Manifest:
        await self._reach()
        return await self._shared.write(lease)

    async def _reach(self) -> None:
        if not self.online:
            await asyncio.sleep(60.0)
            raise NetworkError("no answer")
        await asyncio.sleep(self.latency_s)

    async def kill(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def test_of_two_candidates_one_leads() -> None:
    async def main() -> None:
        shared = LeaseInMemory()
        candidates = [Candidate(shared, "a"), Candidate(shared, "b")]
        for _ in range(300):
            await asyncio.sleep(0.1)
            assert sum(c.leader.holds() for c in candidates) == 1
        assert [len(c.changes) for c in candidates] in ([1, 0], [0, 1])
        for candidate in candidates:
            await candidate.kill()

    run(main())


def test_after_a_kill_the_other_leads_within_the_lease_and_one_look() -> None:
    async def main() -> float:
        shared = LeaseInMemory()
        first = Candidate(shared, "a")
        await asyncio.sleep(1.0)
        second = Candidate(shared, "b")
        await asyncio.sleep(20.0)
        killed_at = now()
        await first.kill()
        await second.leader.wait()
        took_s = now() - killed_at
        assert shared.holder == "b"
        await second.kill()
        return took_s

    timing = Timing()
    took_s = run(main())
    assert timing.lease_s - timing.renew_s <= took_s <= timing.lease_s + timing.renew_s + 0.1


def test_a_clean_stop_hands_over_at_once() -> None:
    async def main() -> float:
        shared = LeaseInMemory()
        first, second = Candidate(shared, "a"), Candidate(shared, "b")
        await asyncio.sleep(20.0)
        await first.kill()
        stopped_at = now()
        await first.leader.release()
        assert not first.leader.holds()
        await second.leader.wait()
        took_s = now() - stopped_at
        await second.kill()
        return took_s

    assert run(main()) <= Timing().renew_s


def test_a_leader_that_cannot_renew_stops_before_another_one_starts() -> None:
    async def main() -> None:
        shared = LeaseInMemory()
        first, second = Candidate(shared, "a"), Candidate(shared, "b")
        await asyncio.sleep(20.0)
        first.online = False
        await second.leader.wait()
        assert not first.leader.holds()
        ended, began = first.changes[-1], second.changes[-1]
        assert ended[0] is False
        assert began[0] is True
        assert ended[1] < began[1]
        await first.kill()
        await second.kill()

    run(main())


@pytest.mark.parametrize("outage_s", [1.0, 4.0])
def test_a_short_outage_costs_no_leadership(outage_s: float) -> None:
    async def main() -> list[bool]:
        candidate = Candidate(LeaseInMemory(), "a")
        await asyncio.sleep(20.0)
        candidate.online = False
        await asyncio.sleep(outage_s)
        candidate.online = True
        await asyncio.sleep(20.0)
        assert candidate.leader.holds()
        await candidate.kill()
        return [leading for leading, _ in candidate.changes]

    assert run(main()) == [True]


def test_who_asks_in_a_gap_that_a_late_renewal_closes_is_not_forgotten() -> None:
    async def main() -> None:
        candidate = Candidate(LeaseInMemory(), "a", Timing(request_s=1.6))
        await asyncio.sleep(0.1)
        candidate.online = False  # renewals fail from 2.0 to 3.6 and from 4.1 to 5.7 s
        await asyncio.sleep(5.9)
        candidate.online, candidate.latency_s = True, 1.5  # the next takes from 6.2 to 7.7 s
        await asyncio.sleep(1.3)
        assert not candidate.leader.holds()

        async with asyncio.timeout(5.0):
            await candidate.leader.wait()

        assert candidate.leader.holds()
        assert [leading for leading, _ in candidate.changes] == [True]
        await candidate.kill()

    run(main())


def test_a_long_outage_costs_leadership_until_it_is_over() -> None:
    async def main() -> list[bool]:
        candidate = Candidate(LeaseInMemory(), "a")
        await asyncio.sleep(20.0)
        candidate.online = False
        await asyncio.sleep(30.0)
        assert not candidate.leader.holds()
        candidate.online = True
        await asyncio.sleep(5.0)
        assert candidate.leader.holds()
        await candidate.kill()
        return [leading for leading, _ in candidate.changes]

    assert run(main()) == [True, False, True]


def test_a_lease_taken_by_somebody_else_is_given_up_with_the_next_renewal() -> None:
    async def main() -> None:
        shared = LeaseInMemory()
        candidate = Candidate(shared, "a")
        await asyncio.sleep(20.0)
        assert shared.live is not None
        await shared.write(
            {"metadata": shared.live["metadata"], "spec": {"holderIdentity": "thief"}}
        )
        await asyncio.sleep(Timing().renew_s + 0.1)
        assert not candidate.leader.holds()
        await candidate.kill()

    run(main())


def test_a_note_on_our_lease_does_not_cost_it() -> None:
    async def main() -> list[bool]:
        shared = LeaseInMemory()
        candidate = Candidate(shared, "a")
        await asyncio.sleep(20.0)
        assert shared.live is not None
        await shared.write({"metadata": shared.live["metadata"], "spec": shared.live["spec"]})
        await asyncio.sleep(20.0)
        assert candidate.leader.holds()
        await candidate.kill()
        return [leading for leading, _ in candidate.changes]

    assert run(main()) == [True]


def test_the_clock_of_another_machine_is_not_believed() -> None:
    async def main() -> float:
        shared = LeaseInMemory()
        spec = {
            "holderIdentity": "b",
            "leaseDurationSeconds": 10,
            "renewTime": "1999-01-01T00:00:00.000000Z",
        }
        await shared.write({"metadata": {}, "spec": spec})
        began = now()
        candidate = Candidate(shared, "a")
        await candidate.leader.wait()
        await candidate.kill()
        return now() - began

    assert run(main()) >= 10.0


def test_transitions_are_counted_and_times_are_kept() -> None:
    async def main() -> tuple[Manifest, Manifest]:
        shared = LeaseInMemory()
        first = Candidate(shared, "a")
        await asyncio.sleep(5.0)
        assert shared.live is not None
        before = shared.live["spec"]
        await first.kill()
        await first.leader.release()
        second = Candidate(shared, "b")
        await asyncio.sleep(5.0)
        await second.kill()
        return before, shared.live["spec"]

    before, after = run(main())
    assert before["leaseTransitions"] == 1
    assert after["leaseTransitions"] == 2
    assert before["acquireTime"] < before["renewTime"] < after["acquireTime"]
