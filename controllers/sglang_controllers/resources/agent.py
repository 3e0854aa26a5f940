"""The agent beside each engine, and the drain that the engine's end waits for."""

from importlib.resources import files

from sglang_controllers import names
from sglang_controllers.api import ClusterSpec
from sglang_controllers.api.duration import duration_s
from sglang_controllers.manifest import Manifest
from sglang_controllers.resources.subject import Subject
from sglang_controllers.resources.warming import (
    warming_environment,
    warming_mounts,
    warming_volumes,
)

DRAIN_SCRIPT = files("sglang_controllers").joinpath("scripts/drain.py").read_text()

SOCKET = f"{names.AGENT_MOUNT}/agent.sock"
ENGINE_URL = f"http://127.0.0.1:{names.ENGINE_PORT}"

DEFAULT_DRAIN_TIMEOUT = "2m"

REACTION_S = 5
"""Time for proxies to stop sending new requests. No drain ends before it."""

EXIT_S = 30
"""SGLang ends itself within seconds when nothing runs any more."""

MOUNT: Manifest = {"name": "agent", "mountPath": names.AGENT_MOUNT}
TOKEN_VOLUME = "agent-token"  # noqa: S105  a name


MEMORY = "128Mi"
MEMORY_WARMING = "256Mi"
"""Prompts, and the prefixes that the engine has."""


def agent_volumes(subject: Subject, spec: ClusterSpec) -> list[Manifest]:
    # Optional: an engine must not wait for what only readers of its agent need.
    token = {"secretName": subject.token_secret, "optional": True}
    return [
        {"name": "agent", "emptyDir": {"sizeLimit": "1Mi"}},
        {"name": TOKEN_VOLUME, "secret": token},
        *warming_volumes(subject, spec),
    ]


def agent_container(
    subject: Subject, spec: ClusterSpec, revision: str, image: str, security: Manifest
) -> Manifest:
    """A native sidecar: it starts before the engine and ends after it."""
    memory = MEMORY if spec.cache.warming is None else MEMORY_WARMING
    return {
        "name": names.AGENT_CONTAINER,
        "image": image,
        "restartPolicy": "Always",
        "env": [
            {"name": "SGLANG_AGENT_ENGINE_URL", "value": ENGINE_URL},
            {"name": "SGLANG_AGENT_PORT", "value": str(names.AGENT_PORT)},
            {"name": "SGLANG_AGENT_SOCKET", "value": SOCKET},
            {"name": "SGLANG_AGENT_TOKEN_FILE", "value": f"{names.TOKEN_MOUNT}/{names.TOKEN_KEY}"},
            {"name": "SGLANG_AGENT_REACTION_S", "value": str(REACTION_S)},
            {"name": "SGLANG_AGENT_DRAIN_TIMEOUT_S", "value": str(drain_timeout_s(spec))},
            *warming_environment(subject, spec, revision),
        ],
        "ports": [{"name": names.AGENT_PORT_NAME, "containerPort": names.AGENT_PORT}],
        "resources": {
            "requests": {"cpu": "10m", "memory": "64Mi"},
            "limits": {"memory": memory},
        },
        # The engine has its own probe. This one adds: not while it drains.
        "readinessProbe": {
            "httpGet": {"path": "/readyz", "port": names.AGENT_PORT_NAME},
            "periodSeconds": 2,
            "timeoutSeconds": 5,
        },
        "livenessProbe": {
            "httpGet": {"path": "/livez", "port": names.AGENT_PORT_NAME},
            "periodSeconds": 10,
            "timeoutSeconds": 10,
        },
        "securityContext": security,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            MOUNT,
            {"name": TOKEN_VOLUME, "mountPath": names.TOKEN_MOUNT, "readOnly": True},
            *warming_mounts(spec),
        ],
    }


def drain_timeout_s(spec: ClusterSpec) -> int:
    return duration_s(spec.engine.drain_timeout or DEFAULT_DRAIN_TIMEOUT)


def pre_stop(spec: ClusterSpec) -> Manifest:
    """Run in the engine's container: it asks the agent, and the engine itself without one."""
    # -I and -S: nothing of the image's environment may change what the script does.
    command = ["python3", "-IS", "-c", DRAIN_SCRIPT]
    limits = [str(REACTION_S), str(drain_timeout_s(spec))]
    return {"exec": {"command": [*command, SOCKET, ENGINE_URL, *limits]}}


def grace_period_s(spec: ClusterSpec) -> int:
    """PreStop counts towards it."""
    return REACTION_S + drain_timeout_s(spec) + EXIT_S
