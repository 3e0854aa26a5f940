"""Engines that stand still, made to by SGLang's own switches for tests."""

import pytest

from e2e.tests.kube import (
    NO_ACCELERATOR,
    Namespace,
    a_cluster,
    on_gpu_nodes,
    with_arguments,
)

STUCK = {"env": [{"name": "SGLANG_TEST_STUCK_SCHEDULER_INIT", "value": "3600"}]}

START_S = 120

HANG = """
import json, threading, urllib.request

def post(path, **body):
    request = urllib.request.Request(
        "http://127.0.0.1:30000" + path,
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    return urllib.request.urlopen(request, timeout=20).read()

post("/slow_down", forward_sleep_time=3600)
generate = {"text": "Hello", "sampling_params": {"max_new_tokens": 8}}
threading.Thread(target=post, args=["/generate"], kwargs=generate, daemon=True).start()
threading.Event().wait(3)
"""
"""Makes the next step of the engine take an hour, and asks for one."""


@pytest.fixture(scope="module")
def stalls(namespace: Namespace) -> Namespace:
    namespace.apply(
        on_gpu_nodes(a_cluster("hung", NO_ACCELERATOR | with_arguments(watchdog_timeout=5))),
        on_gpu_nodes(a_cluster("slow", NO_ACCELERATOR | STUCK | {"startupTimeout": "20s"})),
        on_gpu_nodes(
            a_cluster("late", NO_ACCELERATOR | STUCK, rollout={"progressDeadline": "20s"})
        ),
    )
    return namespace


def test_an_engine_that_loads_longer_than_it_may(stalls: Namespace) -> None:
    message = stalls.wait_reason("slow", "StartupTimeout", START_S)

    assert "spec.engine.startupTimeout" in message
    stalls.kubectl("delete", "sglc", "slow", "--wait=false")  # it would load for ever


def test_a_rollout_that_makes_no_progress(stalls: Namespace) -> None:
    message = stalls.wait_reason("late", "ProgressDeadlineExceeded", START_S)

    assert "spec.rollout.progressDeadline" in message
    (pod,) = stalls.pods("late")
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    stalls.kubectl("delete", "sglc", "late", "--wait=false")


def test_a_hung_engine(stalls: Namespace) -> None:
    stalls.wait_ready("hung")
    (pod,) = stalls.pods("hung")

    stalls.kubectl("exec", pod["metadata"]["name"], "--", "python3", "-c", HANG)

    message = stalls.wait_reason("hung", "EngineHung", START_S)
    assert "longer than 5 s" in message
    assert f"kubectl logs {pod['metadata']['name']} -c engine --previous" in message


def test_a_hung_engine_serves_again(stalls: Namespace) -> None:
    stalls.wait_ready("hung")
