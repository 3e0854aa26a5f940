"""What the APIs of Argo CD and Flux do not check in the examples: our values, names, order."""

import re
from typing import Any

import pytest

from sglang_controllers.names import API_VERSION, KIND
from sglang_controllers.status import CONDITIONS
from tests.unit.chart.render import template
from tests.unit.docs.blocks import Holds, yaml_blocks


def of_kind(kind: str) -> list[Any]:
    """Objects of a kind in pages and examples, as pytest parameters."""
    return [
        pytest.param(document, id=f"{block.place}-{document['metadata']['name']}")
        for block in yaml_blocks()
        if block.holds() is Holds.OBJECTS
        for document in block.documents
        if document["kind"] == kind
    ]


def operator_application() -> dict[str, Any]:
    [application] = [
        parameter.values[0]
        for parameter in of_kind("Application")
        if "helm" in parameter.values[0]["spec"]["source"]
    ]
    found: dict[str, Any] = application
    return found


@pytest.mark.parametrize("release", of_kind("HelmRelease"))
def test_the_values_of_a_helm_release_are_values_of_the_chart(release: dict[str, Any]) -> None:
    assert template(release["spec"]["values"])


def test_the_values_of_the_application_are_values_of_the_chart() -> None:
    assert template(operator_application()["spec"]["source"]["helm"]["valuesObject"])


@pytest.mark.parametrize("name", ["sglang-operator", "models"])
def test_crd_and_clusters_are_diffed_and_applied_by_the_server(name: str) -> None:
    [application] = [
        parameter.values[0]
        for parameter in of_kind("Application")
        if parameter.values[0]["metadata"]["name"] == name
    ]
    annotations = application["metadata"]["annotations"]

    assert annotations["argocd.argoproj.io/compare-options"] == "ServerSideDiff=true"
    assert "ServerSideApply=true" in application["spec"]["syncPolicy"]["syncOptions"]


def test_the_operator_comes_before_the_models() -> None:
    waves = {
        parameter.values[0]["metadata"]["name"]: int(
            parameter.values[0]["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"]
        )
        for parameter in of_kind("Application")
        if "annotations" in parameter.values[0]["metadata"]
    }

    assert waves["sglang-operator"] < waves["models"]


def test_flux_waits_for_conditions_that_the_operator_writes() -> None:
    [expressions] = [
        expression
        for parameter in of_kind("Kustomization")
        for expression in parameter.values[0]["spec"].get("healthCheckExprs", ())
    ]
    named = re.findall(r"c\.type == '(\w+)'", expressions["failed"] + expressions["current"])

    assert (expressions["apiVersion"], expressions["kind"]) == (API_VERSION, KIND)
    assert set(named) == {"Stalled", "Ready"}
    assert set(named) <= CONDITIONS


@pytest.mark.parametrize("scaler", of_kind("HorizontalPodAutoscaler"))
def test_a_cluster_with_an_autoscaler_leaves_its_replicas_out(scaler: dict[str, Any]) -> None:
    target = scaler["spec"]["scaleTargetRef"]
    [cluster] = [
        parameter.values[0]
        for parameter in of_kind(target["kind"])
        if parameter.values[0]["metadata"]["name"] == target["name"]
    ]

    assert target["apiVersion"] == cluster["apiVersion"]
    assert "replicas" not in cluster["spec"]
