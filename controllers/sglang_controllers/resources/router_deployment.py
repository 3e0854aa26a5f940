"""The routers: SGLang's Model Gateway (smg), which finds the engines' pods by itself."""

from typing import Any

from sglang_controllers import names
from sglang_controllers.api import ClusterSpec
from sglang_controllers.api.router import Router, RoutingPolicy
from sglang_controllers.images import Images
from sglang_controllers.manifest import Manifest
from sglang_controllers.podtemplate import merged_template
from sglang_controllers.resources.agent import drain_timeout_s
from sglang_controllers.resources.metadata import labels, metadata, selector
from sglang_controllers.resources.subject import Subject
from sglang_controllers.revision import Revision

DEFAULT_REPLICAS = 2

HEALTH_INTERVAL_S = 2
HEALTH_FAILURES = 2
HEALTH_TIMEOUT_S = 5
"""A dead engine refuses at once, so this is for silent ones: they get requests for twice as long.
One that only is starved of CPU needs more than 2 s at times, and if it is the only one, all
requests are refused without it."""

REACTION_S = 6
"""Until kube-proxies have heard that a router goes. It takes connections as long."""

REQUEST_TIMEOUT_S = 1800
"""No request lasts longer through a router."""

EXIT_S = 30

ROUTER_UID = 1000

DEFAULT_RESOURCES = {"requests": {"cpu": "100m", "memory": "256Mi"}}


def router_replicas(spec: Router) -> int:
    return spec.replicas or DEFAULT_REPLICAS


def router_deployment(
    router: Subject, engines: Subject, spec: ClusterSpec, revision: Revision, images: Images
) -> Manifest:
    """The routers of one revision of their settings. The pod template is never changed."""
    meta = metadata(router, router.revision_name(revision.name), revision.name)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta | {"annotations": {names.SPEC_HASH_ANNOTATION: revision.spec_hash}},
        "spec": {
            "replicas": router_replicas(spec.router),
            "selector": {"matchLabels": selector(router, revision.name)},
            # For `kubectl rollout restart`, which makes routers read a new API key.
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
            },
            "revisionHistoryLimit": 1,
            "template": _pod_template(router, engines, spec, revision.name, images),
        },
    }


def _pod_template(
    router: Subject, engines: Subject, whole: ClusterSpec, revision: str, images: Images
) -> Manifest:
    spec, drain_s = whole.router, drain_timeout_s(whole)
    base = {
        "metadata": {"labels": labels(router, revision)},
        "spec": {
            "serviceAccountName": router.role_name,
            "automountServiceAccountToken": True,
            "enableServiceLinks": False,
            # Not more than engines have: a namespace that is deleted is looked at again only after
            # half of the longest of its pods' grace periods.
            "terminationGracePeriodSeconds": REACTION_S + drain_s + EXIT_S,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": ROUTER_UID,
                "runAsGroup": ROUTER_UID,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "kubernetes.io/hostname",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": selector(router, revision)},
                }
            ],
            "containers": [_container(engines, spec, drain_s, images)],
        },
    }
    return merged_template(base, spec.pod_template)


def _container(engines: Subject, spec: Router, drain_s: int, images: Images) -> Manifest:
    return {
        "name": names.ROUTER_CONTAINER,
        "image": images.router,
        "args": router_arguments(engines, spec, drain_s),
        **_environment(spec),
        "ports": [
            {"name": names.ENGINE_PORT_NAME, "containerPort": names.ROUTER_PORT},
            {"name": names.ROUTER_METRICS_PORT_NAME, "containerPort": names.ROUTER_METRICS_PORT},
            {"name": names.ROUTER_LIST_PORT_NAME, "containerPort": names.ROUTER_LIST_PORT},
        ],
        "resources": dict(spec.resources) or DEFAULT_RESOURCES,
        # Ready once it knows an engine that is: not before, and not without any.
        "readinessProbe": {
            "httpGet": {"path": "/readiness", "port": names.ENGINE_PORT_NAME},
            "periodSeconds": 2,
            "timeoutSeconds": 5,
        },
        "livenessProbe": {
            "httpGet": {"path": "/liveness", "port": names.ENGINE_PORT_NAME},
            "periodSeconds": 10,
            "timeoutSeconds": 10,
            "failureThreshold": 6,
        },
        "lifecycle": {"preStop": {"sleep": {"seconds": REACTION_S}}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def router_arguments(engines: Subject, spec: Router, drain_s: int) -> list[str]:
    """What smg is started with; of an option that comes twice, it takes the last."""
    found_by = [f"{label}={value}" for label, value in selector(engines).items()]
    options: dict[str, Any] = {
        "host": "0.0.0.0",
        "port": names.ROUTER_PORT,
        "policy": spec.policy or RoutingPolicy.CACHE_AWARE,
        "service-discovery-port": names.ENGINE_PORT,
        "service-discovery-namespace": engines.namespace,
        # Milliseconds, from the engine's state: see the engines' own probes.
        "health-check-endpoint": "/ready",
        "health-check-interval-secs": HEALTH_INTERVAL_S,
        "health-check-timeout-secs": HEALTH_TIMEOUT_S,
        "health-failure-threshold": HEALTH_FAILURES,
        "health-success-threshold": 1,
        # Of a pod that became ready: smg looks every 30 s, for half an hour, unless told.
        "worker-startup-check-interval": 1,
        "worker-startup-timeout-secs": 10,
        "request-timeout-secs": REQUEST_TIMEOUT_S,
        "shutdown-grace-period-secs": drain_s,
        "prometheus-port": names.ROUTER_METRICS_PORT,
    }
    flags = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    # A worker that fails stays listed, and is back as soon as it answers: its pod says when it goes.
    switches = ["--service-discovery", "--no-remove-unhealthy-workers", "--log-json"]
    return [*switches, *flags, "--selector", *found_by]


def _environment(spec: Router) -> dict[str, Any]:
    if not spec.api_key_secret_ref:
        return {}
    reference = {"name": spec.api_key_secret_ref.name, "key": spec.api_key_secret_ref.key}
    return {
        "env": [{"name": names.ROUTER_KEY_VARIABLE, "valueFrom": {"secretKeyRef": reference}}],
    }
