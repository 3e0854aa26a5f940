from sglang_controllers import names
from sglang_controllers.manifest import Manifest
from sglang_controllers.resources.metadata import metadata, selector, stamped
from sglang_controllers.resources.subject import Subject


def service(subject: Subject) -> Manifest:
    """The cluster's one address: ready engines of every revision."""
    return stamped(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata(subject, subject.name),
            "spec": {
                "type": "ClusterIP",
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
