"""What Kubernetes refuses: quotas, webhooks, policies, Pod Security, nodes that do not fit."""

import json
from collections.abc import Iterator

import pytest

from e2e.tests.kube import (
    NO_ACCELERATOR,
    Manifest,
    Namespace,
    a_cluster,
    kubectl,
    on_gpu_nodes,
    wait_for,
)

WEBHOOKS: Manifest = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "sglang-operator-e2e"},
    "webhooks": [
        {
            "name": f"{resource}.e2e.example.com",
            "rules": [
                {
                    "apiGroups": [group],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": [resource],
                }
            ],
            "objectSelector": {"matchLabels": {"sglang.dev/cluster": cluster}},
            "clientConfig": {"service": {"namespace": "default", "name": "no-such-service"}},
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        for group, resource, cluster in (
            ("apps", "deployments", "webhook"),
            ("", "pods", "pod-webhook"),
        )
    ],
}
"""Webhooks whose program is gone, as after a careless uninstall."""

DENIED = "pods need a cost centre"

POLICY: list[Manifest] = [
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "sglang-operator-e2e"},
        "spec": {
            "matchConstraints": {
                "objectSelector": {"matchLabels": {"sglang.dev/cluster": "policy"}},
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                    }
                ],
            },
            "validations": [{"expression": "false", "message": DENIED}],
        },
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "sglang-operator-e2e"},
        "spec": {"policyName": "sglang-operator-e2e", "validationActions": ["Deny"]},
    },
]


def on(pod_spec: Manifest, cluster: Manifest) -> Manifest:
    cluster["spec"]["podTemplate"] = {"spec": pod_spec}
    return cluster


def denied_pod() -> str:
    """What the API server says to a pod that the policy is about: it takes its time to notice one.

    Asked where nothing else refuses the pod.
    """
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "try", "labels": {"sglang.dev/cluster": "policy"}},
        "spec": {"containers": [{"name": "try", "image": "none"}]},
    }
    create = ("-n", "default", "create", "--dry-run=server", "-f", "-")
    return kubectl(*create, stdin=json.dumps(pod), check=False)


@pytest.fixture(scope="module")
def refusals(namespace: Namespace) -> Iterator[Namespace]:
    everywhere = {"apiVersion": "v1", "kind": "List", "items": [WEBHOOKS, *POLICY]}
    kubectl("apply", "-f", "-", stdin=json.dumps(everywhere))
    try:
        wait_for(lambda: DENIED in denied_pod(), 60, denied_pod)
        namespace.apply(
            on_gpu_nodes(a_cluster("webhook", NO_ACCELERATOR)),
            a_cluster("pod-webhook", NO_ACCELERATOR),
            a_cluster("policy", NO_ACCELERATOR),
            on({"nodeSelector": {"sglang.dev/pool": "gpu"}}, a_cluster("tainted", NO_ACCELERATOR)),
            on({"nodeSelector": {"no": "such-node"}}, a_cluster("no-node", NO_ACCELERATOR)),
            on(
                {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
                a_cluster("host", NO_ACCELERATOR),
            ),
            a_cluster(
                "no-secret",
                NO_ACCELERATOR
                | {
                    "env": [
                        {
                            "name": "KEY",
                            "valueFrom": {"secretKeyRef": {"name": "missing", "key": "key"}},
                        }
                    ]
                },
            ),
        )
        yield namespace
    finally:
        kubectl("delete", "--ignore-not-found", "-f", "-", stdin=json.dumps(everywhere))


def test_a_webhook_that_does_not_answer_for_our_objects(refusals: Namespace) -> None:
    message = refusals.wait_reason("webhook", "Rejected")

    assert "deployments.e2e.example.com" in message
    assert "Repair that admission webhook" in message


def test_a_webhook_that_does_not_answer_for_pods(refusals: Namespace) -> None:
    message = refusals.wait_reason("pod-webhook", "Rejected")

    assert "pods.e2e.example.com" in message
    assert "Repair that admission webhook" in message


def test_a_policy_that_denies_pods(refusals: Namespace) -> None:
    assert DENIED in refusals.wait_reason("policy", "Rejected")


def test_a_volume_that_pod_security_forbids(refusals: Namespace) -> None:
    assert "hostPath" in refusals.wait_reason("host", "Rejected")


def test_a_taint_that_nobody_tolerates(refusals: Namespace) -> None:
    message = refusals.wait_reason("tainted", "Unschedulable")

    assert "Tolerate the taint in spec.podTemplate.spec.tolerations" in message


def test_a_selector_that_matches_no_node(refusals: Namespace) -> None:
    message = refusals.wait_reason("no-node", "Unschedulable")

    assert "orrect nodeSelector and affinity" in message


def test_a_missing_secret(refusals: Namespace) -> None:
    assert '"missing"' in refusals.wait_reason("no-secret", "ContainerConfig", 120)


def test_a_quota_that_is_used_up(refusals: Namespace) -> None:
    """Last: it stops every pod of the namespace that is not there yet."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "full"},
        "spec": {"hard": {"pods": "0"}},
    }
    refusals.apply(quota)
    refusals.apply(a_cluster("no-quota", NO_ACCELERATOR))

    message = refusals.wait_reason("no-quota", "QuotaExceeded")

    assert "Raise the ResourceQuota" in message


def test_what_was_refused_is_made_once_nothing_refuses_it(refusals: Namespace) -> None:
    refusals.kubectl("delete", "sglc", "pod-webhook", "no-quota")  # their engines are not wanted
    kubectl("delete", "validatingwebhookconfiguration", "sglang-operator-e2e")
    refusals.kubectl("delete", "resourcequota", "full")

    refusals.wait_ready("webhook")
