from sglang_controllers import names
from sglang_controllers.api import ClusterSpec
from sglang_controllers.api.duration import duration_s
from sglang_controllers.images import Images
from sglang_controllers.manifest import Manifest
from sglang_controllers.resources.metadata import metadata, selector
from sglang_controllers.resources.pod import DEFAULT_STARTUP_TIMEOUT, pod_template
from sglang_controllers.resources.subject import Subject
from sglang_controllers.resources.warming import gate_s
from sglang_controllers.revision import Revision

PROGRESS_MARGIN_S = 600
"""Beyond the start-up time: image pulls and scheduling count towards a Deployment's deadline."""


def deployment(
    subject: Subject, spec: ClusterSpec, revision: Revision, replicas: int, images: Images
) -> Manifest:
    """The engines of one revision. Its pod template is written once and never changed."""
    meta = metadata(subject, subject.revision_name(revision.name), revision.name)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta | {"annotations": {names.SPEC_HASH_ANNOTATION: revision.spec_hash}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": selector(subject, revision.name)},
            # Rollouts go from Deployment to Deployment. This is for a pod template edited by hand,
            # which must not wait for an accelerator that is not there.
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
            },
            "progressDeadlineSeconds": progress_deadline_s(spec),
            "revisionHistoryLimit": 1,
            "template": pod_template(subject, spec, revision.name, images),
        },
    }


def deployment_step(
    subject: Subject,
    revision: str,
    replicas: int,
    spec_hash: str | None,
    progress_deadline: int | None,
) -> Manifest:
    """The part of an existing Deployment that is ours to set again: all but its pod template.

    `spec_hash` None: the spec that it was made from is not known any more. `progress_deadline` in
    seconds, None: as it is.
    """
    meta = metadata(subject, subject.revision_name(revision), revision)
    if spec_hash:
        meta["annotations"] = {names.SPEC_HASH_ANNOTATION: spec_hash}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta,
        "spec": {"replicas": replicas}
        | ({"progressDeadlineSeconds": progress_deadline} if progress_deadline else {}),
    }


def progress_deadline_s(spec: ClusterSpec) -> int:
    """Seconds that a rollout may take for its next pod."""
    if spec.rollout.progress_deadline:
        return duration_s(spec.rollout.progress_deadline)
    startup_s = duration_s(spec.engine.startup_timeout or DEFAULT_STARTUP_TIMEOUT)
    return startup_s + gate_s(spec) + PROGRESS_MARGIN_S
