"""What the chart makes of its values."""

from typing import Any

import yaml

from tests.unit.chart.render import CHART, ROOT, Manifest, of_kind, run_helm, template, the

KEPT = {"helm.sh/resource-policy": "keep"}


def crds(values: Manifest | None = None) -> list[Manifest]:
    return of_kind(template(values), "CustomResourceDefinition")


def generated_crds() -> list[Manifest]:
    files = sorted((ROOT / "crds").glob("*.yaml"))
    return [crd for file in files for crd in yaml.safe_load_all(file.read_text())]


def operator_pod(values: Manifest | None = None) -> dict[str, Any]:
    pod: dict[str, Any] = the(template(values), "Deployment")["spec"]["template"]
    return pod


def test_the_crds_are_the_generated_ones() -> None:
    assert generated_crds()
    assert crds({"crds": {"keep": False}}) == generated_crds()


def test_kept_crds_differ_in_the_annotation_alone() -> None:
    for kept, generated in zip(crds(), generated_crds(), strict=True):
        annotations = generated["metadata"].get("annotations", {})
        metadata = generated["metadata"] | {"annotations": annotations | KEPT}
        assert kept == generated | {"metadata": metadata}


def test_crds_can_be_left_out() -> None:
    assert crds({"crds": {"enabled": False}}) == []


def test_the_pod_meets_the_restricted_standard() -> None:
    spec = operator_pod()["spec"]
    [container] = spec["containers"]

    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] > 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert all("emptyDir" in volume for volume in spec["volumes"])


def test_probes_ask_the_health_port() -> None:
    [container] = operator_pod()["spec"]["containers"]

    [port] = container["ports"]
    assert port["containerPort"] == 8080
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": port["name"]}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": port["name"]}


def test_the_image_is_the_chart_s_version_unless_a_tag_or_a_digest_is_given() -> None:
    def image(**values: str) -> str:
        [container] = operator_pod({"image": values})["spec"]["containers"]
        return str(container["image"])

    digest = f"sha256:{'0' * 64}"
    assert image() == "docker.io/sglang-operator/operator:0.1.0"
    assert image(tag="dev") == "docker.io/sglang-operator/operator:dev"
    assert image(tag="dev", digest=digest) == f"docker.io/sglang-operator/operator@{digest}"


def test_selectors_match_the_pod() -> None:
    manifests = template({"replicas": 2})
    labels = the(manifests, "Deployment")["spec"]["template"]["metadata"]["labels"]

    for selector in (
        the(manifests, "Deployment")["spec"]["selector"]["matchLabels"],
        the(manifests, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        the(manifests, "Service")["spec"]["selector"],
    ):
        assert selector.items() <= labels.items()


def test_one_replica_has_no_disruption_budget_to_block_node_drains() -> None:
    assert of_kind(template({"replicas": 1}), "PodDisruptionBudget") == []
    assert the(template({"replicas": 2}), "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1


def test_a_pod_label_cannot_replace_one_that_selectors_need() -> None:
    pod = operator_pod({"podLabels": {"app.kubernetes.io/instance": "other", "team": "a"}})

    assert pod["metadata"]["labels"]["app.kubernetes.io/instance"] == "fleet"
    assert pod["metadata"]["labels"]["team"] == "a"


def test_no_key_is_written_twice_whatever_is_added() -> None:
    theirs = {"app.kubernetes.io/name": "other", "helm.sh/chart": "other"}
    values = {
        "podLabels": theirs,
        "podAnnotations": {"kubectl.kubernetes.io/default-container": "proxy"},
        "metrics": {"podMonitor": {"enabled": True, "labels": theirs}},
    }
    release = ("template", "fleet", str(CHART), "--kube-version", "1.33.0")

    text = run_helm(*release, "--api-versions", "monitoring.coreos.com/v1", values=values).stdout

    assert len(list(yaml.load_all(text, OnceEach))) > 5


class OnceEach(yaml.SafeLoader):
    """Refuses a mapping with two keys alike, as other readers than PyYAML do."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value]
        assert len(names) == len(set(names)), sorted(names)
        return super().construct_mapping(node, deep=deep)


def test_long_names_stay_within_63_characters() -> None:
    for manifest in template({"fullnameOverride": "f" * 63, "replicas": 2}):
        if manifest["kind"] != "CustomResourceDefinition":
            assert len(manifest["metadata"]["name"]) <= 63


def environment(values: Manifest | None = None) -> dict[str, str]:
    [container] = operator_pod(values)["spec"]["containers"]
    return {variable["name"]: variable["value"] for variable in container["env"]}


def test_the_operator_is_told_what_to_watch_and_where_its_lease_is() -> None:
    everywhere = environment()
    namespaced = environment({"watchNamespaces": ["team-a", "team-b"]})

    assert everywhere["SGLANG_OPERATOR_NAMESPACES"] == ""
    assert namespaced["SGLANG_OPERATOR_NAMESPACES"] == "team-a,team-b"
    assert everywhere["SGLANG_OPERATOR_LEASE_NAMESPACE"] == "ops"
    # Two releases in one namespace must not share a Lease.
    assert everywhere["SGLANG_OPERATOR_LEASE_NAME"] == "fleet-sglang-operator"


def test_own_variables_come_after_the_chart_s_and_so_win() -> None:
    values = {"extraEnv": [{"name": "SGLANG_OPERATOR_WORKERS", "value": "2"}]}

    assert list(environment(values))[-1] == "SGLANG_OPERATOR_WORKERS"
