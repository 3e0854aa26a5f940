from sglang_controllers import names
from sglang_controllers.api.operation import Service, ServiceType
from sglang_controllers.manifest import Manifest
from sglang_controllers.resources.metadata import metadata, selector, stamped
from sglang_controllers.resources.subject import Subject


def service(subject: Subject, wanted: Service, behind: Subject) -> Manifest:
    """The cluster's one address. `behind` it are its routers, or its engines of every revision."""
    meta = metadata(subject, subject.name)
    if wanted.annotations:
        meta["annotations"] = dict(wanted.annotations)
    return _service(meta, wanted.type or ServiceType.CLUSTER_IP, behind)


def engines_service(subject: Subject) -> Manifest:
    """The engines' own address, whether there are routers or not."""
    return _service(metadata(subject, subject.engines_service), ServiceType.CLUSTER_IP, subject)


def agents_service(subject: Subject) -> Manifest:
    """Where a new engine's agent finds those that serve. It has no address: DNS lists the pods."""
    port = {
        "name": names.AGENT_PORT_NAME,
        "port": names.AGENT_PORT,
        "targetPort": names.AGENT_PORT_NAME,
        "protocol": "TCP",
    }
    return stamped(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata(subject, subject.agents_service),
            "spec": {"clusterIP": "None", "selector": selector(subject), "ports": [port]},
        }
    )


def _service(meta: Manifest, type_: ServiceType, behind: Subject) -> Manifest:
    return stamped(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta,
            "spec": {
                "type": str(type_),
                "selector": selector(behind),
                "ports": [
                    {
                        "name": names.ENGINE_PORT_NAME,
                        "port": names.SERVICE_PORT,
                        "targetPort": names.ENGINE_PORT_NAME,
                        "protocol": "TCP",
                    }
                ],
            },
        }
    )
