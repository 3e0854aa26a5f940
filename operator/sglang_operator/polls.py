"""Asks agents and routers, so that plans and metrics know what Kubernetes does not tell.

A pod that does not answer is unknown, never bad: our own network may be what is broken.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import aiohttp

from sglang_controllers.manifest import Manifest
from sglang_controllers.reports import EngineReport, RouterReport, WarmingReport
from sglang_operator.answers import MalformedError, agent_answer, router_answer
from sglang_operator.cache import Cache, Key, key_of, uid_of
from sglang_operator.clock import Clock
from sglang_operator.due import Timetable
from sglang_operator.inquiry import UnansweredError, answer_of, new_session
from sglang_operator.targets import Ports, Target, target_of
from sglang_operator.warming_answers import warming_answer

log = logging.getLogger(__name__)

AT_ONCE = 50
"""Requests in the whole process."""

ASK_S = 1.2
"""A little more than one request may take."""

CALM_S = 1.0
"""However often a pod changes, its changes cost one request in this time."""

LOOK_S = 30.0
"""Between looks through the whole cache, for what no event has told."""


@dataclass(frozen=True, slots=True)
class Reports:
    """What pods said when they were last asked, by pod uid. Who was not asked yet has none."""

    engines: Mapping[str, EngineReport] = field(default_factory=dict)
    routers: Mapping[str, RouterReport] = field(default_factory=dict)


@dataclass(slots=True)
class _Asked:
    """One pod. `again`: it was due while it was being asked.

    `answered` is for who waits for a request that has not begun yet.
    """

    target: Target
    report: EngineReport | RouterReport | None = None
    began_s: float = float("-inf")
    asking: bool = False
    again: bool = False
    answered: asyncio.Future[None] | None = None
    complained: bool = False


class Polls:
    """`changed` is told a cluster when something has changed that a plan reads.

    In-flight figures change all the time, and a plan that needs them has pods asked anew.
    """

    def __init__(
        self,
        cache: Cache,
        clock: Clock,
        changed: Callable[[Key], None],
        ports: Ports | None = None,
    ) -> None:
        self._cache = cache
        self._clock = clock
        self._changed = changed
        self._ports = ports or Ports()
        self._timetable = Timetable()
        self._known: dict[str, _Asked] = {}
        self._clusters: dict[Key, set[str]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._wake = asyncio.Event()
        self._running = False

    def seen(self, pod: Manifest) -> None:
        """There was an event of a pod, which the cache has taken in.

        Where it changed something that counts, the pod and the routers of its cluster are due.
        """
        key = key_of(pod)
        if key is None:
            return
        held = self._cache.entry(key).pods.get(pod["metadata"]["name"])
        if held is None or uid_of(held) != uid_of(pod):  # it is gone
            news = self._forget(uid_of(pod))
        else:
            news = self._learn(key, held)
        if not news:
            return
        for asked in self._of(key):
            if asked.target.router or asked.target.uid == uid_of(pod):
                self._hurry(asked, max(self._clock.monotonic(), asked.began_s + CALM_S))

    async def ask(self, key: Key) -> None:
        """Ask every pod of a cluster now, before all others.

        Returns when all have answered, after about a second at the latest. Who is asked later
        than that, as too many do not answer, is asked all the same.
        """
        if not self._running:
            return
        for pod in self._cache.entry(key).pods.values():
            self._learn(key, pod)
        answers = {self._answer_of(asked) for asked in self._of(key)}
        if answers:
            await asyncio.wait(answers, timeout=ASK_S)

    def reports(self, key: Key) -> Reports:
        """What the pods that the cache holds now have said."""
        engines: dict[str, EngineReport] = {}
        routers: dict[str, RouterReport] = {}
        for pod in self._cache.entry(key).pods.values():
            asked = self._known.get(uid_of(pod))
            match asked.report if asked else None:
                case EngineReport() as report:
                    engines[uid_of(pod)] = report
                case RouterReport() as report:
                    routers[uid_of(pod)] = report
        return Reports(engines, routers)

    async def run(self) -> None:
        """Ask whoever is due, for ever."""
        async with new_session() as session, asyncio.TaskGroup() as requests:
            self._running = True
            try:
                await self._ask_in_turn(session, requests)
            finally:
                self._running = False
                for asked in self._known.values():
                    _resolve(asked.answered)

    async def _ask_in_turn(
        self, session: aiohttp.ClientSession, requests: asyncio.TaskGroup
    ) -> None:
        look_s = self._clock.monotonic()
        while True:
            if self._clock.monotonic() >= look_s:
                self._look_around()
                look_s = self._clock.monotonic() + LOOK_S
            if not await self._is_due(look_s):
                continue
            # Taken from the timetable last: who is in a hurry passes those who wait for a slot.
            await self._slots.acquire()
            uid = self._timetable.take(self._clock.monotonic())
            asked = self._known.get(uid) if uid else None
            if asked is None or asked.asking:
                self._slots.release()
                if asked:
                    asked.again = True
                continue
            asked.asking = True
            requests.create_task(self._ask_one(session, asked))

    async def _is_due(self, until_s: float) -> bool:
        """Wait until somebody is. False: not until then."""
        while True:
            self._wake.clear()
            now_s = self._clock.monotonic()
            if self._timetable.next_s() <= now_s:
                return True
            if now_s >= until_s:
                return False
            left_s = min(self._timetable.next_s(), until_s) - now_s
            try:
                async with asyncio.timeout(left_s):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _look_around(self) -> None:
        """Take over what is in the cache. What is found this way is asked in its round."""
        there = set()
        for key, _ in self._cache.clusters():
            for pod in self._cache.entry(key).pods.values():
                self._learn(key, pod)
                there.add(uid_of(pod))
        for uid in self._known.keys() - there:
            self._forget(uid)

    def _learn(self, key: Key, pod: Manifest) -> bool:
        """Whether something is new about this pod that counts."""
        target = target_of(key, pod, self._ports)
        if target is None:
            return self._forget(uid_of(pod))
        asked = self._known.get(target.uid)
        if asked and asked.target == target:
            return False
        if asked and asked.target.key == key and asked.target.router == target.router:
            asked.target = target
            return True
        self._forget(target.uid)
        self._known[target.uid] = _Asked(target)
        self._clusters.setdefault(key, set()).add(target.uid)
        self._timetable.add(target.uid, self._clock.monotonic())
        self._wake.set()
        return True

    def _forget(self, uid: str) -> bool:
        """Whether it was known."""
        asked = self._known.pop(uid, None)
        if asked is None:
            return False
        self._timetable.forget(uid)
        uids = self._clusters[asked.target.key]
        uids.remove(uid)
        if not uids:
            del self._clusters[asked.target.key]
        _resolve(asked.answered)
        return True

    def _of(self, key: Key) -> Iterator[_Asked]:
        return (self._known[uid] for uid in self._clusters.get(key, ()))

    def _hurry(self, asked: _Asked, at_s: float) -> None:
        self._timetable.hurry(asked.target.uid, at_s)
        self._wake.set()

    def _answer_of(self, asked: _Asked) -> asyncio.Future[None]:
        """Done when a request that begins from now on has ended. It goes before all others."""
        if asked.answered is None:
            asked.answered = asyncio.get_running_loop().create_future()
        self._hurry(asked, 0.0)
        return asked.answered

    async def _ask_one(self, session: aiohttp.ClientSession, asked: _Asked) -> None:
        target = asked.target
        answered, asked.answered = asked.answered, None
        asked.began_s = self._clock.monotonic()
        try:
            report = await self._report_of(session, asked, target)
            # Else it is gone, or somewhere else: what was there says nothing about it.
            if self._known.get(target.uid) is asked and asked.target.url == target.url:
                self._keep(asked, report)
        finally:
            asked.asking = False
            self._slots.release()
            _resolve(answered)
        if asked.again and self._known.get(target.uid) is asked:
            asked.again = False
            self._hurry(asked, self._clock.monotonic())

    async def _report_of(
        self, session: aiohttp.ClientSession, asked: _Asked, target: Target
    ) -> EngineReport | RouterReport:
        now = self._clock.now()
        try:
            body = await answer_of(session, target)
            if target.router:
                return RouterReport(now, router_answer(body))
            answer = agent_answer(body)
            return EngineReport(now, answer.in_flight, answer.has_token, warming_answer(body))
        except UnansweredError:
            problem = ""
        except MalformedError as error:
            problem = str(error)
        except Exception as error:  # noqa: BLE001  a pod's answer must not end the operator
            problem = repr(error)
        if problem:
            self._complain(asked, problem)
        if target.router:
            return RouterReport(now, None)
        # Prompts do not get cold as their agent is slow for once.
        before = asked.report.warming if isinstance(asked.report, EngineReport) else None
        return EngineReport(now, None, True, before)

    def _keep(self, asked: _Asked, report: EngineReport | RouterReport) -> None:
        before, asked.report = asked.report, report
        if _read_by_plans(before) != _read_by_plans(report):
            self._changed(asked.target.key)

    def _complain(self, asked: _Asked, problem: str) -> None:
        if asked.complained:
            return
        asked.complained = True
        target = asked.target
        extra = {"namespace": target.key.namespace, "cluster": target.key.name}
        what = "router" if target.router else "agent"
        log.warning("%s of pod %s: answer not used: %s", what, target.pod, problem, extra=extra)


def _read_by_plans(report: EngineReport | RouterReport | None) -> object:
    """None as long as nothing was learned that a plan would not take for granted."""
    match report:
        case RouterReport(workers=workers):
            return workers
        case EngineReport(has_token=True, warming=None):
            return None
        case EngineReport(has_token=has_token, warming=warming):
            return has_token, warming and _settled(warming)
        case _:
            return None


def _settled(warming: WarmingReport) -> object:
    """Without what changes with every prompt."""
    if warming.done:
        return replace(warming, tokens=0)
    return warming.state, warming.sources, warming.tenths


def _resolve(answered: asyncio.Future[None] | None) -> None:
    if answered and not answered.done():
        answered.set_result(None)
