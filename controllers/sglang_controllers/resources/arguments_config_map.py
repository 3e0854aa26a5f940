from collections.abc import Sequence

from sglang_controllers.manifest import Manifest
from sglang_controllers.resources.metadata import metadata
from sglang_controllers.resources.pod import COMMAND
from sglang_controllers.resources.subject import Subject


def arguments_config_map(subject: Subject, revision: str, arguments: Sequence[str]) -> Manifest:
    """The resolved engine command of a revision, for people to read; nothing mounts it."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(subject, subject.revision_name(revision), revision),
        "immutable": True,
        "data": {"command": " ".join(COMMAND), "arguments": "\n".join(arguments) + "\n"},
    }
