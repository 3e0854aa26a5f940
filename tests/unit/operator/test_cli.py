"""The command line: what it takes, and what it says about what it does not take."""

import socket
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from sglang_controllers.names import KIND
from sglang_operator import cli
from sglang_operator.options import settings_of
from sglang_operator.settings import Settings

CLUSTER = """
apiVersion: sglang.dev/v1alpha1
kind: SGLangCluster
metadata: {name: chat, namespace: team}
spec:
  replicas: 2
  model: {source: "oci://registry.example/smollm2:1"}
"""


def parsed(*arguments: str, **environment: str) -> Settings:
    variables = {f"SGLANG_OPERATOR_{name}": value for name, value in environment.items()}
    return settings_of(cli.parser(variables).parse_args(["run", *arguments]))


def test_without_options_everything_is_served_under_a_lease() -> None:
    settings = parsed()

    assert settings.namespaces == ()
    assert settings.scopes == (None,)
    assert settings.leader_election
    assert settings.health_port == 8080
    assert settings.resync_s == 60.0
    assert settings.log_format == "json"


def test_options_are_taken() -> None:
    settings = parsed(
        "--namespace=a",
        "--namespace=b",
        "--no-leader-election",
        "--lease-namespace=ops",
        "--lease-name=mine",
        "--health-port=0",
        "--workers=3",
        "--resync=5",
        "--log-format=text",
        "--log-level=debug",
    )

    assert settings.namespaces == ("a", "b")
    assert not settings.leader_election
    assert (settings.lease_namespace, settings.lease_name) == ("ops", "mine")
    assert (settings.health_port, settings.workers, settings.resync_s) == (0, 3, 5.0)
    assert (settings.log_format, settings.log_level) == ("text", "debug")


def test_the_environment_gives_defaults() -> None:
    settings = parsed(
        NAMESPACES="a, b",
        LEADER_ELECTION="false",
        LEASE_NAMESPACE="ops",
        LEASE_NAME="mine",
        HEALTH_PORT="9000",
        WORKERS="3",
        RESYNC="5",
        LOG_FORMAT="text",
        LOG_LEVEL="debug",
    )

    assert settings.namespaces == ("a", "b")
    assert not settings.leader_election
    assert (settings.lease_namespace, settings.lease_name) == ("ops", "mine")
    assert (settings.health_port, settings.workers, settings.resync_s) == (9000, 3, 5.0)
    assert (settings.log_format, settings.log_level) == ("text", "debug")


def test_the_command_line_wins_over_the_environment() -> None:
    assert parsed("--namespace=c", NAMESPACES="a,b").namespaces == ("c",)
    assert parsed("--all-namespaces", NAMESPACES="a,b").namespaces == ()
    assert parsed("--leader-election", LEADER_ELECTION="false").leader_election
    assert parsed("--workers=2", WORKERS="7").workers == 2


def test_an_empty_variable_is_an_unset_one() -> None:
    settings = parsed(NAMESPACES="", WORKERS="", LEADER_ELECTION="")

    assert replace(settings, identity="me") == replace(parsed(), identity="me")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--workers=0"], "whole number of 1 or more"),
        (["--health-port=70000"], "port from 0 to 65535"),
        (["--resync=soon"], "seconds from 0.1 to 3600"),
        (["--resync=nan"], "seconds from 0.1 to 3600"),
        (["--log-level=loud"], "invalid choice"),
        (["--namespace=a", "--all-namespaces"], "not allowed with"),
    ],
)
def test_a_bad_option_is_refused_with_the_rule(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", *arguments])

    assert ended.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("LEADER_ELECTION", "maybe", 'SGLANG_OPERATOR_LEADER_ELECTION: got "maybe"'),
        ("LOG_LEVEL", "loud", "write one of debug, info, warning, error"),
        ("LOG_FORMAT", "xml", "write one of json, text"),
    ],
)
def test_a_bad_variable_is_refused_by_name(
    name: str,
    value: str,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(f"SGLANG_OPERATOR_{name}", value)

    assert cli.main(["run"]) == 1
    assert told in capsys.readouterr().err


def test_without_an_api_server_it_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "kubernetes.aio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none")
    )
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    assert cli.main(["run"]) == 1
    assert "set KUBECONFIG or run in a pod" in capsys.readouterr().err


def test_render_prints_the_objects_of_a_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER)

    assert cli.main(["render", "-f", str(file)]) == 0

    manifests = list(yaml.safe_load_all(capsys.readouterr().out))
    kinds = {manifest["kind"] for manifest in manifests}
    assert kinds == {
        "ConfigMap",
        "Deployment",
        "PodDisruptionBudget",
        "Role",
        "RoleBinding",
        "Secret",
        "Service",
        "ServiceAccount",
    }
    assert all(manifest["metadata"]["namespace"] == "team" for manifest in manifests)
    assert not any("ownerReferences" in manifest["metadata"] for manifest in manifests)


def rendered(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    file = tmp_path / "cluster.yaml"
    file.write_text(text)
    code = cli.main(["render", "-f", str(file)])
    return code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("replicas: 2", "replica: 2", 'spec.replica: unknown field; did you mean "replicas"?'),
        ("replicas: 2", "replicas: many", 'spec.replicas: got "many"; must be a whole number'),
        ("replicas: 2", "zzzzzz: 2", "spec.zzzzzz: unknown field; known: replicas,"),
        ("name: chat", "name: Chat", 'metadata.name: got "Chat"'),
        ("name: chat", "name: " + "c" * 53, "has 53 characters; at most 52 are allowed"),
        ("name: chat", "name: 7", "metadata.name: got 7"),
        ("sglang.dev/v1alpha1", "sglang.dev/v2", 'write "sglang.dev/v1alpha1"'),
        ("kind: SGLangCluster", "kind: Cluster", f"no {KIND} in the input"),
        ("spec:", "spec: []\nother:", "spec: got []; must be an object"),
        ("spec:", "{{", "not YAML"),
        (
            "replicas: 2",
            "engine: {extraArgs: {enable-mixed-chunk: true, port: 1}}",
            "port",
        ),
    ],
)
def test_render_says_what_is_wrong_with_a_cluster(
    old: str, new: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, error = rendered(CLUSTER.replace(old, new, 1), tmp_path, capsys)

    assert code == 1
    assert told in error
    assert "Traceback" not in error


def test_render_shows_a_paused_cluster_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, error = rendered(CLUSTER + "  paused: true\n", tmp_path, capsys)

    assert (code, error) == (0, "")


def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["render", "-f", str(tmp_path / "none.yaml")]) == 1
    assert "none.yaml" in capsys.readouterr().err


def test_crds_prints_the_crd_of_the_repository(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["crds"]) == 0

    file = Path(__file__).parents[3] / "crds" / "sglang.dev_sglangclusters.yaml"
    assert capsys.readouterr().out == file.read_text()


def test_version_prints_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["version"]) == 0
    assert capsys.readouterr().out == "sglang-operator 0.1.0\n"


def test_a_health_port_that_is_taken_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    context = {"name": "c", "context": {"cluster": "c", "user": "c"}}
    kubeconfig = {
        "current-context": "c",
        "contexts": [context],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "c", "user": {}}],
    }
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(kubeconfig))
    monkeypatch.setattr("kubernetes.aio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(file))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr("sglang_operator.logs.set_up", lambda *_: None)
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]

        assert cli.main(["run", f"--health-port={port}"]) == 1

    assert f"cannot listen on port {port}" in capsys.readouterr().err


LAUNCH = "python -m sglang.launch_server --model-path /models/m --tp 2 --trust-remote-code"


@pytest.mark.parametrize("words", [[LAUNCH], LAUNCH.split()], ids=["quoted", "as words"])
def test_convert_prints_a_cluster_that_render_takes(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["convert", "--name", "chat", *words]) == 0
    printed = capsys.readouterr().out
    file = tmp_path / "cluster.yaml"
    file.write_text(printed)

    assert yaml.safe_load(printed)["spec"]["engine"]["parallelism"]["tensor"] == 2
    assert cli.main(["render", "-f", str(file)]) == 0


def test_convert_refuses_a_misspelt_argument_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["convert", f"{LAUNCH} --radix-eviction-polcy lfu"]) == 1

    assert '"--radix-eviction-policy"' in capsys.readouterr().err
