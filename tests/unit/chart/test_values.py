"""Values: what is taken, what is refused, and what helm itself thinks of the chart."""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
import yaml

from tests.unit.chart.render import CHART, Manifest, run_helm, template

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
    "watched-by-prometheus": {
        "metrics": {
            "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}, "interval": "30s"}
        }
    },
    "renamed": {"nameOverride": "sglang", "fullnameOverride": "engines"},
    "any-spelling-of-an-amount": {
        "resources": {"requests": {"cpu": 0.5, "memory": "1e8"}, "limits": {"memory": "1.5Gi"}}
    },
    "quiet": {"metrics": {"service": {"enabled": False}}, "log": {"level": "warning"}},
    "as-a-subchart": {"global": {"imageRegistry": "registry.example"}},
    "placed": {
        "imagePullSecrets": [{"name": "registry"}],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "infra", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": {
                            "matchLabels": {"app.kubernetes.io/name": "sglang-operator"}
                        },
                    }
                ]
            }
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "sglang-operator"}},
            }
        ],
        "priorityClassName": "system-cluster-critical",
        "extraEnv": [
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "HTTPS_PROXY", "value": "http://proxy:3128"},
        ],
        "podAnnotations": {"team": "a"},
        "podLabels": {"team": "a"},
        "resources": {"requests": {"cpu": 0.5, "memory": "1e8"}, "limits": {"memory": "1.5Gi"}},
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
    "an-amount-with-a-blank": {"resources": {"limits": {"memory": "512 Mi"}}},
    "an-amount-with-a-wrong-unit": {"resources": {"limits": {"memory": "512MB"}}},
    "a-negative-amount": {"resources": {"requests": {"cpu": -1}}},
    "a-name-in-capitals": {"fullnameOverride": "SGLang"},
    "a-name-that-begins-with-a-digit": {"fullnameOverride": "1st"},
    "a-name-with-a-dash-at-its-end": {"nameOverride": "sglang-"},
    "an-account-that-is-no-name": {"serviceAccount": {"name": "my_account"}},
    "an-interval-without-a-unit": {"metrics": {"podMonitor": {"interval": "30"}}},
    "a-monitor-s-label-that-is-a-number": {"metrics": {"podMonitor": {"labels": {"a": 1}}}},
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


def documented() -> Manifest:
    values: Manifest = yaml.safe_load((CHART / "values.yaml").read_text())
    return values


def paths(values: Manifest, schema: Manifest, path: str = "") -> Iterator[tuple[str, bool]]:
    """Every value and whether the schema knows it, down to where any name is allowed."""
    known = schema.get("properties", {})
    for name, value in values.items():
        inner = known.get(name, {})
        yield f"{path}{name}", name in known
        if isinstance(value, dict) and "properties" in inner:
            yield from paths(value, inner, f"{path}{name}.")


def closed(schema: Manifest, values: Manifest) -> Iterator[str]:
    """Names that the schema has and values.yaml has not."""
    for name, inner in schema.get("properties", {}).items():
        if name not in values:
            yield name
        elif isinstance(values[name], dict):
            yield from closed(inner, values[name])


def test_the_schema_knows_every_value() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())

    assert [path for path, known in paths(documented(), schema) if not known] == []


def test_values_yaml_shows_every_value_of_the_schema() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())

    # Helm's own, and a list that few need.
    assert sorted(closed(schema, documented())) == ["claims", "global"]


def test_every_value_has_a_comment() -> None:
    lines = (CHART / "values.yaml").read_text().splitlines()
    schema = json.loads((CHART / "values.schema.json").read_text())
    leaves = {
        path.rpartition(".")[2]
        for path, _ in paths(documented(), schema)
        if not any(other.startswith(f"{path}.") for other, _ in paths(documented(), schema))
    }
    bare = [
        line.strip()
        for above, line in pairwise(lines)
        if line.strip().partition(":")[0] in leaves and not above.strip().startswith("#")
    ]

    # Under `resources`, which has its own: amounts are as in a pod.
    assert bare == ["requests:", "limits:"]


def test_an_older_kubernetes_is_refused() -> None:
    release = ("template", "fleet", str(CHART), "--kube-version", "1.32.9")
    result = run_helm(*release)

    assert result.returncode != 0
    assert "1.33" in result.stderr


@pytest.mark.parametrize("version", ["1.33.0", "1.35.2-gke.100", "v1.37.2+k3s1"])
def test_the_spellings_of_cloud_providers_are_taken(version: str) -> None:
    assert template(kube_version=version)
