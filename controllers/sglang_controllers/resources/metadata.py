"""Labels, owner and hash that every child object carries."""

import hashlib
import json
from typing import Any

from sglang_controllers import names
from sglang_controllers.manifest import Manifest
from sglang_controllers.resources.subject import Subject


def selector(subject: Subject, revision: str | None = None) -> dict[str, str]:
    """Labels that pick the pods of the role, of one revision or of all."""
    labels = {names.CLUSTER_LABEL: subject.name, names.ROLE_LABEL: subject.role}
    return labels | ({names.REVISION_LABEL: revision} if revision else {})


def labels(subject: Subject, revision: str | None = None) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "sglang",
        "app.kubernetes.io/instance": subject.name,
        "app.kubernetes.io/component": subject.role,
        "app.kubernetes.io/managed-by": names.FIELD_MANAGER,
        **selector(subject, revision),
    }


def metadata(subject: Subject, name: str, revision: str | None = None) -> dict[str, Any]:
    """Children belong to the cluster, so that garbage collection removes them with it."""
    return {
        "name": name,
        "namespace": subject.namespace,
        "labels": labels(subject, revision),
        "ownerReferences": [
            {
                "apiVersion": names.API_VERSION,
                "kind": names.KIND,
                "name": subject.name,
                "uid": subject.uid,
                "controller": True,
            }
        ],
    }


def stamped(manifest: Manifest) -> Manifest:
    """Add the hash of a manifest to it: a field that a later version drops is noticed by it."""
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    stamp = {names.MANIFEST_HASH_ANNOTATION: hashlib.sha256(text.encode()).hexdigest()[:16]}
    meta = manifest["metadata"]
    return manifest | {"metadata": meta | {"annotations": {**meta.get("annotations", {}), **stamp}}}
