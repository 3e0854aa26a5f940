from sglang_controllers.manifest import Manifest
from sglang_controllers.resources.metadata import metadata
from sglang_controllers.resources.subject import Subject


def token_secret(subject: Subject) -> Manifest:
    """What agents want to see from who reads their state.

    The token itself is made where this is written: it is random, and nobody reads it back.
    """
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(subject, subject.token_secret),
        "immutable": True,
        "type": "Opaque",
    }
