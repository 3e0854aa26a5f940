"""What the planner writes is what the agent reads, and the other way round."""

import base64
from pathlib import Path
from typing import Any

import aiohttp
from prometheus_client import CollectorRegistry, generate_latest

from sglang_agent.warming.metrics import WarmingCollector
from sglang_agent.warming.settings import Claim, Peers, WarmingSettings, warming_settings
from sglang_agent.warming.sources import volume
from sglang_agent.warming.warming import Own, Warming
from sglang_controllers.api import parse_spec
from sglang_controllers.manifest import Manifest
from sglang_controllers.reports import WarmingReport
from sglang_controllers.resources.warming import warming_environment
from sglang_controllers.warming.sources import source_of
from sglang_operator.warming_answers import warming_answer
from tests.unit.controllers.api.specs import warming
from tests.unit.controllers.warming.prompts import CHAT, known_slots, named

CLAIM = {"persistentVolumeClaim": {"claimName": "big", "path": "chat/all.jsonl"}}


def environment(**fields: Any) -> dict[str, str]:
    """The variables of the agent, in a pod with the address 10.0.0.1."""
    variables = warming_environment(CHAT, parse_spec(warming(**fields)), "r1")
    return {each["name"]: each.get("value", "10.0.0.1") for each in variables}


def mounted(manifests: tuple[Manifest, ...], folder: Path) -> Path:
    """The slots as kubelet lays them into a pod."""
    for manifest in manifests:
        for name, text in manifest["data"].items():
            (folder / name).write_text(text)
        for name, text in manifest.get("binaryData", {}).items():
            (folder / name).write_bytes(base64.b64decode(text))
    return folder


def test_an_agent_is_told_all_that_it_needs() -> None:
    told = environment(
        promptsFrom=[named(), CLAIM], gate={"timeout": "1m30s"}, fromPeers={"maxTokens": 5000}
    )

    assert warming_settings(told) == WarmingSettings(
        folder=Path("/run/sglang-warming"),
        claims=(Claim("big", "chat/all.jsonl", Path("/warming/big")),),
        gate_s=90,
        peers=Peers("chat-agents.team.svc", 5000, "r1", "10.0.0.1"),
        revision="r1",
    )


def test_a_pod_that_asks_its_peers_waits_for_what_they_say() -> None:
    settings = warming_settings(environment(fromPeers={"maxTokens": 5000}))

    assert settings is not None
    assert settings.gate_s == 300


def test_an_agent_warms_also_before_any_prompt_is_named() -> None:
    settings = warming_settings(environment())

    assert settings is not None
    assert (settings.claims, settings.gate_s, settings.peers) == ((), None, None)


def test_an_agent_of_a_cluster_without_warming_is_told_nothing() -> None:
    spec = parse_spec({"model": {"source": "image:///m"}})

    assert warming_environment(CHAT, spec, "r1") == []


def test_an_agent_sees_the_prompts_and_the_hash_of_the_slots(tmp_path: Path) -> None:
    large = "x" * 600_000
    slots = known_slots(
        named("b"),
        named("a"),
        a=source_of({"data": {"one.txt": "Hello", "two.txt": large}}),
        b=source_of({"data": {"four.txt": large}, "binaryData": {"three": "AAEC"}}),
    )

    seen = volume(mounted(slots.manifests, tmp_path))

    assert seen.hash == slots.hash
    assert seen.hash.count("-") == 1
    assert sorted((source.name, source.key) for source in seen.sources) == [
        ("a", "one.txt"),
        ("a", "two.txt"),
        ("b", "four.txt"),
        ("b", "three"),
    ]


async def test_the_operator_understands_what_an_agent_says(tmp_path: Path) -> None:
    async with aiohttp.ClientSession() as session:
        own = Own(session, "http://127.0.0.1:30000", 30001, tmp_path / "token", tmp_path / "gate")
        registry = CollectorRegistry()
        registry.register(WarmingCollector(Warming(WarmingSettings(tmp_path), own)))

        said = warming_answer(generate_latest(registry))

    assert said == WarmingReport("waiting", "")
