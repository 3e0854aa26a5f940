"""Each folder is a situation: what was seen, and what is planned. `make golden` rewrites the plans."""

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from sglang_controllers.manifest import ObjectKey
from sglang_controllers.plan import Plan
from sglang_controllers.planner import plan
from sglang_controllers.reports import EngineReport, RouterReport, WarmingReport
from sglang_controllers.snapshot import Snapshot, WriteError
from sglang_controllers.warming.sources import source_of

HERE = Path(__file__).parent
SITUATIONS = sorted(path.parent for path in HERE.glob("*/snapshot.yaml"))


def the_snapshot(folder: Path) -> Snapshot:
    raw = yaml.safe_load((folder / "snapshot.yaml").read_text())
    children = {
        ObjectKey(child["kind"], child["metadata"]["name"]): child
        for child in raw.get("children", [])
    }
    errors = {
        ObjectKey(item["kind"], item["name"]): WriteError(**item["error"])
        for item in raw.get("errors", [])
    }
    now = datetime.fromisoformat(raw.get("now", "2026-11-29T12:00:00Z"))
    return Snapshot(
        cluster=raw["cluster"],
        now=now,
        children=children,
        pods=tuple(raw.get("pods", [])),
        events={uid: tuple(events) for uid, events in raw.get("events", {}).items()},
        errors=errors,
        engine_reports={
            uid: EngineReport(now, in_flight, True, warming(raw, uid))
            for uid, in_flight in raw.get("agents", {}).items()
        },
        router_reports={
            uid: RouterReport(now, frozenset(workers))
            for uid, workers in raw.get("routers", {}).items()
        },
        warming_sources={
            name: source_of(held) if held else None for name, held in raw.get("sources", {}).items()
        },
    )


def warming(raw: dict[str, Any], uid: str) -> WarmingReport | None:
    said = raw.get("warming", {}).get(uid)
    return WarmingReport(**said) if said else None


def as_yaml(answer: Plan) -> str:
    """A plan as people read it: what is empty is left out."""
    shown: dict[str, Any] = {key: value for key, value in asdict(answer).items() if value}
    plain = {k: list(v) if isinstance(v, tuple) else v for k, v in shown.items()}
    return yaml.safe_dump(plain, sort_keys=False, width=100)


@pytest.mark.parametrize("folder", SITUATIONS, ids=lambda path: path.name)
def test_the_plan_of_a_situation(folder: Path, request: pytest.FixtureRequest) -> None:
    answer = as_yaml(plan(the_snapshot(folder)))
    golden = folder / "plan.yaml"
    if request.config.getoption("--update-golden"):
        golden.write_text(answer)

    assert answer == golden.read_text()


def test_there_are_situations() -> None:
    assert len(SITUATIONS) >= 5
