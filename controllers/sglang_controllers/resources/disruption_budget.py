from sglang_controllers.manifest import Manifest
from sglang_controllers.resources.metadata import metadata, selector, stamped
from sglang_controllers.resources.subject import Subject


def disruption_budget(subject: Subject) -> Manifest:
    """Let node drains evict one pod of a role at a time."""
    return stamped(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": metadata(subject, subject.role_name),
            "spec": {
                "selector": {"matchLabels": selector(subject)},
                "maxUnavailable": 1,
                # A pod that never became ready must not block a node drain.
                "unhealthyPodEvictionPolicy": "AlwaysAllow",
            },
        }
    )
