"""What Argo CD and Flux see of a SGLangCluster, and what they are given in examples/gitops."""

import os
from typing import Any

import yaml

from sglang_controllers.manifest import Manifest
from sglang_controllers.names import KIND
from sglang_operator.resources import CLUSTERS
from tests.integration.kubectl import Kubectl
from tests.integration.kubelet import by_image
from tests.integration.world import World
from tests.unit.chart.argocd import HEALTH, KEY, PHASES, RECORDED, health
from tests.unit.docs.blocks import ROOT

RECORD = "SGLANG_OPERATOR_RECORD"
"""Set to 1, the test below writes the objects it sees to tests/data/argocd."""

HEADER = f"""\
# Recorded from a real API server. Refresh all:
# {RECORD}=1 .venv/bin/python -m pytest tests/integration/test_gitops.py -k phase
"""

HELD = "tests.sglang.dev/held"


async def test_argo_cd_s_health_follows_a_cluster_through_every_phase(world: World) -> None:
    met: set[str] = set()

    async def is_now(phase: str) -> None:
        live = await world.get(KIND, "chat")
        assert live is not None
        record(phase, live)
        expected, begins = PHASES[phase]
        status, message = health(live)
        assert (status, message[: len(begins)]) == (expected, begins), live.get("status")
        met.add(phase)

    fates = {"slow": "pending", "broken": "crash", "missing": "image", "big": "unschedulable"}
    world.kubelet.decide(world.namespace, by_image(**fates))
    await world.create(replicas=2, engine=image("slow"))
    await is_now("new")
    async with world.operator():
        await world.until_reason("Starting")
        await is_now("starting")
        await world.change(engine=image("big"))
        await world.until_reason("WaitingForGPU")
        await is_now("waiting-for-gpu")
        await world.change(engine=image("good"))
        await world.until_serving()
        await is_now("serving")
    await world.change(engine=image("slow"))
    await is_now("behind")
    async with world.operator():
        await world.until_reason("RollingOut")
        await is_now("rolling-out")
        await world.change(engine=image("broken"))
        await world.until_reason("EngineCrash")
        await is_now("stalled-while-serving")
        await world.change(engine={"extraArgs": {"tp-size": 2}})
        await world.until_reason("BadEngineArgs")
        await is_now("bad-arguments")
        await world.change(paused=True, engine={**image("good-2"), "extraArgs": None})
        await world.until_reason("Paused")
        await is_now("paused")
        await world.change(paused=None, replicas=0)
        await world.until_reason("ScaledToZero")
        await is_now("scaled-to-zero")
        await world.change(replicas=1, engine=image("missing"))
        await world.until_reason("ImagePull")
        await is_now("stalled")
        await world.patch(CLUSTERS, "chat", {"metadata": {"finalizers": [HELD]}})
        await world.delete(CLUSTERS, "chat")
        await is_now("deleted")
        await world.patch(CLUSTERS, "chat", {"metadata": {"finalizers": None}})

    assert met == set(PHASES)


def image(name: str) -> Manifest:
    return {"image": f"registry.example/{name}:1"}


def record(phase: str, live: Manifest) -> None:
    if os.environ.get(RECORD) != "1":
        return
    metadata: dict[str, Any] = {k: v for k, v in live["metadata"].items() if k != "managedFields"}
    text = yaml.safe_dump({**live, "metadata": metadata}, sort_keys=False, width=120)
    (RECORDED / f"{phase}.yaml").write_text(HEADER + text)


async def test_the_health_check_stays_beside_what_argo_cd_s_installation_writes(
    world: World,
) -> None:
    kubectl = Kubectl(world.kubeconfig)
    installed = config_map(world.namespace, {"url": "https://argocd.example.com"})
    upgraded = config_map(world.namespace, {"url": "https://argocd.example.com", "new": "1"})
    ours = yaml.safe_load((ROOT / "examples/gitops/argocd/health-check.yaml").read_text())
    ours["metadata"]["namespace"] = world.namespace

    kubectl.must("apply", "-f", "-", given=yaml.safe_dump(installed))
    options = ("--server-side", "--field-manager=sglang-health-check")
    kubectl.must("apply", *options, "-f", "-", given=yaml.safe_dump(ours))
    kubectl.must("apply", "-f", "-", given=yaml.safe_dump(upgraded))

    live = kubectl.must("get", "configmap", "argocd-cm", "-n", world.namespace, "-o", "yaml")
    assert yaml.safe_load(live)["data"] == {**upgraded["data"], KEY: HEALTH.read_text()}


def config_map(namespace: str, data: dict[str, str]) -> Manifest:
    metadata = {"name": "argocd-cm", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
