"""Argo CD's health check, on objects that a real API server and the operator have written."""

from pathlib import Path

import pytest
import yaml

from tests.unit.chart.argocd import PHASES, RECORDED, health
from tests.unit.chart.render import Manifest


def recorded(phase: str) -> Manifest:
    manifest: Manifest = yaml.safe_load((RECORDED / f"{phase}.yaml").read_text())
    return manifest


@pytest.mark.parametrize("phase", PHASES)
def test_health_of(phase: str) -> None:
    status, message = health(recorded(phase))

    expected, begins = PHASES[phase]
    assert status == expected
    assert message.startswith(begins)


def test_every_recorded_object_is_of_a_known_phase() -> None:
    assert {file.stem for file in RECORDED.glob("*.yaml")} == set(PHASES)


def test_a_cluster_that_stalls_while_it_serves_is_degraded_and_says_both() -> None:
    _, message = health(recorded("stalled-while-serving"))

    assert "2 replicas of older revisions still serve" in message
    assert "still available: 2 of 2 replicas ready" in message


def test_a_condition_of_somebody_else_changes_nothing() -> None:
    manifest = recorded("serving")
    before = health(manifest)
    foreign = {"type": "Audited", "status": "False", "reason": "Never", "message": "not yet"}
    manifest["status"]["conditions"].insert(0, foreign)

    assert health(manifest) == before


@pytest.mark.parametrize("missing", ["conditions", "observedGeneration"])
def test_a_status_that_is_not_whole_yet_is_in_progress(missing: str) -> None:
    manifest = recorded("serving")
    del manifest["status"][missing]

    assert health(manifest)[0] == "Progressing"


@pytest.mark.parametrize("call", ["string.upper('a')", "('a'):upper()"])
def test_the_check_runs_without_the_libraries_that_argo_cd_leaves_out(
    call: str, tmp_path: Path
) -> None:
    file = tmp_path / "health.lua"
    file.write_text(f"return {{ status = {call} }}")

    with pytest.raises(Exception, match="attempt to index"):
        health({}, file)
