"""Values: what is taken, what is refused, and what helm itself thinks of the chart."""

import json
from typing import Any

import pytest
import yaml

from tests.unit.chart.render import CHART, run_helm, template

ACCEPTED: dict[str, dict[str, Any]] = {
    "nothing-set": {},
    "three-replicas": {"replicas": 3},
    "namespaced": {"watchNamespaces": ["team-a", "team-b"]},
    "no-crds": {"crds": {"enabled": False}},
    "dropped-crds": {"crds": {"keep": False}},
    "own-rights": {"rbac": {"create": False}, "serviceAccount": {"create": False, "name": "mine"}},
    "pinned-image": {
        "image": {"repository": "registry.example/op", "digest": f"sha256:{'a' * 64}"}
    },
    "quiet": {"metrics": {"service": {"enabled": False}}, "log": {"level": "warning"}},
    "as-a-subchart": {"global": {"imageRegistry": "registry.example"}},
    "placed": {
        "imagePullSecrets": [{"name": "registry"}],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "infra", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "topologySpreadConstraints": [{"maxSkew": 1}],
        "priorityClassName": "system-cluster-critical",
        "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
        "podAnnotations": {"team": "a"},
        "podLabels": {"team": "a"},
        "resources": {"requests": {"cpu": 1}, "limits": {"memory": "1Gi"}},
    },
}

REFUSED: dict[str, dict[str, Any]] = {
    "a-misspelt-name": {"replica": 2},
    "a-misspelt-name-inside": {"image": {"repositroy": "x"}},
    "no-repository": {"image": {"repository": ""}},
    "a-tag-that-is-a-number": {"image": {"tag": 1.5}},
    "a-short-digest": {"image": {"digest": "sha256:abc"}},
    "a-negative-count": {"replicas": -1},
    "a-count-in-quotes": {"replicas": "2"},
    "an-unknown-level": {"log": {"level": "loud"}},
    "a-namespace-in-capitals": {"watchNamespaces": ["Team-A"]},
    "a-namespace-twice": {"watchNamespaces": ["a", "a"]},
    "one-namespace-without-a-list": {"watchNamespaces": "team-a"},
    "no-such-port": {"metrics": {"service": {"port": 70000}}},
    "an-unknown-pull-policy": {"image": {"pullPolicy": "Sometimes"}},
    "a-variable-without-a-name": {"extraEnv": [{"value": "x"}]},
    "limits-that-are-no-map": {"resources": {"limits": "1Gi"}},
}


@pytest.mark.parametrize("values", ACCEPTED.values(), ids=ACCEPTED)
def test_lint_is_content_with(values: dict[str, Any]) -> None:
    result = run_helm("lint", str(CHART), "--strict", "--quiet", values=values)

    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("values", ACCEPTED.values(), ids=ACCEPTED)
def test_every_object_has_a_name_and_the_release_s_labels(values: dict[str, Any]) -> None:
    for manifest in template(values):
        assert manifest["metadata"]["name"]
        if manifest["kind"] != "CustomResourceDefinition":
            assert manifest["metadata"]["labels"]["app.kubernetes.io/instance"] == "fleet"


@pytest.mark.parametrize("values", REFUSED.values(), ids=REFUSED)
def test_the_schema_refuses(values: dict[str, Any]) -> None:
    result = run_helm("template", "fleet", str(CHART), values=values)

    assert result.returncode != 0
    assert "schema" in result.stderr


def test_the_schema_knows_exactly_the_documented_values() -> None:
    documented = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())

    assert set(schema["properties"]) == set(documented) | {"global"}


def test_an_older_kubernetes_is_refused() -> None:
    release = ("template", "fleet", str(CHART), "--kube-version", "1.32.9")
    result = run_helm(*release)

    assert result.returncode != 0
    assert "1.33" in result.stderr


@pytest.mark.parametrize("version", ["1.33.0", "1.35.2-gke.100", "v1.37.2+k3s1"])
def test_the_spellings_of_cloud_providers_are_taken(version: str) -> None:
    assert template(kube_version=version)
