"""What is wrong with a router, said in the words of spec.router."""

from typing import Any

import pytest

from sglang_controllers.reasons import Reason
from sglang_controllers.router_diagnosis import router_fault
from tests.builders import a_pod, unplaceable


def statuses(**state: Any) -> dict[str, Any]:
    router = {"name": "router", "ready": False, "image": "r.io/router:1", **state}
    return {"containerStatuses": [router]}


def waits(reason: str, message: str = "") -> dict[str, Any]:
    return statuses(state={"waiting": {"reason": reason, "message": message}})


def ended(code: int, message: str, reason: str = "Error") -> dict[str, Any]:
    last = {"terminated": {"exitCode": code, "reason": reason, "message": message}}
    return statuses(state={"waiting": {"reason": "CrashLoopBackOff"}}, lastState=last)


@pytest.mark.parametrize(
    ("status", "reason", "says"),
    [
        (waits("ImagePullBackOff", "not found"), Reason.IMAGE_PULL, "containers[router].image"),
        (
            waits("CreateContainerConfigError", 'secret "keys" not found'),
            Reason.CONTAINER_CONFIG,
            "spec.router.apiKeySecretRef",
        ),
        (ended(1, "x\nerror: bad policy"), Reason.ROUTER_CRASH, "kubectl logs pod-1 -c router"),
        (ended(1, ""), Reason.ROUTER_CRASH, "left no message"),
        (
            ended(2, "error: SGLANG_ROUTER_API_KEY: the value is empty; set a key"),
            Reason.ROUTER_CRASH,
            "spec.router.apiKeySecretRef",
        ),
        (
            ended(128, "no such file", "StartError"),
            Reason.CONTAINER_CONFIG,
            "containers[router].image",
        ),
        (
            unplaceable("0/3 nodes are available: 3 node(s) had untolerated taint {a: b}."),
            Reason.UNSCHEDULABLE,
            "spec.router.podTemplate.spec",
        ),
    ],
)
def test_each_fault_names_a_field_of_the_router(
    status: dict[str, Any], reason: Reason, says: str
) -> None:
    finding = router_fault(a_pod(**status), ())

    assert finding is not None
    assert finding.reason is reason
    assert says in finding.message


def test_a_volume_that_cannot_be_mounted_is_told_while_nothing_runs() -> None:
    event = {"type": "Warning", "reason": "FailedMount", "message": 'configmap "x" not found'}

    finding = router_fault(a_pod(**waits("ContainerCreating")), (event,))

    assert finding is not None
    assert finding.reason is Reason.VOLUME
    assert router_fault(a_pod(**statuses(state={"running": {}})), (event,)) is None


def test_a_router_that_runs_again_is_not_at_fault() -> None:
    last = {"terminated": {"exitCode": 1, "reason": "Error", "message": "x"}}

    assert router_fault(a_pod(**statuses(state={"running": {}}, lastState=last)), ()) is None


def test_a_router_without_engines_is_not_at_fault() -> None:
    assert router_fault(a_pod(**statuses(state={"running": {}})), ()) is None
