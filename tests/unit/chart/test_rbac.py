"""Rights: no more than the operator uses, and none outside the namespaces it watches."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from tests.integration.rights import LEASE, NEEDED
from tests.unit.chart.render import Manifest, of_kind, template, the

NAMESPACED = {"watchNamespaces": ["team-a", "team-b"]}
SUBJECT = {"kind": "ServiceAccount", "name": "fleet-sglang-operator", "namespace": "ops"}


def rules(values: Manifest | None = None) -> list[dict[str, Any]]:
    manifests = template(values)
    roles = of_kind(manifests, "ClusterRole") + of_kind(manifests, "Role")
    return [rule for role in roles for rule in role["rules"]]


def single(rules: Iterable[Mapping[str, Sequence[str]]]) -> set[tuple[str, str, str]]:
    """Group, resource and verb of every single right."""
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_the_rights_are_those_that_the_operator_is_tested_with() -> None:
    manifests = template()

    # The integration tests run the operator with exactly these.
    assert single(the(manifests, "ClusterRole")["rules"]) == single(NEEDED)
    assert single(the(manifests, "Role")["rules"]) == single([LEASE])


@pytest.mark.parametrize("values", [{}, NAMESPACED], ids=["all-namespaces", "namespaced"])
def test_no_secret_can_be_read_and_nothing_is_a_wildcard(values: Manifest) -> None:
    for rule in rules(values):
        named = rule["apiGroups"] + rule["resources"] + rule["verbs"]
        assert "*" not in named
        if any(resource.startswith("secrets") for resource in rule["resources"]):
            assert rule["verbs"] == ["create"]


@pytest.mark.parametrize("values", [{}, NAMESPACED], ids=["all-namespaces", "namespaced"])
def test_a_cluster_s_spec_cannot_be_written(values: Manifest) -> None:
    writes = {"create", "update", "patch", "delete", "deletecollection"}

    for rule in rules(values):
        if "sglangclusters" in rule["resources"]:
            assert not writes & set(rule["verbs"])


def test_watched_namespaces_get_roles_and_the_rest_of_the_cluster_gives_nothing() -> None:
    manifests = template(NAMESPACED)

    assert of_kind(manifests, "ClusterRole") == []
    assert of_kind(manifests, "ClusterRoleBinding") == []
    assert {role["metadata"]["namespace"] for role in of_kind(manifests, "Role")} == {
        "team-a",
        "team-b",
        "ops",
    }


def test_the_same_rights_hold_in_every_mode() -> None:
    everywhere = the(template(), "ClusterRole")["rules"]
    in_a_namespace = [
        role["rules"]
        for role in of_kind(template(NAMESPACED), "Role")
        if role["metadata"]["namespace"] != "ops"
    ]

    assert in_a_namespace == [everywhere, everywhere]


def test_leases_are_written_in_the_release_s_namespace_alone() -> None:
    for role in of_kind(template(), "ClusterRole") + of_kind(template(), "Role"):
        leases = [rule for rule in role["rules"] if "leases" in rule["resources"]]
        assert bool(leases) == (role["kind"] == "Role" and role["metadata"]["namespace"] == "ops")


@pytest.mark.parametrize("values", [{}, NAMESPACED], ids=["all-namespaces", "namespaced"])
def test_every_binding_names_the_operator_s_account_and_a_role_that_exists(
    values: Manifest,
) -> None:
    manifests = template(values)
    roles = {
        (role["kind"], role["metadata"].get("namespace"), role["metadata"]["name"])
        for role in of_kind(manifests, "ClusterRole") + of_kind(manifests, "Role")
    }
    bindings = of_kind(manifests, "ClusterRoleBinding") + of_kind(manifests, "RoleBinding")

    assert len(bindings) == len(roles)
    for binding in bindings:
        assert binding["subjects"] == [SUBJECT]
        named = (binding["roleRef"]["kind"], binding["metadata"].get("namespace"))
        assert (*named, binding["roleRef"]["name"]) in roles


def test_no_rights_are_made_when_they_are_bound_by_hand() -> None:
    assert rules({"rbac": {"create": False}}) == []
