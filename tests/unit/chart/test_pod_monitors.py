"""PodMonitors: only where Prometheus Operator is, and for the pods that really are there."""

import re
import shutil
from pathlib import Path

from sglang_controllers.names import AGENT_PORT_NAME, ENGINE_PORT_NAME, ROUTER_METRICS_PORT_NAME
from sglang_controllers.resources.metadata import labels
from sglang_controllers.resources.subject import Subject
from tests.unit.chart.render import CHART, Manifest, of_kind, run_helm, template, the

API = ["monitoring.coreos.com/v1"]
ENABLED: Manifest = {"metrics": {"podMonitor": {"enabled": True}}}


def monitors(values: Manifest) -> tuple[Manifest, Manifest, Manifest]:
    """Those of the operator, of the engines and of the routers."""
    operator, engines, routers = of_kind(template(values, apis=API), "PodMonitor")
    return operator, engines, routers


def test_no_monitor_is_made_unless_it_is_wanted_and_the_api_is_there() -> None:
    assert of_kind(template({}, apis=API), "PodMonitor") == []
    assert of_kind(template(ENABLED, apis=[]), "PodMonitor") == []
    assert len(of_kind(template(ENABLED, apis=API), "PodMonitor")) == 3


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
    operator, _, _ = monitors(ENABLED)
    pod = the(template(), "Deployment")["spec"]["template"]
    [endpoint] = operator["spec"]["podMetricsEndpoints"]
    [container] = pod["spec"]["containers"]

    wanted = operator["spec"]["selector"]["matchLabels"]
    assert wanted.items() <= pod["metadata"]["labels"].items()
    assert endpoint["port"] in [port["name"] for port in container["ports"]]


def selects(monitor: Manifest, given: dict[str, str]) -> bool:
    """As Kubernetes reads a selector."""
    selector = monitor["spec"]["selector"]
    (rule,) = selector["matchExpressions"]
    among = given[rule["key"]] in rule["values"]
    right = among if rule["operator"] == "In" else not among
    return bool(right and selector["matchLabels"].items() <= given.items())


ENGINE = labels(Subject("team", "chat", "uid"), "0123456789")
ROUTER = labels(Subject("team", "chat", "uid").router, "0123456789")


def test_engines_and_agents_of_every_namespace_are_found_and_routers_by_their_own() -> None:
    _, engines, routers = monitors(ENABLED)

    assert [selects(m, ENGINE) for m in (engines, routers)] == [True, False]
    assert [selects(m, ROUTER) for m in (engines, routers)] == [False, True]
    ports = [[e["port"] for e in m["spec"]["podMetricsEndpoints"]] for m in (engines, routers)]
    assert ports == [[ENGINE_PORT_NAME, AGENT_PORT_NAME], [ROUTER_METRICS_PORT_NAME]]
    for monitor in (engines, routers):
        assert set(monitor["spec"]["podTargetLabels"]) <= ENGINE.keys()
        assert monitor["spec"]["namespaceSelector"] == {"any": True}


def test_the_monitors_keep_to_the_watched_namespaces() -> None:
    _, *others = monitors(ENABLED | {"watchNamespaces": ["team-a", "team-b"]})

    for monitor in others:
        assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["team-a", "team-b"]}


def test_labels_and_interval_are_those_of_the_values() -> None:
    wanted = {"enabled": True, "labels": {"release": "prometheus"}, "interval": "15s"}

    for monitor in monitors({"metrics": {"podMonitor": wanted}}):
        endpoint, *_ = monitor["spec"]["podMetricsEndpoints"]
        assert monitor["metadata"]["labels"]["release"] == "prometheus"
        assert monitor["metadata"]["labels"]["app.kubernetes.io/instance"] == "fleet"
        assert endpoint["interval"] == "15s"
