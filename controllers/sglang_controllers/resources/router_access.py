"""What a router may do in the API: see the pods of its namespace, among which it finds engines."""

from sglang_controllers.manifest import Manifest
from sglang_controllers.resources.metadata import metadata, stamped
from sglang_controllers.resources.subject import Subject

RBAC = "rbac.authorization.k8s.io"


def router_access(router: Subject) -> list[Manifest]:
    """ServiceAccount, Role and RoleBinding, all of one name."""
    meta, name = metadata(router, router.role_name), router.role_name
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": meta,
        # The pod says that it wants one.
        "automountServiceAccountToken": False,
    }
    role = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "Role",
        "metadata": meta,
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}],
    }
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": meta,
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": router.namespace}],
    }
    return [stamped(manifest) for manifest in (account, role, binding)]
