"""Whatever values the chart is given, a real API server takes every object that comes of them."""

from typing import Any

import pytest
import yaml

from tests.integration.control_plane import ControlPlane
from tests.integration.kubectl import Kubectl, with_namespace
from tests.unit.chart.render import Manifest, of_kind, template
from tests.unit.chart.test_values import ACCEPTED

PROMETHEUS = ["monitoring.coreos.com/v1"]
MONITORED = {"metrics": {"podMonitor": {"enabled": True, "labels": {"a": "b"}, "interval": "30s"}}}

MATRIX: dict[str, dict[str, Any]] = {
    **ACCEPTED,
    "all-namespaces": {"watchNamespaces": []},
    "own-crds": {"crds": {"enabled": False, "keep": False}},
    "own-rbac": {"rbac": {"create": False}},
    "a-given-account": {"serviceAccount": {"create": False, "name": "given"}},
    "an-annotated-account": {"serviceAccount": {"annotations": {"iam.example/role": "operator"}}},
    "two-replicas-with-a-budget": {"replicas": 2},
    "two-replicas-without": {"replicas": 2, "podDisruptionBudget": {"enabled": False}},
    "stopped": {"replicas": 0},
    "monitored": MONITORED,
    "monitored-namespaces": MONITORED | {"watchNamespaces": ["team-a", "team-b"]},
    "a-long-name": {"fullnameOverride": "f" * 63, "replicas": 2, **MONITORED},
    "labels-that-the-chart-needs": {
        "podLabels": {"app.kubernetes.io/name": "other"},
        "podAnnotations": {"kubectl.kubernetes.io/default-container": "proxy"},
        "metrics": {"podMonitor": {"enabled": True, "labels": {"app.kubernetes.io/name": "other"}}},
    },
}


@pytest.fixture(scope="module")
def kubectl(control_plane: ControlPlane) -> Kubectl:
    kubectl = Kubectl(control_plane.kubeconfig)
    kubectl.install_apis()
    return kubectl


@pytest.mark.parametrize("values", MATRIX.values(), ids=MATRIX)
def test_the_api_server_takes_the_chart_with(kubectl: Kubectl, values: Manifest) -> None:
    manifests = template(values, apis=PROMETHEUS)

    assert of_kind(manifests, "Deployment")
    assert kubectl.refusal(manifests, "ops") == ""


def test_the_api_server_takes_the_chart_where_prometheus_operator_is_missing(
    kubectl: Kubectl,
) -> None:
    manifests = template(MONITORED, apis=[])

    assert of_kind(manifests, "Deployment")
    assert kubectl.refusal(manifests, "ops") == ""


def test_an_installed_chart_does_not_differ_from_itself(kubectl: Kubectl) -> None:
    # The CRD stays out: other tests use it.
    values = MATRIX["placed"] | {"replicas": 2, "crds": {"enabled": False}, **MONITORED}
    text = yaml.safe_dump_all(with_namespace(template(values, apis=PROMETHEUS), "ops"))
    kubectl.make_namespaces("ops")
    server_side = ("--server-side", "--field-manager=argocd-controller", "-f", "-")
    try:
        kubectl.must("apply", *server_side, given=text)

        assert kubectl.must("diff", *server_side, given=text) == ""
    finally:
        kubectl.must("delete", "--ignore-not-found", "-f", "-", given=text)
