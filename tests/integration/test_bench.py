"""`sglang-bench warming` on SGLang's own tree, and on a real engine with an agent beside it."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.agent_engine import PYTHON, ROOT, SETTINGS, TOKEN, Agent, Engine

EXAMPLE = ROOT / "examples/warmup_prompts.json"
PACKAGES = os.pathsep.join(str(ROOT / "images" / name) for name in ("bench", "agent", "warming"))


def test_a_trace_is_replayed_on_the_tree_of_sglang(tmp_path: Path) -> None:
    # All share block 0, each pair one more; the last is known to nobody.
    blocks = [[0, 1 + at // 2, 100 + at] for at in range(8)]
    trace, out = tmp_path / "trace.jsonl", tmp_path / "out.json"
    trace.write_text(
        "".join(
            json.dumps({"timestamp": 1000 * at, "hash_ids": ids}) + "\n"
            for at, ids in enumerate(blocks)
        )
    )

    subprocess.run(
        [
            *(PYTHON, "-m", "sglang_bench", "warming"),
            *("--trace", trace, "--at", "0.75", "--requests", "2"),
            *("--blocks", "20", "--json", out, "--plot", tmp_path / "out.svg"),
        ],
        env={**os.environ, **SETTINGS, "PYTHONPATH": PACKAGES},
        check=True,
    )

    told = json.loads(out.read_text())
    assert told["settings"]["blocks"] == 20
    cached = {row["state"]: [sample["cached"] for sample in row["samples"]] for row in told["rows"]}
    assert cached == {
        "cold": [0, 2],
        "warmed": [1, 2],
        "peer-warmed": [1, 2],
        "the peer": [1, 2],
    }
    assert (tmp_path / "out.svg").read_text().startswith("<svg ")


@pytest.fixture(name="engine")
async def _engine(running_engine: Engine) -> Engine:
    await running_engine.until_ready()
    return running_engine


async def test_a_server_is_measured_cold_warmed_and_as_a_peer(
    engine: Engine, tmp_path: Path
) -> None:
    warming = {"SGLANG_AGENT_WARMING_DIR": str(tmp_path)}
    agent = Agent(tmp_path, engine.url, 0.5, 10, warming)
    await agent.start()
    await agent.until_ready()
    out = tmp_path / "out.json"
    command: list[str | Path] = [sys.executable, "-m", "sglang_bench", "warming"]
    # The engine is its own peer: what was hot before its cache was emptied is what it is given.
    command += ["--url", engine.url, "--peer-url", engine.url]
    command += ["--peer-agent-url", f"http://127.0.0.1:{agent.port}"]
    command += ["--token-file", agent.token_file, "--peer-max-tokens", "4000"]
    command += ["--prompts", EXAMPLE, "--requests", "20", "--json", out]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    _, said = await process.communicate()
    await agent.end()

    assert process.returncode == 0, said.decode()
    told: dict[str, Any] = json.loads(out.read_text())
    assert TOKEN not in out.read_text()
    rows = {row["state"]: row for row in told["rows"]}
    assert list(rows) == ["cold", "warmed", "peer-warmed"]
    assert rows["cold"]["samples"][0]["cached"] == 0
    for state in ("warmed", "peer-warmed"):
        assert rows[state]["hit_ratio_first_10"] > rows["cold"]["hit_ratio_first_10"] + 0.1
        first = rows[state]["samples"][0]
        assert first["cached"] > 0.5 * first["prompt"]
    assert all(row["ttft_p99_s"] >= row["ttft_p50_s"] > 0 for row in rows.values())
