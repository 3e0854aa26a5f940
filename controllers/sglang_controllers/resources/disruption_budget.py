from sglang_controllers.api.operation import Disruption
from sglang_controllers.manifest import Manifest
from sglang_controllers.resources.metadata import metadata, selector, stamped
from sglang_controllers.resources.subject import Subject


def disruption_budget(subject: Subject, wanted: Disruption) -> Manifest:
    """Let node drains evict some pods of a role at a time, one by default."""
    return stamped(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": metadata(subject, subject.role_name),
            "spec": {
                "selector": {"matchLabels": selector(subject)},
                "maxUnavailable": 1 if wanted.max_unavailable is None else wanted.max_unavailable,
                # A pod that never became ready must not block a node drain.
                "unhealthyPodEvictionPolicy": "AlwaysAllow",
            },
        }
    )
