"""PodMonitors: only where Prometheus Operator is, and for the pods that really are there."""

import re
import shutil
from pathlib import Path

from sglang_controllers.names import ENGINE_PORT_NAME
from sglang_controllers.resources.metadata import labels
from sglang_controllers.resources.subject import Subject
from tests.unit.chart.render import CHART, Manifest, of_kind, run_helm, template, the

API = ["monitoring.coreos.com/v1"]
ENABLED: Manifest = {"metrics": {"podMonitor": {"enabled": True}}}


def monitors(values: Manifest) -> tuple[Manifest, Manifest]:
    """That of the operator and that of the engines."""
    operator, engines = of_kind(template(values, apis=API), "PodMonitor")
    return operator, engines


def test_no_monitor_is_made_unless_it_is_wanted_and_the_api_is_there() -> None:
    assert of_kind(template({}, apis=API), "PodMonitor") == []
    assert of_kind(template(ENABLED, apis=[]), "PodMonitor") == []
    assert len(of_kind(template(ENABLED, apis=API), "PodMonitor")) == 2


def test_the_notes_say_that_a_wanted_monitor_was_not_made(tmp_path: Path) -> None:
    chart = shutil.copytree(CHART, tmp_path / "chart")
    about = chart / "Chart.yaml"
    # Without a cluster, `helm install` takes the Kubernetes version it was built with.
    about.write_text(re.sub(r"(?m)^kubeVersion:.*$", "", about.read_text()))

    def notes(values: Manifest) -> str:
        return run_helm("install", "fleet", str(chart), "--dry-run=client", values=values).stdout

    assert "no PodMonitor was made" in notes(ENABLED)
    assert "Apply a SGLangCluster" in notes({})
    assert "no PodMonitor was made" not in notes({})


def test_the_operator_s_monitor_finds_the_operator_s_pod() -> None:
    operator, _ = monitors(ENABLED)
    pod = the(template(), "Deployment")["spec"]["template"]
    [endpoint] = operator["spec"]["podMetricsEndpoints"]
    [container] = pod["spec"]["containers"]

    wanted = operator["spec"]["selector"]["matchLabels"]
    assert wanted.items() <= pod["metadata"]["labels"].items()
    assert endpoint["port"] in [port["name"] for port in container["ports"]]


def test_the_engines_monitor_finds_engines_of_every_namespace() -> None:
    _, engines = monitors(ENABLED)
    [endpoint] = engines["spec"]["podMetricsEndpoints"]
    given = labels(Subject("team", "chat", "uid"), "0123456789")

    assert engines["spec"]["selector"]["matchLabels"].items() <= given.items()
    assert set(engines["spec"]["podTargetLabels"]) <= given.keys()
    assert endpoint == {"port": ENGINE_PORT_NAME, "path": "/metrics"}
    assert engines["spec"]["namespaceSelector"] == {"any": True}


def test_the_engines_monitor_keeps_to_the_watched_namespaces() -> None:
    _, engines = monitors(ENABLED | {"watchNamespaces": ["team-a", "team-b"]})

    assert engines["spec"]["namespaceSelector"] == {"matchNames": ["team-a", "team-b"]}


def test_labels_and_interval_are_those_of_the_values() -> None:
    wanted = {"enabled": True, "labels": {"release": "prometheus"}, "interval": "15s"}

    for monitor in monitors({"metrics": {"podMonitor": wanted}}):
        [endpoint] = monitor["spec"]["podMetricsEndpoints"]
        assert monitor["metadata"]["labels"]["release"] == "prometheus"
        assert monitor["metadata"]["labels"]["app.kubernetes.io/instance"] == "fleet"
        assert endpoint["interval"] == "15s"
