"""A service account with given rights, and a kubeconfig that is it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from sglang_operator.kube import ApiError, Kube
from sglang_operator.resources import Resource
from tests.integration.world import until

RBAC = "rbac.authorization.k8s.io"

Rule = Mapping[str, Sequence[str]]


def rule(group: str, resources: str, verbs: str) -> Rule:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}


NEEDED = (
    rule("sglang.dev", "sglangclusters", "get list watch"),
    rule("sglang.dev", "sglangclusters/status", "patch"),
    rule("apps", "deployments", "get list watch create patch delete"),
    rule("", "configmaps", "get list watch create patch delete"),
    rule("", "services", "get list watch create patch"),
    rule("", "serviceaccounts", "get list watch create patch delete"),
    rule("policy", "poddisruptionbudgets", "get list watch create patch delete"),
    rule(RBAC, "roles rolebindings", "get list watch create patch delete"),
    rule("", "secrets", "create"),
    rule("", "pods", "list watch patch"),
    rule("", "events", "list"),
    rule("events.k8s.io", "events", "create"),
)
"""All that the operator uses in a namespace that it serves."""

LEASE = rule("coordination.k8s.io", "leases", "get create update")
"""And this where its Lease is."""


def without(verb: str, resource: str) -> tuple[Rule, ...]:
    """NEEDED less one right."""
    return tuple(
        {**r, "verbs": [v for v in r["verbs"] if v != verb]} if resource in r["resources"] else r
        for r in NEEDED
    )


async def account(kube: Kube, namespace: str, rules: Sequence[Rule], folder: Path) -> Path:
    """The kubeconfig of a new service account that may do just this in its namespace."""
    name = "operator"
    metadata = {"name": name, "namespace": namespace}
    role = {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": list(rules)}
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    accounts = Resource("ServiceAccount", "", "v1", "serviceaccounts")
    who = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    await kube.create(accounts, who)
    await kube.create(Resource("Role", RBAC, "v1", "roles"), role)
    await kube.create(Resource("RoleBinding", RBAC, "v1", "rolebindings"), binding)
    path = accounts.path(namespace, name, "token")
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await kube.request("POST", path, body=request)
    file = folder / f"{namespace}.kubeconfig"
    file.write_text(yaml.safe_dump(_kubeconfig(kube, answer["status"]["token"])))
    await _in_force(kube, namespace, name)
    return file


async def _in_force(kube: Kube, namespace: str, name: str) -> None:
    """Wait until the authorizer has seen the binding."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{namespace}:{name}",
            "resourceAttributes": {"namespace": namespace, "verb": "list", "resource": "pods"},
        },
    }

    async def allowed() -> bool:
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        try:
            answer = await kube.request("POST", path, body=review)
        except ApiError:
            return False
        return bool(answer["status"]["allowed"])

    await until(allowed, "rights are in force")


def _kubeconfig(kube: Kube, token: str) -> dict[str, Any]:
    server = {
        "server": kube.configuration.host,
        "certificate-authority": kube.configuration.ssl_ca_cert,
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": server}],
        "users": [{"name": "c", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    }
