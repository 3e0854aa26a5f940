"""The operator may do what it does and no more: the API server's audit log against its rights.

Runs last, so that the log tells of everything that the other tests made it do. After some of them
alone, rights are left that nobody has used yet.
"""

import json
import subprocess
from collections.abc import Iterable
from typing import NamedTuple

import pytest

from e2e.tests.kube import Manifest, Namespace, a_cluster, get, kubectl, wait_for

NAMESPACE = "sglang-system"
ACCOUNT = "sglang-operator"
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"

CONTROL_PLANE = "sglang-control-plane"
LOGS = "cat /var/log/kubernetes/audit*.log"


class Right(NamedTuple):
    """`scope` is a namespace, empty: all of them."""

    scope: str
    group: str
    resource: str
    verb: str


KINDS = "deployments,services,serviceaccounts,poddisruptionbudgets,configmaps,roles,rolebindings"
OBJECTS = 11
"""Of a cluster with routers: two of each of the first four, one of each of the others."""

READ_A_CLUSTER = Right("", "sglang.dev", "sglangclusters", "get")
TRIES, AT_ONCE = 10, 10


@pytest.fixture(scope="module")
def audit(namespace: Namespace) -> list[Manifest]:
    """Every request of the operator in the life of this kind cluster."""
    lose_labels(namespace)
    switch_routers_off(namespace)
    go_as_soon_as_come(namespace)
    return read_audit()


def lose_labels(namespace: Namespace) -> None:
    """Somebody takes our label off every object. No engine is needed for that."""
    ours = "sglang.dev/cluster=edited"
    namespace.apply(a_cluster("edited", replicas=0, router={}))
    namespace.wait_ready("edited")
    namespace.kubectl("label", KINDS, f"-l={ours}", "sglang.dev/cluster-")
    wait_for(lambda: count(namespace, ours) == OBJECTS, 60)


def switch_routers_off(namespace: Namespace) -> None:
    off = '{"spec":{"router":{"enabled":false}}}'
    namespace.kubectl("patch", "sglc", "edited", "--type=merge", f"-p={off}")
    routers = "sglang.dev/cluster=edited,sglang.dev/role=router"
    wait_for(lambda: count(namespace, routers) == 0, 60)


def count(namespace: Namespace, labels: str) -> int:
    return len(get("-n", namespace.name, KINDS, f"-l={labels}")["items"])


def go_as_soon_as_come(namespace: Namespace) -> None:
    """A cluster itself is read only where its status cannot be written: it has just gone."""
    for _ in range(TRIES):
        names = [f"soon-gone-{number}" for number in range(AT_ONCE)]
        namespace.apply(*(a_cluster(name, replicas=0, router={}) for name in names))
        namespace.kubectl("delete", "sglangclusters", *names)
        if any(covers(READ_A_CLUSTER, each) for each in used(read_audit())):
            return


def read_audit() -> list[Manifest]:
    read = subprocess.run(
        ["docker", "exec", CONTROL_PLANE, "sh", "-c", LOGS],
        capture_output=True,
        text=True,
        check=False,
    )
    assert read.returncode == 0, f"{read.stderr}no audit log: `make down`, then `make e2e`"
    return [json.loads(line) for line in read.stdout.splitlines()]


@pytest.fixture(scope="module")
def rules() -> list[tuple[str, Manifest]]:
    """Every rule that is bound to the operator's service account, with its scope."""
    found: list[tuple[str, Manifest]] = []
    for binding in get("clusterrolebindings,rolebindings", "--all-namespaces")["items"]:
        if any(is_ours(subject) for subject in binding.get("subjects") or ()):
            scope = binding["metadata"].get("namespace", "")
            role = binding["roleRef"]
            where = ("-n", scope) if role["kind"] == "Role" else ()
            found += [(scope, rule) for rule in get(*where, role["kind"], role["name"])["rules"]]
    return found


def is_ours(subject: Manifest) -> bool:
    named = (subject["kind"], subject.get("namespace"), subject["name"])
    return named == ("ServiceAccount", NAMESPACE, ACCOUNT)


def granted(rules: Iterable[tuple[str, Manifest]]) -> set[Right]:
    return {
        Right(scope, group, resource, verb)
        for scope, rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def used(audit: Iterable[Manifest]) -> set[Right]:
    """What its requests needed. Discovery names no object, and is open to everybody."""
    rights = set()
    for event in audit:
        if about := event.get("objectRef"):
            subresource = f"/{about['subresource']}" if "subresource" in about else ""
            place = about.get("namespace", ""), about.get("apiGroup", "")
            rights.add(Right(*place, about["resource"] + subresource, event["verb"]))
    return rights


def covers(may: Right, does: Right) -> bool:
    return may.scope in ("", does.scope) and may[1:] == does[1:]


def test_what_is_granted_is_used_and_what_is_used_is_granted(
    audit: list[Manifest], rules: list[tuple[str, Manifest]]
) -> None:
    may, does = granted(rules), used(audit)

    unused = {right for right in may if not any(covers(right, each) for each in does)}
    beyond = {each for each in does if not any(covers(right, each) for right in may)}

    assert {"granted, not used": unused, "used, not granted": beyond} == {
        "granted, not used": set(),
        "used, not granted": set(),
    }


def test_nothing_was_refused_for_want_of_rights(audit: list[Manifest]) -> None:
    decision = "authorization.k8s.io/decision"
    refused = [e["requestURI"] for e in audit if e["annotations"].get(decision) != "allow"]

    assert audit
    assert refused == []


def test_no_secret_can_be_read() -> None:
    everything = kubectl("auth", "can-i", "--list", f"--as={USER}", "-n", NAMESPACE)

    assert "deployments.apps" in everything
    secrets = [line.split("[")[-1] for line in everything.splitlines() if "secrets" in line]
    assert secrets == ["create]"]
    assert "*.*" not in everything
