"""The router's list of engines against what is true, and who may ask it for what.

The router is smg itself, started by its launcher, and so is the API server real. Engines are
stand-ins, and the tests do to pods what kubelets and Deployments do.
"""

import asyncio
import json
import random
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from sglang_controllers.api.router import RoutingPolicy
from sglang_controllers.resources.router_deployment import (
    HEALTH_FAILURES,
    HEALTH_INTERVAL_S,
    HEALTH_TIMEOUT_S,
)
from sglang_operator.kube import Kube
from tests.integration.control_plane import OwnControlPlane, own_control_plane
from tests.integration.rights import account, rule
from tests.integration.router_events import Cluster, compared, random_event
from tests.integration.router_process import (
    KEY,
    Engine,
    Pods,
    Router,
    engines,
    router,
)
from tests.integration.world import fresh_namespace

SEED = 20261130
EVENTS = 100
PAUSE_S = (0.0, 0.4)

DEAD_LISTED_AT_MOST_S = HEALTH_FAILURES * HEALTH_INTERVAL_S + 1.0
"""Its port refuses, so no check takes long."""

HUNG_LISTED_AT_MOST_S = HEALTH_FAILURES * (HEALTH_INTERVAL_S + HEALTH_TIMEOUT_S) + 1.0
"""Each of its checks takes the time-out."""

MISSING_AT_MOST_S = 10.0

RIGHTS = rule("", "pods", "list watch")
"""All that the router uses."""


@pytest.fixture(scope="module", name="control_plane")
def _control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnControlPlane]:
    """Hides the one that all other tests share: this one goes down for a while."""
    with own_control_plane(tmp_path_factory.mktemp("router")) as running:
        yield running


@dataclass(frozen=True, slots=True)
class Scene:
    router: Router
    pods: Pods
    engines: list[Engine]

    @property
    def urls(self) -> list[str]:
        return [engine.url for engine in self.engines]

    async def until_all_are_known(self) -> None:
        """Each engine has a ready pod, named by its address."""
        for engine in self.engines:
            await engine.until_listening()
            await self.pods.create(engine.address, engine.address)
        await self.router.until_healthy(*self.urls)


@asynccontextmanager
async def scene(kube: Kube, folder: Path, *more: str, count: int = 3) -> AsyncIterator[Scene]:
    async with fresh_namespace(kube) as namespace:
        kubeconfig = await account(kube, namespace, [RIGHTS], folder)
        # In turn, so that each engine that the router believes in gets requests.
        options = ("--policy=round_robin", *more)
        with (
            engines(count, folder) as started,
            router(kubeconfig, namespace, folder, *options) as running,
        ):
            yield Scene(running, Pods(kube, namespace), started)


@pytest.fixture(name="settled")
async def _settled(bare_kube: Kube, tmp_path: Path) -> AsyncIterator[Scene]:
    async with scene(bare_kube, tmp_path) as made:
        await made.until_all_are_known()
        yield made


async def test_list_against_cluster_truth_after_100_random_pod_events(
    bare_kube: Kube, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    async with scene(bare_kube, tmp_path, count=6) as made:
        for engine in made.engines:
            await engine.until_listening()
        cluster = Cluster(made.pods, made.engines)
        comparison = asyncio.create_task(compared(cluster, made.router))

        happened = []
        for _ in range(EVENTS):
            happened.append(await random_event(cluster, chance))
            await asyncio.sleep(chance.uniform(*PAUSE_S))
        await made.router.until_healthy(*cluster.serving())

        comparison.cancel()
        worst = cluster.worst
        print(f"{len(happened)} events, of {len(set(happened))} kinds; {worst}")
        assert worst.stale_s <= HEALTH_INTERVAL_S, happened
        assert worst.dead_s <= DEAD_LISTED_AT_MOST_S, happened
        assert worst.missing_s <= MISSING_AT_MOST_S, happened


async def test_a_lost_deleted_event_leaves_no_stale_worker(
    settled: Scene, control_plane: OwnControlPlane
) -> None:
    first, *others = settled.engines

    # The router stands still, and the server that comes back knows nothing of the past.
    settled.router.send_signal(signal.SIGSTOP)
    await settled.pods.delete(first.address)
    await settled.pods.let_go(first.address)
    await control_plane.stop("kube-apiserver")
    await control_plane.start("kube-apiserver")
    settled.router.send_signal(signal.SIGCONT)

    # Its process answers, so no health check helps.
    took_s = await settled.router.until_healthy(*(engine.url for engine in others))
    assert took_s <= MISSING_AT_MOST_S
    await settled.pods.create(first.address, first.address)
    took_s = await settled.router.until_healthy(*settled.urls)
    assert took_s <= MISSING_AT_MOST_S


async def test_a_router_that_is_killed_finds_the_engines_by_itself(settled: Scene) -> None:
    settled.router.kill()
    settled.router.start()

    took_s = await settled.router.until_healthy(*settled.urls)

    assert took_s <= MISSING_AT_MOST_S


@pytest.mark.parametrize(
    ("fault", "at_most_s"), [("kill", DEAD_LISTED_AT_MOST_S), ("hang", HUNG_LISTED_AT_MOST_S)]
)
async def test_a_dead_worker_whose_pod_says_ready_gets_no_request(
    bare_kube: Kube, tmp_path: Path, fault: str, at_most_s: float
) -> None:
    # Without retries, a request that is given to it fails or hangs.
    async with scene(bare_kube, tmp_path, "--disable-retries") as made:
        await made.until_all_are_known()
        *others, dead = made.engines
        assert [(await made.router.chat())[0] for _ in range(6)] == [200] * 6
        assert [engine.requests() for engine in made.engines] == [2, 2, 2]

        getattr(dead, fault)()
        took_s = await made.router.until_healthy(*(engine.url for engine in others))
        answers = [(await made.router.chat())[0] for _ in range(20)]
        dead.kill()
        dead.start()
        back_s = await made.router.until_healthy(*made.urls)

        print(f"{fault}: listed for {took_s:.1f} s, back after {back_s:.1f} s")
        assert took_s <= at_most_s
        assert back_s <= MISSING_AT_MOST_S
        assert answers == [200] * 20
        assert sum(engine.requests() for engine in others) == 24
        assert dead.requests() == 2


async def test_a_request_outlives_the_removal_of_its_worker(settled: Scene) -> None:
    asked = [asyncio.create_task(settled.router.chat(tokens=40)) for _ in range(6)]
    await asyncio.sleep(1)

    first, *others = settled.engines
    await settled.pods.delete(first.address)
    await settled.router.until_healthy(*(engine.url for engine in others))

    assert not any(task.done() for task in asked)
    assert [(await task)[0] for task in asked] == [200] * 6
    assert first.requests() == 2


async def test_every_policy_of_the_api_spreads_requests(settled: Scene, tmp_path: Path) -> None:
    kubeconfig, namespace = settled.router.kubeconfig, settled.pods.namespace
    with ExitStack() as all_at_once:
        started = {
            policy: all_at_once.enter_context(
                router(kubeconfig, namespace, tmp_path, f"--policy={policy}")
            )
            for policy in RoutingPolicy
        }
        for each in started.values():
            await each.until_healthy(*settled.urls)

        answers = {policy: await each.chat() for policy, each in started.items()}

    assert {policy: status for policy, (status, _) in answers.items()} == dict.fromkeys(
        RoutingPolicy, 200
    )


async def test_clients_need_the_key(settled: Scene) -> None:
    path = "/v1/chat/completions"

    without, _ = await settled.router.ask(path, method="POST", body={})
    wrong, _ = await settled.router.ask(path, method="POST", body={}, key="other")
    right, _ = await settled.router.chat()

    assert (without, wrong, right) == (401, 401, 200)


async def test_the_worker_list_needs_no_key_and_shows_none(settled: Scene) -> None:
    status, text = await settled.router.listing()

    assert status == 200
    assert json.loads(text) == {"workers": [{"url": url, "healthy": True} for url in settled.urls]}


@pytest.mark.parametrize("key", ["", KEY])
async def test_workers_cannot_be_changed_from_outside(settled: Scene, key: str) -> None:
    foreign = {"url": "http://127.0.0.1:1"}
    changes = [
        ("POST", "/workers", foreign),
        ("DELETE", "/workers/some", None),
        ("PUT", "/workers/some", foreign),
        ("PATCH", "/workers/some", {"priority": 1}),
        ("GET", "/workers", None),
        ("POST", "/flush_cache", None),
    ]

    answers = [
        (await settled.router.ask(path, method=method, key=key, body=body))[0]
        for method, path, body in changes
    ]

    assert set(answers) == {401}, list(zip(changes, answers, strict=True))
    await settled.router.until_healthy(*settled.urls)


async def test_no_key_can_be_read_from_outside_the_process(bare_kube: Kube, tmp_path: Path) -> None:
    async with scene(bare_kube, tmp_path, "--log-level=debug") as made:
        await made.until_all_are_known()
        await made.router.chat()
        await made.router.ask("/v1/models", key="other")
        assert made.router.process
        process = Path(f"/proc/{made.router.process.pid}")

        seen = {
            "log": made.router.log.read_bytes(),
            "arguments": (process / "cmdline").read_bytes(),
            "list": (await made.router.listing())[1].encode(),
        }

    assert [where for where, what in seen.items() if KEY.encode() in what] == []


async def test_every_line_of_the_log_is_json(settled: Scene) -> None:
    await settled.router.chat()

    lines = settled.router.log.read_text().splitlines()

    assert len(lines) > 10
    assert all(isinstance(json.loads(line), dict) for line in lines)


async def test_sigterm_lets_requests_end(settled: Scene) -> None:
    asked = asyncio.create_task(settled.router.chat(tokens=60))
    await asyncio.sleep(0.5)

    began_s = time.monotonic()
    settled.router.send_signal(signal.SIGTERM)
    answer = await asked
    code = await asyncio.to_thread(settled.router.wait)

    assert answer[0] == 200
    assert code == 0
    assert time.monotonic() - began_s < 10
