"""Watches that die in silence are noticed, and what they lost is found all the same."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from sglang_operator.kube import load_configuration
from sglang_operator.resources import BY_KIND, CLUSTERS
from sglang_operator.run import Operator
from tests.integration.proxy import ApiProxy
from tests.integration.world import World

RESYNC_S = 1.5


@pytest.fixture
async def proxy(world: World, tmp_path: Path) -> AsyncIterator[ApiProxy]:
    configuration = await load_configuration(world.kubeconfig)
    async with ApiProxy(configuration, tmp_path / "kubeconfig").running() as running:
        yield running


async def answer(operator: Operator, path: str) -> tuple[int, str]:
    url = f"http://127.0.0.1:{operator.health_port}/{path}"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.text()


async def test_a_stalled_watch_fails_healthz_by_name_until_it_delivers(
    world: World, proxy: ApiProxy
) -> None:
    async with world.operator(kubeconfig=proxy.kubeconfig, resync_s=RESYNC_S) as operator:
        await world.create()
        await world.until_serving()
        await asyncio.sleep(2.5 * RESYNC_S)
        assert await answer(operator, "healthz") == (200, "ok\n")

        proxy.freeze()
        await world.patch(CLUSTERS, "chat", {"metadata": {"labels": {"a": "b"}}})

        async def unhealthy() -> bool:
            status, text = await answer(operator, "healthz")
            return status == 503 and "SGLangCluster" in text

        took_s = await world.until(unhealthy, "healthz fails")
        assert took_s <= 3 * RESYNC_S
        assert (await answer(operator, "readyz"))[0] == 200
        assert await watch_age_s(operator, "SGLangCluster") >= RESYNC_S

        proxy.thaw()

        async def healthy() -> bool:
            return (await answer(operator, "healthz"))[0] == 200

        assert await world.until(healthy, "healthz recovers") <= 2 * RESYNC_S


async def test_what_a_stalled_watch_does_not_tell_is_found_by_listing(
    world: World, proxy: ApiProxy
) -> None:
    async with world.operator(kubeconfig=proxy.kubeconfig, resync_s=RESYNC_S):
        await world.create()
        await world.until_serving()
        proxy.freeze()

        await world.change(cache={"pageSize": 8})
        await world.until_serving()
        await world.delete(BY_KIND["Service"], "chat")

        async def back() -> bool:
            return await world.get("Service", "chat") is not None

        assert await world.until(back, "the Service is made again") <= 3 * RESYNC_S


async def test_an_api_server_that_answers_errors_is_outlasted(
    world: World, proxy: ApiProxy
) -> None:
    async with world.operator(kubeconfig=proxy.kubeconfig) as operator:
        proxy.broken = True
        await world.create()

        async def tried() -> bool:
            return proxy.writes_refused >= 2

        await world.until(tried, "writes are tried again")
        assert (await answer(operator, "healthz"))[0] == 200
        live = await world.get("SGLangCluster", "chat")
        assert live is not None
        assert "status" not in live

        proxy.broken = False
        await world.until_serving()


async def test_the_metrics_tell_what_happened(world: World) -> None:
    async with world.operator() as operator:
        await world.create()
        await world.until_serving()
        _, text = await answer(operator, "metrics")

    created = (
        'sglang_operator_writes_total{kind="PodDisruptionBudget",outcome="ok",verb="create"} 2.0'
    )
    assert created in text
    assert 'sglang_operator_clusters{phase="Ready"} 1.0' in text
    assert "sglang_operator_leading 1.0" in text
    assert "sglang_operator_queue_wait_seconds_count" in text
    assert 'sglang_operator_reconcile_seconds_count{outcome="written"}' in text


async def watch_age_s(operator: Operator, kind: str) -> float:
    _, text = await answer(operator, "metrics")
    name = f'sglang_operator_watch_age_seconds{{namespace="{operator.settings.namespaces[0]}"'
    lines = [line for line in text.splitlines() if line.startswith(name) and kind in line]
    return float(lines[0].rpartition(" ")[2])
