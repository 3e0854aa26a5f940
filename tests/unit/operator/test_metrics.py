"""What Prometheus scrapes, and what is logged."""

import json
import logging
from datetime import datetime

import pytest

from sglang_controllers.manifest import Manifest
from sglang_operator import logs
from sglang_operator.cache import Cache
from sglang_operator.execute import Verb, Write
from sglang_operator.metrics import Metrics, phase
from tests.builders import a_cluster


def with_conditions(**conditions: str) -> Manifest:
    cluster = a_cluster()
    cluster["metadata"]["resourceVersion"] = "1"
    held = [{"type": type_, "status": status} for type_, status in conditions.items()]
    return {**cluster, "status": {"conditions": held}}


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        (a_cluster(), "Unknown"),
        (with_conditions(Ready="True"), "Ready"),
        (with_conditions(Ready="False", Reconciling="True"), "Reconciling"),
        (with_conditions(Ready="False", Stalled="True", Reconciling="True"), "Stalled"),
        (with_conditions(Ready="False"), "Unknown"),
    ],
)
def test_a_phase_is_what_to_act_on_first(cluster: Manifest, expected: str) -> None:
    assert phase(cluster) == expected


def test_live_figures_are_read_when_scraped() -> None:
    cache = Cache()
    ages = {("Pod", ""): 1.5}
    metrics = Metrics(cache, lambda: 7, lambda: ages)
    cache.put(with_conditions(Ready="True"))
    metrics.wrote(Write(Verb.APPLY, "Service", "team", "chat"), "refused")

    text = metrics.exposition().decode()

    assert "sglang_operator_queue_depth 7.0" in text
    assert 'sglang_operator_watch_age_seconds{namespace="",resource="Pod"} 1.5' in text
    assert 'sglang_operator_clusters{phase="Ready"} 1.0' in text
    assert 'sglang_operator_clusters{phase="Stalled"} 0.0' in text
    written = 'sglang_operator_writes_total{kind="Service",outcome="refused",verb="apply"} 1.0'
    assert written in text
    assert 'sglang_operator_build_info{kopf="' in text


@pytest.fixture
def _restored() -> object:
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    levels = {name: logging.getLogger(name).level for name in ("kopf", "sglang_operator")}
    yield
    root.handlers[:], root.level = before
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.mark.usefixtures("_restored")
def test_a_log_line_is_one_json_object_with_the_cluster(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.set_up("json", "info")

    logging.getLogger("sglang_operator.x").info(
        "two\nlines", extra={"namespace": "team", "cluster": "chat"}
    )

    line = json.loads(capsys.readouterr().err)
    assert line["message"] == "two\nlines"
    assert (line["namespace"], line["cluster"], line["level"]) == ("team", "chat", "INFO")
    assert datetime.fromisoformat(line["time"]).tzinfo is not None


@pytest.mark.usefixtures("_restored")
def test_a_log_line_can_be_text_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("text", "info")

    logging.getLogger("sglang_operator.x").info("it serves", extra={"cluster": "chat"})

    assert capsys.readouterr().err.endswith("INFO    it serves cluster=chat\n")


@pytest.mark.usefixtures("_restored")
def test_the_level_is_ours_and_others_only_warn(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("text", "warning")

    logging.getLogger("sglang_operator.x").info("not told")
    logging.getLogger("kopf.objects").warning("not told")
    logging.getLogger("aiohttp.access").info("not told")
    logging.getLogger("kopf.x").error("told")

    assert "not told" not in (told := capsys.readouterr().err)
    assert "told" in told
