"""What an agent needs for warming: variables, and the files that prompts are in."""

import json
from collections.abc import Iterator

from sglang_controllers import names
from sglang_controllers.api import ClusterSpec
from sglang_controllers.api.duration import duration_s
from sglang_controllers.api.warming import Warming
from sglang_controllers.manifest import Manifest
from sglang_controllers.resources.subject import Subject
from sglang_controllers.warming.slots import slot_names

DEFAULT_GATE = "5m"

SLOTS_VOLUME = "warming"


def gate_timeout(warming: Warming) -> str | None:
    """How long a pod whose engine is ready may wait to be warm. None: it does not wait."""
    if warming.gate is None and warming.from_peers is None:
        return None
    return (warming.gate and warming.gate.timeout) or DEFAULT_GATE


def gate_s(spec: ClusterSpec) -> int:
    """The same in seconds."""
    timeout = gate_timeout(spec.cache.warming) if spec.cache.warming else None
    return duration_s(timeout) if timeout else 0


def warming_volumes(subject: Subject, spec: ClusterSpec) -> list[Manifest]:
    warming = spec.cache.warming
    if warming is None:
        return []
    slots = [{"configMap": {"name": name, "optional": True}} for name in slot_names(subject)]
    return [
        {"name": SLOTS_VOLUME, "projected": {"sources": slots}},
        *(
            {
                "name": f"{SLOTS_VOLUME}-{place}",
                "persistentVolumeClaim": {"claimName": claim, "readOnly": True},
            }
            for place, claim in enumerate(_claims(warming))
        ),
    ]


def warming_mounts(spec: ClusterSpec) -> list[Manifest]:
    warming = spec.cache.warming
    if warming is None:
        return []
    return [
        {"name": SLOTS_VOLUME, "mountPath": names.WARMING_MOUNT, "readOnly": True},
        *(
            {"name": f"{SLOTS_VOLUME}-{place}", "mountPath": _mount(claim), "readOnly": True}
            for place, claim in enumerate(_claims(warming))
        ),
    ]


def warming_environment(subject: Subject, spec: ClusterSpec, revision: str) -> list[Manifest]:
    warming = spec.cache.warming
    if warming is None:
        return []
    return [
        *(
            {"name": f"SGLANG_AGENT_{name}", "value": value}
            for name, value in _variables(subject, spec, warming, revision)
        ),
        *([_POD_IP] if warming.from_peers else []),
    ]


_POD_IP: Manifest = {
    "name": "SGLANG_AGENT_POD_IP",
    "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}},
}


def _variables(
    subject: Subject, spec: ClusterSpec, warming: Warming, revision: str
) -> Iterator[tuple[str, str]]:
    yield "WARMING_DIR", names.WARMING_MOUNT
    yield "REVISION", revision
    paths = [
        {"claim": claim.claim_name, "path": claim.path or "", "mount": _mount(claim.claim_name)}
        for claim in (source.persistent_volume_claim for source in warming.prompts_from)
        if claim
    ]
    if paths:
        yield "WARMING_PATHS", json.dumps(paths, separators=(",", ":"))
    if gate := gate_s(spec):
        yield "WARMING_GATE_S", str(gate)
    if warming.from_peers:
        yield "PEERS_SERVICE", f"{subject.agents_service}.{subject.namespace}.svc"
        yield "PEERS_MAX_TOKENS", str(warming.from_peers.max_tokens)


def _claims(warming: Warming) -> list[str]:
    """Each once: a pod cannot have one claim in two volumes everywhere."""
    claims = (source.persistent_volume_claim for source in warming.prompts_from)
    return list(dict.fromkeys(claim.claim_name for claim in claims if claim))


def _mount(claim: str) -> str:
    """The whole of it: a file that is replaced would stay the old one behind a subPath."""
    return f"{names.WARMING_CLAIMS_MOUNT}/{claim}"
