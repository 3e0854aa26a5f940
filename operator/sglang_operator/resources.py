"""The Kubernetes resources the operator reads and writes, and their places in the API."""

from dataclasses import dataclass

from sglang_controllers.names import CLUSTER_LABEL, GROUP, KIND, PLURAL, VERSION


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object. `group` is empty for the core API."""

    kind: str
    group: str
    version: str
    plural: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def label_selector(self) -> str | None:
        """What limits lists and watches to our objects; None: every object is ours."""
        return None if self.group == GROUP else CLUSTER_LABEL

    def path(self, namespace: str | None, name: str | None = None, subresource: str = "") -> str:
        """The URL path of the collection, or of one object. `namespace` None: all of them."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        where = f"{root}/namespaces/{namespace}" if namespace else root
        parts = [where, self.plural, *([name] if name else []), *filter(None, [subresource])]
        return "/".join(parts)


CLUSTERS = Resource(KIND, GROUP, VERSION, PLURAL)
PODS = Resource("Pod", "", "v1", "pods")
CHILDREN = (
    Resource("Deployment", "apps", "v1", "deployments"),
    Resource("Service", "", "v1", "services"),
    Resource("PodDisruptionBudget", "policy", "v1", "poddisruptionbudgets"),
    Resource("ServiceAccount", "", "v1", "serviceaccounts"),
    Resource("ConfigMap", "", "v1", "configmaps"),
    Resource("Role", "rbac.authorization.k8s.io", "v1", "roles"),
    Resource("RoleBinding", "rbac.authorization.k8s.io", "v1", "rolebindings"),
)
SECRETS = Resource("Secret", "", "v1", "secrets")
"""Written, and neither read nor watched."""
WATCHED = (CLUSTERS, *CHILDREN, PODS)
BY_KIND = {resource.kind: resource for resource in (*WATCHED, SECRETS)}

LEASES = Resource("Lease", "coordination.k8s.io", "v1", "leases")
CORE_EVENTS = Resource("Event", "", "v1", "events")
"""Read here: only the core API selects events by the uid of their object."""
EVENTS = Resource("Event", "events.k8s.io", "v1", "events")
"""Written here."""
