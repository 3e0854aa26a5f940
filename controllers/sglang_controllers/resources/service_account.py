from sglang_controllers.manifest import Manifest
from sglang_controllers.resources.metadata import metadata, stamped
from sglang_controllers.resources.subject import Subject


def service_account(subject: Subject) -> Manifest:
    """The engines' identity: engines never talk to the API server, so it mounts no token."""
    return stamped(
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": metadata(subject, subject.service_account),
            "automountServiceAccountToken": False,
        }
    )
