"""Every YAML that a reader can copy is taken by a real API server."""

from typing import Any, assert_never

import pytest

from sglang_controllers.names import API_VERSION, KIND
from tests.integration.control_plane import ControlPlane
from tests.integration.kubectl import Kubectl
from tests.unit.chart.render import template
from tests.unit.docs.blocks import Block, Holds, yaml_blocks

NAMESPACE = "documents"

MINIMAL: dict[str, Any] = {
    "apiVersion": API_VERSION,
    "kind": KIND,
    "metadata": {"name": "chat"},
    "spec": {"model": {"source": "image:///models/m"}},
}


@pytest.fixture(scope="module")
def kubectl(control_plane: ControlPlane) -> Kubectl:
    kubectl = Kubectl(control_plane.kubeconfig)
    kubectl.install_apis()
    return kubectl


@pytest.mark.parametrize("block", yaml_blocks(), ids=lambda block: block.place)
def test_the_api_server_takes(kubectl: Kubectl, block: Block) -> None:
    assert kubectl.refusal(objects(block), NAMESPACE) == ""


def objects(block: Block) -> list[dict[str, Any]]:
    """The objects that a block holds, or that come of it where it is a fragment."""
    held = block.holds()
    match held:
        case Holds.OBJECTS:
            return block.documents
        case Holds.PART:
            [part] = block.documents
            return [merged(MINIMAL, part)]
        case Holds.VALUES:
            [values] = block.documents
            return template(values, apis=["monitoring.coreos.com/v1"])
        case Holds.ARGO_CD_VALUES:
            [values] = block.documents
            return [argocd_cm(values)]
        case _:
            assert_never(held)


def argocd_cm(values: dict[str, Any]) -> dict[str, Any]:
    """What Argo CD's chart makes of `configs.cm`; other values would not be checked here."""
    assert values.keys() == {"configs"}
    assert values["configs"].keys() == {"cm"}
    metadata = {"name": "argocd-cm", "namespace": "argocd"}
    data = values["configs"]["cm"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def merged(base: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """The whole object, with the part in place of what it names."""
    result = dict(base)
    for name, value in part.items():
        inner = result.get(name)
        if isinstance(value, dict) and isinstance(inner, dict):
            value = merged(inner, value)  # noqa: PLW2901
        result[name] = value
    return result


def test_a_misspelt_field_is_refused(kubectl: Kubectl) -> None:
    wrong = merged(MINIMAL, {"spec": {"replica": 2}})

    assert "replica" in kubectl.refusal([wrong], NAMESPACE)


def test_a_misspelt_field_of_another_tool_is_refused(kubectl: Kubectl) -> None:
    spec = {"project": "default", "destinations": {}}
    wrong = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "models"},
        "spec": spec,
    }

    assert "destinations" in kubectl.refusal([wrong], NAMESPACE)
