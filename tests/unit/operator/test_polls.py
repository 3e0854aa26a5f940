"""Asking pods: what becomes of their answers, when they are asked, and what that may cost."""

import asyncio
import gzip
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from sglang_controllers import names
from sglang_controllers.manifest import Manifest
from sglang_operator import due
from sglang_operator.cache import Cache, Key
from sglang_operator.clock import Clock
from sglang_operator.polls import AT_ONCE, Polls
from sglang_operator.targets import Ports
from tests.builders import NOW, a_cluster, a_pod
from tests.unit.operator.pod_servers import (
    Answer,
    Flood,
    Gate,
    Servers,
    drips,
    engine,
    hangs,
    raw,
    router,
    says,
    warming,
)

CHAT = Key("team", "chat")
ENGINE = "127.1.0.1"
OTHER_ENGINE = "127.1.0.2"
ROUTER = "127.2.0.1"
URL = "http://10.0.0.1:30000"
NO_ANSWER_S = 2.0
"""More than a request to a pod that hangs may take, on a busy machine."""


async def until(condition: Callable[[], object], timeout_s: float = 20.0) -> None:
    end_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end_s, "it did not happen"
        await asyncio.sleep(0.01)


class Bench:
    """A cluster whose pods are known by their addresses, which are their names, too."""

    def __init__(self) -> None:
        self.agents = Servers()
        self.routers = Servers()
        self.cache = Cache()
        self.changes: list[Key] = []
        self.now = NOW
        self._version = 0
        self._task: asyncio.Task[None] | None = None

    async def start(self, host: str = "0.0.0.0") -> None:
        await self.agents.start(host)
        await self.routers.start(host)
        clock = Clock(now=lambda: self.now)
        ports = Ports(self.agents.port, self.routers.port)
        self.polls = Polls(self.cache, clock, self.changes.append, ports)
        self.put(a_cluster())
        self._task = asyncio.create_task(self.polls.run())
        await asyncio.sleep(0)  # it begins

    async def stop(self) -> None:
        assert self._task
        self._task.cancel()
        await asyncio.wait([self._task])
        assert self._task.cancelled()
        await self.agents.stop()
        await self.routers.stop()

    def put(self, item: Manifest) -> Manifest:
        """As the watch does, but in silence."""
        self._version += 1
        item["metadata"]["resourceVersion"] = str(self._version)
        self.cache.put(item)
        return item

    def pod(self, address: str, answer: Answer | None = None, **changes: Any) -> Manifest:
        """A pod is there, or is there in another way."""
        pod = running(address, **changes)
        if answer:
            (self.routers if is_router(pod) else self.agents).answers[address] = answer
        return self.put(pod)

    def event(self, pod: Manifest) -> None:
        self.polls.seen(pod)

    def remove(self, pod: Manifest) -> None:
        self._version += 1
        self.cache.remove(pod, self._version)
        self.event(pod)

    async def ask(self) -> float:
        """The seconds that it takes."""
        began_s = time.monotonic()
        await asyncio.wait_for(self.polls.ask(CHAT), 20)
        return time.monotonic() - began_s

    def in_flight(self, address: str) -> int | None:
        return self.polls.reports(CHAT).engines[uid(address)].in_flight

    def workers(self, address: str) -> frozenset[str] | None:
        return self.polls.reports(CHAT).routers[uid(address)].workers


def running(address: str, *, ready: bool = True, ip: str = "", **status: Any) -> Manifest:
    condition = {"type": "Ready", "status": str(ready)}
    about = {"phase": "Running", "podIP": ip or address, "conditions": [condition]} | status
    pod = a_pod(name=address, **about)
    if address.startswith("127.2."):
        pod["metadata"]["labels"][names.ROLE_LABEL] = names.ROUTER_ROLE
    return pod


def is_router(pod: Manifest) -> bool:
    return bool(pod["metadata"]["labels"][names.ROLE_LABEL] == names.ROUTER_ROLE)


def uid(address: str) -> str:
    return f"uid-{address}"


@pytest.fixture(name="bench")
async def _bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    """Where nobody's round comes meanwhile: pods are asked because something happened to them."""
    monkeypatch.setattr(due, "PERIOD_S", 1e9)
    bench = Bench()
    await bench.start()
    yield bench
    await bench.stop()


async def test_engines_and_routers_are_asked_each_for_its_own(bench: Bench) -> None:
    bench.pod(ENGINE, engine(3, token=False))
    bench.pod(OTHER_ENGINE, engine(None))
    bench.pod(ROUTER, router(URL))

    await bench.ask()

    reports = bench.polls.reports(CHAT)
    assert reports.engines.keys() == {uid(ENGINE), uid(OTHER_ENGINE)}
    assert reports.engines[uid(ENGINE)].in_flight == 3
    assert not reports.engines[uid(ENGINE)].has_token
    assert reports.engines[uid(OTHER_ENGINE)].in_flight is None
    assert reports.engines[uid(OTHER_ENGINE)].has_token
    assert reports.engines[uid(ENGINE)].asked_at == NOW
    assert bench.workers(ROUTER) == frozenset({URL})
    assert (bench.agents.paths, bench.routers.paths) == ({"/metrics"}, {"/workers"})


async def test_pods_are_asked_by_ipv6_too() -> None:
    bench = Bench()
    await bench.start("::1")
    bench.agents.answers["::1"] = engine(4)
    bench.pod(ENGINE, ip="::1")

    await bench.ask()

    said = bench.polls.reports(CHAT).engines
    await bench.stop()
    assert said[uid(ENGINE)].in_flight == 4


async def test_a_proxy_of_the_environment_is_not_used(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    bench.pod(ENGINE, engine(3))

    await bench.ask()

    assert bench.in_flight(ENGINE) == 3


@pytest.mark.parametrize(
    "pod",
    [
        running(ENGINE, phase="Pending"),
        running(ENGINE, phase="Succeeded"),
        running(ENGINE, podIP=None),
        running(ENGINE, podIP="example.com/"),
    ],
)
async def test_pods_that_do_not_run_are_not_asked(bench: Bench, pod: Manifest) -> None:
    bench.event(bench.put(pod))

    await bench.ask()

    assert bench.polls.reports(CHAT).engines == {}


MANY_HEADERS = b"HTTP/1.1 200 OK\r\n" + b"".join(b"a%d: b\r\n" % n for n in range(10_000))
CUT_SHORT = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nsglang_agent_draining 0.0\n"
BOMB = says(gzip.compress(bytes(50_000_000)), "200 OK", "Content-Encoding: gzip")

SILENT: dict[str, Answer] = {
    "it hangs": hangs,
    "it drips": drips,
    "it closes": raw(b""),
    "it is cut short": raw(CUT_SHORT),
    "it cannot tell": says('{"error": "not yet"}', "503 Service Unavailable"),
}
ODD: dict[str, Answer] = {
    "it fails": says("sorry", "500 Internal Server Error"),
    "there is nothing": says("sorry", "404 Not Found"),
    "it points to itself": says("", "302 Found", "Location: /metrics"),
    "it is no HTTP": raw(b"\x15\x03\x01\x00\x02\x02\x28" * 20),
    "it is something else": says("<html>hello</html>"),
    "it is empty": says(""),
    "it is nested": says("[" * 50_000),
    "it is a bomb": BOMB,
    "it is too long": says(b"#" * 600_000),
    "it has many headers": raw(MANY_HEADERS + b"\r\n"),
    "it has a long header": raw(b"HTTP/1.1 200 OK\r\na: " + b"b" * 100_000 + b"\r\n\r\n"),
    "it has odd chunks": raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
}


def unknown(bench: Bench) -> bool:
    """Whether the one pod was asked, and nothing was learned."""
    reports = bench.polls.reports(CHAT)
    engines = [(r.in_flight, r.has_token) for r in reports.engines.values()]
    routers = [r.workers for r in reports.routers.values()]
    return (engines, routers) in (([(None, True)], []), ([], [None]))


@pytest.mark.parametrize("address", [ENGINE, ROUTER])
@pytest.mark.parametrize("answer", [pytest.param(a, id=name) for name, a in SILENT.items()])
async def test_no_answer_is_unknown_and_nothing_to_complain_of(
    bench: Bench, caplog: pytest.LogCaptureFixture, address: str, answer: Answer
) -> None:
    bench.pod(address, answer)

    took_s = await bench.ask()

    assert unknown(bench)
    assert took_s < NO_ANSWER_S
    assert caplog.records == []


@pytest.mark.parametrize("address", [ENGINE, ROUTER])
@pytest.mark.parametrize("answer", [pytest.param(a, id=name) for name, a in ODD.items()])
async def test_an_odd_answer_is_unknown_and_told_once(
    bench: Bench, caplog: pytest.LogCaptureFixture, address: str, answer: Answer
) -> None:
    bench.pod(address, answer)

    await bench.ask()
    await bench.ask()

    assert unknown(bench)
    (line,) = [record.message for record in caplog.records]
    assert line.startswith(("agent of pod ", "router of pod "))
    assert address in line
    assert len(line) < 400
    assert bench.changes == []


async def test_nobody_listening_is_unknown(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.pod(ENGINE, engine(3))
    await bench.ask()
    await bench.agents.stop()
    bench.agents = Servers()  # for the end of the test
    await bench.agents.start()

    await bench.ask()

    assert bench.in_flight(ENGINE) is None
    assert not caplog.records


async def test_a_redirect_is_not_followed(bench: Bench) -> None:
    target = f"Location: http://{OTHER_ENGINE}:{bench.agents.port}/metrics"
    bench.agents.answers[OTHER_ENGINE] = engine(3)
    bench.pod(ENGINE, says("", "307 Temporary Redirect", target))

    await bench.ask()

    assert bench.in_flight(ENGINE) is None
    assert bench.agents.asked[OTHER_ENGINE] == 0


@pytest.mark.parametrize(
    "flood",
    [
        Flood(b"HTTP/1.1 200 OK\r\n\r\n", b"#" * 65_536),
        Flood(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n" * 10_000),
        Flood(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
        Flood(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n#\r\n" * 10_000),
    ],
    ids=["body", "headers", "continue", "chunks"],
)
async def test_a_flood_is_left_early(bench: Bench, flood: Flood) -> None:
    bench.pod(ROUTER, flood)

    took_s = await bench.ask()

    assert bench.workers(ROUTER) is None
    assert took_s < NO_ANSWER_S
    assert flood.sent < 64 * 2**20


async def test_one_pod_that_hangs_does_not_hold_up_the_others(bench: Bench) -> None:
    bench.pod(ENGINE, hangs)
    bench.pod(OTHER_ENGINE, engine(3))

    took_s = await bench.ask()

    assert 1.0 <= took_s < NO_ANSWER_S
    assert bench.in_flight(OTHER_ENGINE) == 3


async def test_fifty_are_asked_at_once_and_each_by_one_request(bench: Bench) -> None:
    gate = Gate(engine(1))
    addresses = [f"127.1.1.{number}" for number in range(1, 121)]
    for address in addresses:
        bench.event(bench.pod(address, gate))
    await until(lambda: bench.agents.now.total() == AT_ONCE)
    asking = asyncio.create_task(bench.ask())
    await until(lambda: bench.polls._timetable.next_s() == 0.0)

    gate.opened.set()
    await asking

    assert all(bench.in_flight(address) == 1 for address in addresses)
    assert bench.agents.most_at_once == AT_ONCE
    assert bench.agents.most_of_one == 1


async def test_asking_ends_in_time_however_many_pods_hang(bench: Bench) -> None:
    addresses = [f"127.1.1.{number}" for number in range(1, 121)]
    for address in addresses:
        bench.pod(address, hangs)

    took_s = await bench.ask()

    assert took_s < NO_ANSWER_S
    await until(lambda: len(bench.polls.reports(CHAT).engines) == len(addresses))
    assert bench.agents.most_at_once <= AT_ONCE


async def test_a_cluster_that_is_asked_for_goes_before_others_that_hang(bench: Bench) -> None:
    for number in range(1, 201):
        address = f"127.1.1.{number}"
        pod = bench.pod(address, hangs)
        pod["metadata"]["labels"][names.CLUSTER_LABEL] = "other"
        bench.event(bench.put(pod))
    await until(lambda: bench.agents.now.total() == AT_ONCE)
    bench.pod(ENGINE, engine(3))

    await bench.ask()

    await until(lambda: uid(ENGINE) in bench.polls.reports(CHAT).engines)
    assert bench.agents.asked.total() <= 2 * AT_ONCE + 1


async def test_asking_is_asking_anew_also_while_a_request_is_on_its_way(bench: Bench) -> None:
    gate = Gate(engine(1))
    bench.event(bench.pod(ENGINE, gate))
    await until(lambda: bench.agents.now[ENGINE])
    asking = asyncio.create_task(bench.ask())
    await asyncio.sleep(0)
    bench.agents.answers[ENGINE] = engine(2)

    gate.opened.set()
    await asking

    assert bench.in_flight(ENGINE) == 2
    assert bench.agents.most_of_one == 1


async def test_it_is_told_when_a_pod_was_asked_last_answered_or_not(bench: Bench) -> None:
    bench.pod(ENGINE, engine(1))
    await bench.ask()
    bench.agents.answers[ENGINE] = raw(b"")
    bench.now = NOW.replace(hour=13)

    await bench.ask()

    assert bench.polls.reports(CHAT).engines[uid(ENGINE)].asked_at == NOW.replace(hour=13)


async def test_a_cluster_without_pods_has_nobody_to_ask(bench: Bench) -> None:
    await bench.ask()
    await bench.polls.ask(Key("team", "unknown"))

    assert bench.polls.reports(Key("team", "unknown")).engines == {}


async def test_nothing_is_waited_for_when_nobody_asks_any_more() -> None:
    bench = Bench()
    await bench.start()
    bench.pod(ENGINE, hangs)
    asking = asyncio.create_task(bench.ask())
    await until(lambda: bench.agents.now[ENGINE])

    await bench.stop()

    assert await asking < NO_ANSWER_S
    assert await bench.ask() < 0.5


@pytest.mark.parametrize(
    ("address", "first", "then", "changes"),
    [
        pytest.param(ENGINE, engine(1), engine(2), 0, id="in flight"),
        pytest.param(ENGINE, engine(1), engine(None), 0, id="in flight becomes unknown"),
        pytest.param(ENGINE, engine(1), raw(b""), 0, id="the agent is silent"),
        pytest.param(ENGINE, raw(b""), engine(1), 0, id="the agent speaks"),
        pytest.param(ENGINE, engine(1), engine(1, token=False), 1, id="no token"),
        pytest.param(ENGINE, engine(1, token=False), engine(1), 2, id="a token"),
        pytest.param(ENGINE, engine(1, token=False), engine(2, token=False), 1, id="still none"),
        pytest.param(ROUTER, router(URL), router(URL), 1, id="the same workers"),
        pytest.param(ROUTER, router(URL, "http://b"), router("http://b", URL), 1, id="order"),
        pytest.param(ROUTER, router(URL), router(URL, "http://b"), 2, id="a worker more"),
        pytest.param(ROUTER, router(URL), router(), 2, id="no worker"),
        pytest.param(ROUTER, router(URL), raw(b""), 2, id="the router is silent"),
        pytest.param(ROUTER, raw(b""), router(), 1, id="the router speaks"),
        pytest.param(ROUTER, raw(b""), says("odd"), 0, id="the router stays unknown"),
    ],
)
async def test_only_what_a_plan_reads_is_a_change(
    bench: Bench, address: str, first: Answer, then: Answer, changes: int
) -> None:
    bench.pod(address, first)
    await bench.ask()
    bench.pod(address, then)

    await bench.ask()

    assert bench.changes == [CHAT] * changes


async def test_a_pod_that_goes_while_it_is_asked_leaves_nothing(bench: Bench) -> None:
    gate = Gate(router(URL))
    pod = bench.pod(ROUTER, gate)
    asking = asyncio.create_task(bench.ask())
    await until(lambda: bench.routers.now[ROUTER])

    bench.remove(pod)
    gate.opened.set()
    await asking

    assert bench.polls.reports(CHAT).routers == {}
    assert bench.changes == []
    assert bench.polls._known == {}
    assert bench.polls._clusters == {}
    assert bench.polls._timetable.next_s() == float("inf")


async def test_an_answer_from_a_pods_old_address_does_not_count(bench: Bench) -> None:
    gate = Gate(engine(1))
    bench.event(bench.pod(ENGINE, gate))
    await until(lambda: bench.agents.now[ENGINE])
    bench.agents.answers["127.1.0.9"] = hangs

    bench.event(bench.pod(ENGINE, ip="127.1.0.9"))
    gate.opened.set()
    await until(lambda: bench.agents.now["127.1.0.9"])

    assert bench.polls.reports(CHAT).engines == {}


async def test_engines_that_begin_or_end_to_warm_are_news_and_each_tenth_between(
    bench: Bench,
) -> None:
    told = []
    for said in (
        warming("warming", warmed=1, pending=99),
        warming("warming", warmed=9, pending=91, tokens=20),
        warming("warming", warmed=10, pending=90, tokens=20),
        warming("warmed", warmed=100, tokens=30),
        warming("warmed", warmed=100, tokens=60),
        warming("warmed", warmed=101, tokens=60),
    ):
        bench.changes.clear()
        bench.pod(ENGINE, engine(0, warming=said))
        await bench.ask()
        told.append(len(bench.changes))

    assert told == [1, 0, 1, 1, 0, 1]


async def test_an_agent_that_does_not_answer_for_once_is_as_warm_as_before(bench: Bench) -> None:
    bench.pod(ENGINE, engine(0, warming=warming("warmed", warmed=3)))
    await bench.ask()
    before = bench.polls.reports(CHAT).engines[uid(ENGINE)].warming
    bench.changes.clear()
    bench.agents.answers[ENGINE] = says("", "503 Service Unavailable")

    await bench.ask()

    assert before is not None
    assert bench.in_flight(ENGINE) is None
    assert bench.polls.reports(CHAT).engines[uid(ENGINE)].warming == before
    assert bench.changes == []


async def test_pods_that_are_gone_or_ended_have_no_report(bench: Bench) -> None:
    gone = bench.pod(ENGINE, engine(1))
    bench.pod(OTHER_ENGINE, engine(1))
    await bench.ask()

    bench.remove(gone)
    bench.event(bench.pod(OTHER_ENGINE, phase="Failed"))

    assert bench.polls.reports(CHAT).engines == {}
    assert bench.polls._known == {}


async def test_a_new_pod_is_asked_without_delay(bench: Bench) -> None:
    bench.event(bench.pod(ENGINE, engine(3)))

    await until(lambda: bench.polls.reports(CHAT).engines, timeout_s=5)


async def test_an_event_that_changes_nothing_costs_nothing(bench: Bench) -> None:
    bench.event(bench.pod(ENGINE, engine(3)))
    await until(lambda: bench.polls.reports(CHAT).engines)

    for number in range(100):
        bench.event(bench.pod(ENGINE, message=f"new text {number}"))

    assert bench.polls._timetable._urgent.first_s() == float("inf")


@pytest.mark.parametrize("change", [{"ready": False}, {"phase": "Failed"}, {"ip": "127.1.0.9"}])
async def test_a_change_of_an_engine_makes_its_routers_due_and_no_other_engine(
    bench: Bench, change: dict[str, Any]
) -> None:
    bench.agents.answers["127.1.0.9"] = engine(3)
    bench.pod(ENGINE, engine(3))
    bench.pod(OTHER_ENGINE, engine(3))
    bench.pod(ROUTER, router(URL))
    await bench.ask()
    bench.routers.answers[ROUTER] = router()

    bench.event(bench.pod(ENGINE, **change))

    await until(lambda: bench.workers(ROUTER) == frozenset(), timeout_s=5)
    assert bench.routers.asked[ROUTER] == 2
    assert bench.agents.asked[OTHER_ENGINE] == 1


async def test_the_deletion_of_an_engine_makes_its_routers_due(bench: Bench) -> None:
    bench.pod(ENGINE, engine(3), ready=False)
    bench.pod(ROUTER, router(URL))
    await bench.ask()
    going = bench.pod(ENGINE, ready=False)
    going["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z"

    bench.event(bench.put(going))
    await until(lambda: bench.routers.asked[ROUTER] == 2, timeout_s=5)
    bench.remove(going)

    await until(lambda: bench.routers.asked[ROUTER] == 3, timeout_s=5)


async def test_a_flood_of_events_costs_one_request_a_second(bench: Bench) -> None:
    bench.event(bench.pod(ENGINE, engine(3)))
    await until(lambda: bench.agents.asked[ENGINE] == 1)

    for number in range(201):
        bench.event(bench.pod(ENGINE, ready=bool(number % 2)))
        await asyncio.sleep(0.002)
    await until(lambda: bench.agents.asked[ENGINE] == 2)

    (_, first_s), (_, second_s) = bench.agents.asked_at
    assert second_s - first_s > 0.95


async def test_an_event_while_a_pod_is_asked_has_it_asked_again(bench: Bench) -> None:
    bench.event(bench.pod(ENGINE, hangs))
    await until(lambda: bench.agents.now[ENGINE])
    bench.agents.answers[ENGINE] = engine(3)

    bench.event(bench.pod(ENGINE, ready=False))

    await until(lambda: bench.in_flight(ENGINE) == 3 if bench.agents.asked[ENGINE] > 1 else 0)


async def test_pods_without_a_cluster_are_nobodys(bench: Bench) -> None:
    pod = running(ENGINE)
    del pod["metadata"]["labels"][names.CLUSTER_LABEL]

    bench.event(bench.put(pod))

    assert bench.polls._known == {}


async def test_pods_that_no_event_told_of_are_found_and_asked_in_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(due, "PERIOD_S", 0.2)
    bench = Bench()
    bench.put(a_cluster())
    bench.pod(ENGINE, engine(3))
    bench.pod(ROUTER, router(URL))

    await bench.start()

    await until(lambda: bench.agents.asked[ENGINE] > 3 and bench.routers.asked[ROUTER] > 3)
    await bench.stop()


async def test_pods_whose_end_no_event_told_are_forgotten(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = bench.pod(ENGINE, engine(3))
    bench.pod(OTHER_ENGINE, engine(3))
    await bench.ask()
    bench.cache.remove(pod)

    bench.polls._look_around()

    assert bench.polls._known.keys() == {uid(OTHER_ENGINE)}


async def test_an_answer_that_breaks_the_client_does_not_end_the_polls(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object) -> bytes:
        raise ZeroDivisionError

    bench.pod(ENGINE, engine(3))
    with monkeypatch.context() as patched:
        patched.setattr("sglang_operator.polls.answer_of", broken)
        await bench.ask()
        assert bench.in_flight(ENGINE) is None

    await bench.ask()

    assert bench.in_flight(ENGINE) == 3
    assert "ZeroDivisionError" in caplog.text
