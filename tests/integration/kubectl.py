"""The real kubectl, as a user or a CI job runs it."""

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

Manifest = dict[str, Any]

CACHE = Path(os.environ.get("SGLANG_OPERATOR_CACHE") or Path.home() / ".cache/sglang-operator")
BUILT = f"{os.environ.get('KUBEBUILDER_ASSETS') or CACHE / 'kind/bin'}:{os.environ['PATH']}"
BINARY = shutil.which("kubectl", path=BUILT) or "kubectl"

CRDS = Path(__file__).parents[2] / "crds"
OTHER_APIS = Path(__file__).parents[1] / "data/crds"
"""APIs of Argo CD, Flux and Prometheus Operator, as far as we use them."""


@dataclass(frozen=True, slots=True)
class Kubectl:
    kubeconfig: Path
    made: set[str] = field(default_factory=set, compare=False)

    def run(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """`given` is what kubectl reads with `-f -`."""
        # The kubeconfig's folder ends with the control plane; a cache of its API in HOME would not.
        options = [f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.kubeconfig.parent}/cache"]
        return subprocess.run(
            [BINARY, *options, *arguments],
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def must(self, *arguments: str, given: str = "") -> str:
        done = self.run(*arguments, given=given)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}\n{done.stderr}"
        return done.stdout

    def make_namespaces(self, *names: str) -> None:
        """Namespaces that are there already stay as they are."""
        missing = sorted(set(names) - self.made)
        if missing:
            about = {"apiVersion": "v1", "kind": "Namespace"}
            wanted = [{**about, "metadata": {"name": name}} for name in missing]
            self.must("apply", "--server-side", "-f", "-", given=yaml.safe_dump_all(wanted))
            self.made.update(missing)

    def install_apis(self) -> None:
        """Our CRD, and the APIs of the tools that the chart and the pages write for."""
        for folder in (CRDS, OTHER_APIS):
            self.must("apply", "--server-side", "--force-conflicts", "-f", str(folder))
            established = ("--for=condition=Established", "--timeout=60s")
            self.must("wait", *established, "-f", str(folder))

    def refusal(self, manifests: list[Manifest], namespace: str) -> str:
        """What the API server has against the manifests: unknown fields too. Empty: nothing."""
        named = [m["metadata"].get("namespace") for m in manifests]
        self.make_namespaces(*filter(None, named), namespace)
        done = self.run(
            "apply",
            "--server-side",
            "--dry-run=server",
            "--field-manager=tests",
            "--force-conflicts",
            "-f",
            "-",
            given=yaml.safe_dump_all(with_namespace(manifests, namespace)),
        )
        return done.stderr if done.returncode else ""


CLUSTER_WIDE = frozenset(
    {
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "Namespace",
        "PersistentVolume",
        "PriorityClass",
        "StorageClass",
    }
)


def with_namespace(manifests: list[Manifest], namespace: str) -> list[Manifest]:
    """The manifests, with a namespace where they name none."""
    return [
        m
        if m["kind"] in CLUSTER_WIDE
        else {**m, "metadata": {"namespace": namespace, **m["metadata"]}}
        for m in manifests
    ]
