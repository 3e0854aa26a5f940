"""Runs the real helm on the chart."""

import functools
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
CHART = ROOT / "charts/sglang-operator"

Manifest = dict[str, Any]


@functools.cache
def helm() -> str:
    """The path of a helm; built when there is none, so that no test is left out."""
    found = subprocess.run([ROOT / "e2e/helm.sh"], check=True, capture_output=True, text=True)
    return found.stdout.strip()


def run_helm(*arguments: str, values: Manifest | None = None) -> subprocess.CompletedProcess[str]:
    """`helm` with `values` as its values file (JSON is YAML)."""
    return subprocess.run(
        [helm(), *arguments, "--values", "-"],
        input=json.dumps(values or {}),
        capture_output=True,
        text=True,
        check=False,
    )


def template(
    values: Manifest | None = None, kube_version: str = "1.33.0", apis: Sequence[str] = ()
) -> list[Manifest]:
    """The manifests of release `fleet` in namespace `ops`, where the cluster has further APIs."""
    release = ("template", "fleet", str(CHART), "--namespace", "ops")
    known = [option for api in apis for option in ("--api-versions", api)]
    result = run_helm(*release, "--kube-version", kube_version, *known, values=values)
    assert result.returncode == 0, result.stderr
    return [manifest for manifest in yaml.safe_load_all(result.stdout) if manifest]


def of_kind(manifests: list[Manifest], kind: str) -> list[Manifest]:
    return [manifest for manifest in manifests if manifest["kind"] == kind]


def the(manifests: list[Manifest], kind: str) -> Manifest:
    """The only manifest of a kind."""
    [manifest] = of_kind(manifests, kind)
    return manifest
