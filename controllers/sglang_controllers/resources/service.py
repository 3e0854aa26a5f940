from sglang_controllers import names
from sglang_controllers.api.operation import Service, ServiceType
from sglang_controllers.manifest import Manifest
from sglang_controllers.resources.metadata import metadata, selector, stamped
from sglang_controllers.resources.subject import Subject


def service(subject: Subject, wanted: Service) -> Manifest:
    """The cluster's one address: ready engines of every revision."""
    meta = metadata(subject, subject.name)
    if wanted.annotations:
        meta["annotations"] = dict(wanted.annotations)
    return stamped(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta,
            "spec": {
                "type": str(wanted.type or ServiceType.CLUSTER_IP),
                "selector": selector(subject),
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
