"""Models of a hub: downloaded before the engine starts, or a reason why not."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.tests.kube import (
    ENGINE_IMAGE,
    MODEL,
    NO_ACCELERATOR,
    Manifest,
    Namespace,
    a_cluster,
    get,
    on_gpu_nodes,
)

HUB = (Path(__file__).parents[1] / "hub.py").read_text()
TOKEN = "hub-secret-of-the-tests"


def hub() -> list[Manifest]:
    """A stand-in for the hub that serves the tiny model, once to everybody and once gated."""
    volumes = [
        {"name": "script", "configMap": {"name": "hub"}},
        {"name": "model", "image": {"reference": MODEL.removeprefix("oci://")}},
    ]
    mounts = [
        {"name": "script", "mountPath": "/srv"},
        {"name": "model", "mountPath": "/models/team/tiny", "readOnly": True},
        {"name": "model", "mountPath": "/models/team/gated", "readOnly": True},
    ]
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "hub"},
            "data": {"hub.py": HUB},
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "hub"},
            "stringData": {"token": TOKEN},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "hub"},
            "spec": {"selector": {"app": "hub"}, "ports": [{"port": 80, "targetPort": 8080}]},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "hub", "labels": {"app": "hub"}},
            "spec": {
                "nodeSelector": {"sglang.dev/pool": "gpu"},
                "tolerations": [{"operator": "Exists"}],
                "securityContext": {
                    "runAsNonRoot": True,
                    "runAsUser": 1000,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [
                    {
                        "name": "hub",
                        "image": ENGINE_IMAGE,
                        "command": ["python3", "/srv/hub.py"],
                        "args": [
                            "--root=/models",
                            "--port=8080",
                            "--gated=team/gated",
                            f"--token={TOKEN}",
                        ],
                        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
                        "securityContext": {
                            "allowPrivilegeEscalation": False,
                            "capabilities": {"drop": ["ALL"]},
                        },
                        "volumeMounts": mounts,
                    }
                ],
                "volumes": volumes,
            },
        },
    ]


def of_the_hub(name: str, source: str, **more: Any) -> Manifest:
    """A cluster whose model comes from the stand-in, on the nodes that hold the engine's image."""
    model: Manifest = {"source": source, "hubEndpoint": "http://hub"} | more
    return on_gpu_nodes(a_cluster(name, NO_ACCELERATOR, model=model))


@pytest.fixture(scope="module")
def downloads(namespace: Namespace) -> Iterator[Namespace]:
    """The hub, and one cluster for each outcome, all at once."""
    namespace.apply(*hub())
    namespace.kubectl("wait", "--for=condition=Ready", "pod/hub", "--timeout=60s")
    namespace.apply(
        of_the_hub(
            "admitted", "hf://team/gated@main", tokenSecretRef={"name": "hub", "key": "token"}
        ),
        of_the_hub("gated", "hf://team/gated@main"),
        of_the_hub("no-model", "hf://team/nothing"),
        of_the_hub("no-revision", "hf://team/tiny@v7"),
        of_the_hub("no-hub", "hf://team/tiny", hubEndpoint="http://no-such-hub"),
    )
    yield namespace
    namespace.kubectl("delete", "pod", "hub")


def test_a_gated_model_without_a_token(downloads: Namespace) -> None:
    message = downloads.wait_reason("gated", "ModelGated")

    assert "team/gated" in message
    assert "spec.model.tokenSecretRef" in message


def test_a_model_that_the_hub_does_not_have(downloads: Namespace) -> None:
    assert "team/nothing" in downloads.wait_reason("no-model", "ModelNotFound")


def test_a_revision_that_the_model_does_not_have(downloads: Namespace) -> None:
    assert "v7" in downloads.wait_reason("no-revision", "ModelNotFound")


def test_a_hub_that_does_not_answer(downloads: Namespace) -> None:
    message = downloads.wait_reason("no-hub", "ModelDownload")

    assert "http://no-such-hub" in message
    assert "spec.model.hubEndpoint" in message


def test_a_gated_model_with_a_token_is_served(downloads: Namespace) -> None:
    downloads.wait_ready("admitted")

    assert downloads.server_info("admitted")["model_path"] == "/cache/models/model/team/gated"


def test_the_token_is_nowhere_but_in_the_download(downloads: Namespace) -> None:
    (pod,) = downloads.pods("admitted")
    told = json.dumps([pod, downloads.cluster("admitted"), get("-n", downloads.name, "events")])
    log = downloads.kubectl("logs", pod["metadata"]["name"], "-c", "download")

    environment = downloads.kubectl(
        "exec", pod["metadata"]["name"], "-c", "engine", "--", "python3", "-c",
        "import os; print(dict(os.environ))",
    )  # fmt: skip
    assert TOKEN not in told + log + environment
