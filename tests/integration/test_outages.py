"""The API server or its store goes away, or somebody fights the operator; then all is well again.

These tests have a control plane of their own, and the operator is a process of its own, as in a
pod. Nobody helps it: no restart, no resync by hand.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from sglang_controllers.manifest import Manifest
from sglang_controllers.names import CLUSTER_LABEL, KIND
from sglang_operator.kube import MERGE_PATCH, ApiError
from sglang_operator.resources import BY_KIND, CLUSTERS
from tests.integration.control_plane import OwnControlPlane, own_control_plane
from tests.integration.kubelet import FakeKubelet
from tests.integration.process import Process, operator_process
from tests.integration.world import World, fresh_namespace, until

ETCD_DOWN_S = 8.0
API_DOWN_S = 30.0
REST_S = 6.0
"""Three resyncs of the operator."""

STORM_S = 6.0
STORM_PAUSE_S = 0.02
STORM_WRITES = 400
"""What the operator may write in a storm: some 30 runs of a dozen writes. Then it waits."""

HELD = f"""
import sys, time
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from tests.integration.control_plane import own_control_plane
with own_control_plane(Path(sys.argv[1])):
    print("up", flush=True)
    time.sleep(600)
"""


@pytest.fixture(scope="module", name="control_plane")
def _control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnControlPlane]:
    """Hides the one that all other tests share."""
    with own_control_plane(tmp_path_factory.mktemp("outages")) as running:
        yield running


@pytest.fixture(scope="module")
def kubelet(control_plane: OwnControlPlane) -> Iterator[FakeKubelet]:
    serving = FakeKubelet(control_plane.kubeconfig)
    serving.start()
    yield serving
    serving.stop()


@asynccontextmanager
async def operator(world: World) -> AsyncIterator[Process]:
    """An operator that is ready, and whose log somebody reads."""
    async with operator_process(world) as running:
        reader = running.process.stderr
        assert reader is not None

        async def read() -> None:
            while line := await reader.readline():
                print(line.decode().rstrip())

        reading = asyncio.create_task(read())
        try:
            await running.until_status("readyz", 200)
            yield running
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading


async def test_etcd_is_killed_and_comes_back_during_a_rollout(
    world: World, control_plane: OwnControlPlane
) -> None:
    async with operator(world) as running:
        await in_the_middle_of_a_rollout(world)
        await control_plane.stop("etcd")
        healthz = await answers(running, "healthz", ETCD_DOWN_S)
        await control_plane.start("etcd")

        await world.until_serving()
        await rests(running)

    assert healthz == {200}
    assert await world.state() == await undisturbed(world, replicas=3, cache={"pageSize": 8})


async def test_the_api_server_is_down_for_half_a_minute_during_a_rollout(
    world: World, control_plane: OwnControlPlane
) -> None:
    async with operator(world) as running:
        await in_the_middle_of_a_rollout(world)
        await api_server_goes(control_plane)
        healthz = await answers(running, "healthz", API_DOWN_S)
        await api_server_returns(control_plane)
        await world.change(cache={"pageSize": 16}, replicas=2)

        await world.until_serving()
        await running.until_status("healthz", 200)
        await rests(running)

    assert healthz == {200}
    assert await world.state() == await undisturbed(world, replicas=2, cache={"pageSize": 16})


async def test_what_happened_while_every_watch_was_cut_is_found(
    world: World, control_plane: OwnControlPlane
) -> None:
    async with operator(world) as running:
        await world.create("gone")
        await world.create("changed", replicas=2)
        await world.until_serving("gone")
        await world.until_serving("changed")

        # The operator stands still, and the server that comes back knows nothing of the past.
        running.process.send_signal(signal.SIGSTOP)
        await world.delete(CLUSTERS, "gone")
        await world.delete(BY_KIND["Service"], "changed")
        await world.change("changed", cache={"pageSize": 8})
        await world.create("made")
        await api_server_goes(control_plane)
        await api_server_returns(control_plane)
        running.process.send_signal(signal.SIGCONT)

        await world.until_serving("made")
        await world.until_serving("changed")

        async def put_right() -> bool:
            service = await world.get("Service", "changed")
            return service is not None and not await world.children("gone")

        await world.until(put_right, "the Service is back, and what belonged to `gone` is gone")
        await rests(running)


async def test_writers_that_fight_for_our_fields_lose_and_keep_their_own(world: World) -> None:
    async with operator(world) as running:
        await world.create(replicas=2)
        await world.until_serving()
        before = await writes(running)

        storm = asyncio.create_task(meddle(world))
        await world.change(cache={"pageSize": 8})

        async def rolling() -> bool:
            return len(await all_of(world, "Deployment")) == 2

        await world.until(rolling, "the rollout begins")
        await annotate(world)
        await world.change(replicas=3)
        meddled = await storm
        written = await writes(running) - before

        await world.until_serving()
        expected = await undisturbed(world, replicas=3, cache={"pageSize": 8})

        async def put_right() -> bool:
            return without_note(await world.state()) == expected

        with suppress(AssertionError):  # pytest shows what differs
            await world.until(put_right, "everything is as in a quiet place")
        state = await world.state()
        assert without_note(state) == expected
        assert noted(state) == {"ConfigMap", "Deployment", "PodDisruptionBudget", "Service"}
        await rests(running)

    print(f"the operator wrote {written:.0f} times while others did {meddled} times")
    assert meddled > 5 * STORM_S
    assert written <= STORM_WRITES


def test_a_control_plane_ends_with_the_tests_that_are_killed(tmp_path: Path) -> None:
    folder = tmp_path / "control-plane"
    tests = subprocess.Popen([sys.executable, "-c", HELD, str(folder)], stdout=subprocess.PIPE)
    with tests:
        try:
            assert tests.stdout is not None
            assert tests.stdout.readline() == b"up\n"
            started = [int(file.read_text().split()[0]) for file in (folder / "pid").iterdir()]
        finally:
            tests.kill()

    assert len(started) == 4  # its three processes, and what watches over them
    asyncio.run(until(lambda: ended(started, folder), "nothing of it is left"))


async def in_the_middle_of_a_rollout(world: World) -> None:
    """Three replicas serve, a fourth one is there, and the rollout moves on from this moment."""
    await world.create(replicas=3)
    await world.until_serving()
    world.kubelet.decide(world.namespace, "pending")
    await world.change(cache={"pageSize": 8})

    async def held() -> bool:
        return len(await world.pods()) == 4

    await world.until(held, "the first pod of the new revision")
    world.kubelet.decide(world.namespace, "ready")


async def api_server_goes(control_plane: OwnControlPlane) -> None:
    """With the controllers, which elsewhere lose their lease and are started anew."""
    await control_plane.stop("kube-apiserver")
    await control_plane.stop("kube-controller-manager")


async def api_server_returns(control_plane: OwnControlPlane) -> None:
    await control_plane.start("kube-apiserver")
    await control_plane.start("kube-controller-manager")


async def answers(running: Process, path: str, seconds: float) -> set[int]:
    """All that a health endpoint answers in this time."""
    loop = asyncio.get_running_loop()
    end, seen = loop.time() + seconds, set()
    while loop.time() < end:
        seen.add(await running.status(path))
        await asyncio.sleep(0.5)
    return seen


async def rests(running: Process) -> None:
    """The process that began lives, and leaves alone what is as it should be."""
    await asyncio.sleep(1.0)  # the ReplicaSet's last status
    before = await writes(running)

    await asyncio.sleep(REST_S)

    assert await writes(running) == before
    assert running.process.returncode is None


async def writes(running: Process) -> float:
    samples = await running.metrics()
    return sum(v for k, v in samples.items() if k.startswith("sglang_operator_writes_total"))


async def undisturbed(world: World, **spec: Any) -> dict[str, Manifest]:
    """What becomes of such a cluster where nothing happens to it."""
    async with fresh_namespace(world.kube) as name:
        quiet = World(world.kube, world.kubelet, world.kubeconfig, name)
        async with quiet.operator():
            await quiet.create(**spec)
            await quiet.until_serving()
            return await quiet.state()


OURS = {"labels": {CLUSTER_LABEL: "theirs", "app.kubernetes.io/name": "theirs"}}

CONTESTED: dict[str, Manifest] = {
    "Service": {
        "spec": {
            "ports": [{"name": "http", "port": 9000, "targetPort": 1}],
            "selector": {CLUSTER_LABEL: "theirs", "app": "theirs"},
        }
    },
    "PodDisruptionBudget": {
        "spec": {"maxUnavailable": 2, "selector": {"matchLabels": {"app": "theirs"}}}
    },
    "Deployment": {"metadata": OURS, "spec": {"replicas": 5}},
    "ConfigMap": {"metadata": OURS},
    KIND: {"status": {"replicas": 77, "currentRevision": "theirs", "conditions": []}},
}


async def meddle(world: World) -> int:
    """Overwrite fields of ours for a while, of every object at once; how often it was done."""
    async with asyncio.TaskGroup() as group:
        done = [group.create_task(contest(world, kind, CONTESTED[kind])) for kind in CONTESTED]
    return sum(task.result() for task in done)


async def contest(world: World, kind: str, patch: Manifest) -> int:
    loop = asyncio.get_running_loop()
    end, done = loop.time() + STORM_S, 0
    while loop.time() < end:
        for name in await all_of(world, kind):
            with suppress(ApiError):  # deleted meanwhile
                await patch_as("meddler", world, kind, name, patch)
                done += 1
        await asyncio.sleep(STORM_PAUSE_S)
    return done


async def patch_as(manager: str, world: World, kind: str, name: str, patch: Manifest) -> None:
    subresource = "status" if "status" in patch else ""
    path = BY_KIND[kind].path(world.namespace, name, subresource)
    query = {"fieldManager": manager}
    await world.kube.request("PATCH", path, query=query, body=patch, content_type=MERGE_PATCH)


async def all_of(world: World, kind: str) -> list[str]:
    """Names of the cluster's objects, whatever has become of their labels."""
    listing = await world.kube.list_all(BY_KIND[kind], world.namespace, selectors={})
    found = [item["metadata"]["name"] for item in listing.items]
    return [name for name in found if name.startswith("chat")]


NOTE = {"note": "mine"}


async def annotate(world: World) -> None:
    """Somebody's annotation, on every object that CONTESTED names."""
    for kind in CONTESTED:
        for name in await all_of(world, kind):
            await patch_as("somebody", world, kind, name, {"metadata": {"annotations": NOTE}})


def noted(state: dict[str, Manifest]) -> set[str]:
    """Kinds of which every object has the annotation."""
    children = [item for key, item in state.items() if key != KIND]
    kinds = {item["kind"] for item in children}
    return kinds - {
        i["kind"] for i in children if not NOTE.items() <= i["metadata"]["annotations"].items()
    }


def without_note(state: dict[str, Manifest]) -> dict[str, Manifest]:
    def plain(item: Manifest) -> Manifest:
        if "metadata" not in item:
            return item
        kept = {k: v for k, v in item["metadata"]["annotations"].items() if k not in NOTE}
        return {**item, "metadata": {**item["metadata"], "annotations": kept}}

    return {key: plain(item) for key, item in state.items()}


async def ended(pids: list[int], folder: Path) -> bool:
    return not any(map(os.path.exists, [str(folder), *(f"/proc/{pid}" for pid in pids)]))
