"""What the API server says when it refuses an object, turned into a reason and the next act."""

import re

from sglang_controllers.diagnosis import Finding
from sglang_controllers.manifest import ObjectKey
from sglang_controllers.ownership import Taken
from sglang_controllers.reasons import Reason
from sglang_controllers.redaction import excerpt
from sglang_controllers.snapshot import WriteError

QUOTA = "exceeded quota"
"""The API server's words for a ResourceQuota that is used up."""

WEBHOOK_FAILS = "failed calling webhook"
WEBHOOK_DENIES = re.compile(r'admission webhook "[^"]*" denied')


def conflict(taken: Taken) -> Finding:
    """Somebody else's object has a name that we need."""
    return Finding(
        Reason.CONFLICT,
        f"{taken.kind} {taken.name} belongs to {taken.owner} and is left alone. Delete or "
        "rename it, or give the SGLangCluster another name",
    )


def refusal(key: ObjectKey, error: WriteError) -> Finding:
    """Why an object of ours could not be written."""
    what, said = f"{key.kind} {key.name}", excerpt(error.message)
    if error.reason == "AlreadyExists":
        return Finding(
            Reason.CONFLICT,
            f"{what} exists already, is not this cluster's and is left alone. Delete or rename "
            "it, or give the SGLangCluster another name",
        )
    if _needs_image_volumes(error):
        return Finding(
            Reason.UNSUPPORTED_BY_CLUSTER,
            "oci:// in spec.model.source needs image volumes (on by default from Kubernetes "
            "1.35). Use pvc:// or image:///, or switch on the ImageVolume feature",
        )
    if QUOTA in error.message:
        return _quota(f"{what}: {said}")
    fix = _webhook_fix(error.message) or "Correct the field it names, or the policy that refuses it"
    return Finding(Reason.REJECTED, f"the API server refused to {error.verb} {what}: {said}. {fix}")


def refused_pods(message: str) -> Finding:
    """Why a ReplicaSet could not make its pods."""
    said = excerpt(message)
    if QUOTA in message:
        return _quota(said)
    fix = _webhook_fix(message) or "Correct spec.podTemplate, or the policy that refuses them"
    return Finding(Reason.REJECTED, f"pods are refused: {said}. {fix}")


def _webhook_fix(message: str) -> str:
    """What to do about an admission webhook; empty when none is behind the refusal."""
    if WEBHOOK_FAILS in message:
        return "Repair that admission webhook, or remove it: it does not answer"
    if WEBHOOK_DENIES.search(message):
        return "Satisfy that admission webhook in spec.podTemplate, or exempt the namespace"
    return ""


def _quota(said: str) -> Finding:
    return Finding(Reason.QUOTA_EXCEEDED, f"{said}. Raise the ResourceQuota or lower spec.replicas")


def _needs_image_volumes(error: WriteError) -> bool:
    """A server without the feature drops the volume's source and misses it afterwards."""
    return (
        error.code == 422
        and "volumes[" in error.message
        and ("must specify a volume type" in error.message)
    )
