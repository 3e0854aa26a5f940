"""One API server and one engine for the whole session, a namespace and an operator for each test."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import yaml

from sglang_operator.kube import APPLY_PATCH, Kube, load_configuration
from tests.integration.agent_engine import PYTHON, Engine
from tests.integration.control_plane import ControlPlane, control_plane, free_port
from tests.integration.kubelet import FakeKubelet
from tests.integration.world import World, fresh_namespace, until

LEFT_BY_KOPF = (
    r"ignore:Exception ignored in. <(socket.socket|function \w+.__del__|coroutine object worker)"
    ":pytest.PytestUnraisableExceptionWarning"
)
"""Kopf that is stopped while it lists leaves connections and workers to the garbage collector."""

CRDS = Path(__file__).parents[2] / "crds"


@pytest.fixture(scope="session", name="control_plane")
def _control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with control_plane(tmp_path_factory.mktemp("control-plane")) as running:
        yield running


@pytest.fixture(scope="session")
def running_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A real one, for what is beside an engine. It may still start, and it tells of its cache.

    Its memory is checked at each step: what others leave there has to be right.
    """
    assert PYTHON.exists(), f"there is no engine environment at {PYTHON}: run make engine-env"
    events = {
        "publisher": "zmq",
        "endpoint": f"tcp://127.0.0.1:{free_port()}",
        "bind": True,
        "replay_endpoint": f"tcp://127.0.0.1:{free_port()}",
        "topic": "kv-events",
        "format": "dynamo",
    }
    engine = Engine(tmp_path_factory.mktemp("engine"))
    engine.start(
        f"--kv-events-config={json.dumps(events)}",
        SGLANG_ENABLE_STRICT_MEM_CHECK_DURING_BUSY="1",
        SGLANG_CHECK_KV_PAGE_INVARIANTS="1",
    )
    yield engine
    engine.kill()


@pytest.fixture(scope="session")
def kubelet(control_plane: ControlPlane) -> Iterator[FakeKubelet]:
    serving = FakeKubelet(control_plane.kubeconfig)
    serving.start()
    yield serving
    serving.stop()


@pytest.fixture
async def bare_kube(control_plane: ControlPlane) -> AsyncIterator[Kube]:
    """A client of the API server, whatever is installed there."""
    async with Kube(await load_configuration(control_plane.kubeconfig)) as kube:
        yield kube


@pytest.fixture
async def kube(bare_kube: Kube) -> Kube:
    """A client of the API server, with the CRD in place."""
    await install_crd(bare_kube)
    return bare_kube


@pytest.fixture
async def namespace(kube: Kube) -> AsyncIterator[str]:
    async with fresh_namespace(kube) as name:
        yield name


@pytest.fixture
async def world(
    kube: Kube, namespace: str, kubelet: FakeKubelet, control_plane: ControlPlane
) -> World:
    return World(kube, kubelet, control_plane.kubeconfig, namespace)


async def install_crd(kube: Kube) -> None:
    """Apply what is in crds/, and wait until it is served."""
    for file in sorted(CRDS.glob("*.yaml")):
        manifest = yaml.safe_load(file.read_text())
        name = manifest["metadata"]["name"]
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        query = {"fieldManager": "tests", "force": "true"}
        await kube.request("PATCH", path, query=query, body=manifest, content_type=APPLY_PATCH)

        async def served(path: str = path) -> bool:
            live = await kube.request("GET", path)
            conditions = (live.get("status") or {}).get("conditions") or ()
            return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

        await until(served, f"{name} is served")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    ours = [item for item in items if here in item.path.parents]
    for item in ours:
        item.add_marker(pytest.mark.filterwarnings(LEFT_BY_KOPF))
    if not config.option.markexpr:
        long = [item for item in ours if item.get_closest_marker("soak")]
        items[:] = [item for item in items if item not in long]
        config.hook.pytest_deselected(items=long)
