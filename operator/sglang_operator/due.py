"""When each pod is to be asked next. No I/O and no clock: times are seconds of one clock."""

import heapq
from zlib import crc32

PERIOD_S = 30.0


class Timetable:
    """Every pod is due once a period, at a moment of its own, and whenever somebody is in a hurry.

    The moment comes from the pod's uid: thousands of pods that were found at once, or asked at
    once, are not asked in one burst ever after.
    """

    def __init__(self) -> None:
        self._rounds = _Heap()
        self._urgent = _Heap()

    def add(self, uid: str, now_s: float) -> None:
        """Its first round is within a period."""
        moment_s = crc32(uid.encode()) / 2**32 * PERIOD_S
        self._rounds.set(uid, now_s + (moment_s - now_s) % PERIOD_S)

    def hurry(self, uid: str, at_s: float) -> None:
        """It is due then, whatever its round, and goes before those whose round it is."""
        if at_s < self._urgent.at(uid):
            self._urgent.set(uid, at_s)

    def forget(self, uid: str) -> None:
        self._rounds.drop(uid)
        self._urgent.drop(uid)

    def next_s(self) -> float:
        """When there is somebody to ask. Infinite: never."""
        return min(self._rounds.first_s(), self._urgent.first_s())

    def take(self, now_s: float) -> str | None:
        """A pod that is due, which it then is no more. None: nobody is."""
        if self._urgent.first_s() <= now_s:
            return self._urgent.pop()
        if self._rounds.first_s() > now_s:
            return None
        due_s = self._rounds.first_s()
        uid = self._rounds.pop()
        # Rounds that were missed are not made up for.
        self._rounds.set(uid, due_s + PERIOD_S * (1 + (now_s - due_s) // PERIOD_S))
        return uid


class _Heap:
    """Uids by time. What was set anew or dropped stays in the heap until its time has come."""

    def __init__(self) -> None:
        self._times: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    def at(self, uid: str) -> float:
        return self._times.get(uid, float("inf"))

    def set(self, uid: str, at_s: float) -> None:
        self._times[uid] = at_s
        heapq.heappush(self._heap, (at_s, uid))

    def drop(self, uid: str) -> None:
        self._times.pop(uid, None)

    def first_s(self) -> float:
        while self._heap and self._times.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else float("inf")

    def pop(self) -> str:
        """The first. There has to be one."""
        self.first_s()
        _, uid = heapq.heappop(self._heap)
        del self._times[uid]
        return uid
