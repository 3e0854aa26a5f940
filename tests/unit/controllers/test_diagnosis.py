"""Each fault that a pod can show gives its reason and a message that says what to do."""

from typing import Any

import pytest

from sglang_controllers.diagnosis import diagnosis, lacks_room
from tests.builders import a_pod, ended, unplaceable, waiting

GPU = "0/3 nodes are available: 1 node(s) had untolerated taint, 2 Insufficient nvidia.com/gpu."
CLAIM = 'persistentvolumeclaim "weights" not found'
ARGPARSE = (
    "usage: launch_server.py [-h] --model-path MODEL_PATH\n"
    "launch_server.py: error: unrecognized arguments: --no-such-flag=1\n"
)
TRACEBACK = (
    'Traceback (most recent call last):\n  File "/x.py", line 1, in f\n'
    "ValueError: tensor parallel size must divide the heads\nKilled\n"
)
NO_CONFIG = "OSError: /model does not appear to have a file named config.json. Checkout ..."
HUNG = (
    "[2026-11-30 02:10:11] Scheduler watchdog timeout (self.watchdog_timeout=300, "
    "self.soft=False)\n\n[2026-11-30 02:10:16] Received sigquit from a child process. It usually "
    "means the child failed.\n"
)
CUDA = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


@pytest.mark.parametrize(
    ("status", "reason", "says"),
    [
        (waiting("ErrImagePull", "pull image x: not found"), "ImagePull", "imagePullSecrets"),
        (waiting("ImagePullBackOff", 'Back-off pulling image "r.io/x:1"'), "ImagePull", "r.io/x:1"),
        (waiting("InvalidImageName", "couldn't parse"), "ImagePull", "couldn't parse"),
        (
            waiting("CreateContainerConfigError", 'secret "s" not found'),
            "ContainerConfig",
            "spec.engine.env",
        ),
        (ended(137, reason="OOMKilled"), "OutOfMemory", "spec.engine.resources.limits.memory"),
        (ended(1, CUDA), "OutOfMemory", "spec.engine.parallelism.tensor"),
        (ended(2, ARGPARSE), "BadEngineArgs", "--no-such-flag=1"),
        (ended(1, NO_CONFIG), "ModelNotFound", "config.json"),
        (ended(1, TRACEBACK), "EngineCrash", "tensor parallel size must divide the heads"),
        (ended(1), "EngineCrash", "left no message"),
        (unplaceable(GPU), "WaitingForGPU", "needs 2 nvidia.com/gpu on one node"),
        (unplaceable(CLAIM), "Volume", '"weights"'),
        (unplaceable("0/3 nodes are available: 3 Insufficient cpu."), "Unschedulable", "cpu"),
        (
            unplaceable("0/3 nodes are available: 3 Insufficient cpu."),
            "Unschedulable",
            "Lower spec.engine.resources.requests or add a larger node",
        ),
        (
            unplaceable("0/2 nodes are available: 2 node(s) had untolerated taint(s)."),
            "Unschedulable",
            "Tolerate the taint in spec.podTemplate.spec.tolerations",
        ),
        (
            unplaceable(
                "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."
            ),
            "Unschedulable",
            "Correct nodeSelector and affinity",
        ),
        (
            unplaceable("0/2 nodes are available: 2 node(s) were unschedulable."),
            "Unschedulable",
            "Uncordon a node",
        ),
        (
            unplaceable("0/2 nodes are available: 2 node(s) had volume node affinity conflict."),
            "Volume",
            "tied to other nodes",
        ),
        (unplaceable(GPU), "WaitingForGPU", "If the other nodes have them: tolerate the taint in"),
        (unplaceable(GPU), "WaitingForGPU", "or correct spec.engine.accelerator"),
        (
            ended(
                1,
                "ValueError: User-specified context_length (100000) is greater than the derived "
                "context_length (8192). To allow it, set SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1",
            ),
            "BadEngineArgs",
            "spec.model.contextLength",
        ),
        (
            ended(137, "SafetensorError: Error while deserializing header: header too large"),
            "ModelNotFound",
            "all of them whole",
        ),
        (
            unplaceable(
                "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not "
                "found"
            ),
            "Volume",
            "PersistentVolumeClaims. The claim is there, but has no volume yet",
        ),
        (
            ended(128, 'exec: "python3": executable file not found in $PATH', reason="StartError"),
            "ContainerConfig",
            "check spec.engine.image",
        ),
        (
            ended(
                1,
                "ValueError: Chat template nonsense is not a built-in template name or a valid "
                "chat template file path.",
            ),
            "BadEngineArgs",
            "spec.model.chatTemplate",
        ),
        (
            ended(1, "ValueError: Couldn't instantiate the backend tokenizer from one of:\n(1)"),
            "ModelNotFound",
            "spec.model.source",
        ),
        (ended(1, TRACEBACK), "EngineCrash", "kubectl logs pod-1 -c engine --previous"),
        (ended(137, HUNG), "EngineHung", "longer than 300 s"),
        (
            ended(1, "OSError: [Errno 30] Read-only file system: '/opt/x/cache'"),
            "EngineCrash",
            "writes to /opt/x/cache, which is read-only",
        ),
    ],
)
def test_a_fault_has_its_reason_and_remedy(status: dict[str, Any], reason: str, says: str) -> None:
    finding = diagnosis(a_pod(**status), ())

    assert finding is not None
    assert finding.reason == reason
    assert says in finding.message


def test_an_agent_that_is_started_again_at_once_is_no_fault_and_one_that_keeps_ending_is() -> None:
    last = {"terminated": {"exitCode": 137, "reason": "Error", "message": ""}}
    again = {"name": "agent", "ready": False, "state": {"running": {}}, "lastState": last}
    waits = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}

    assert diagnosis(a_pod(initContainerStatuses=[again]), ()) is None
    finding = diagnosis(a_pod(initContainerStatuses=[{**again, "state": waits}]), ())
    assert finding is not None
    assert "container agent" in finding.message


def test_an_agent_that_cannot_be_pulled_sends_to_the_operators_chart() -> None:
    state = {
        "waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "r.io/a:1"'}
    }
    agent = {"name": "agent", "ready": False, "state": state}

    finding = diagnosis(a_pod(initContainerStatuses=[agent]), ())

    assert finding is not None
    assert finding.reason == "ImagePull"
    assert "r.io/a:1" in finding.message
    assert "agent.image" in finding.message


def loading(started: str, finished: str) -> dict[str, Any]:
    """Container statuses of an engine that was killed once and loads again."""
    last = {"exitCode": 137, "reason": "Error", "startedAt": started, "finishedAt": finished}
    return {
        "containerStatuses": [
            {
                "name": "engine",
                "ready": False,
                "state": {"running": {"startedAt": finished}},
                "lastState": {"terminated": last},
            }
        ]
    }


def killing(at: str) -> dict[str, Any]:
    """Kubelet's event, as recorded from a real one."""
    return {
        "type": "Normal",
        "reason": "Killing",
        "message": "Container engine failed startup probe, will be restarted",
        "lastTimestamp": at,
    }


def test_an_engine_that_loads_too_long_is_told_apart_from_a_crash() -> None:
    pod = a_pod(**loading("2026-11-29T12:00:00Z", "2026-11-29T12:31:00Z"))

    too_long = diagnosis(pod, (killing("2026-11-29T12:30:05Z"),))
    crash = diagnosis(pod, (killing("2026-11-29T11:30:05Z"),))

    assert too_long is not None
    assert too_long.reason == "StartupTimeout"
    assert "raise spec.engine.startupTimeout" in too_long.message
    assert crash is not None
    assert crash.reason == "EngineCrash"


def test_the_next_kill_does_not_make_a_crash_of_the_one_before() -> None:
    pod = a_pod(**loading("2026-11-29T12:00:00Z", "2026-11-29T12:31:00Z"))
    twice = killing("2026-11-29T13:01:05Z") | {"firstTimestamp": "2026-11-29T12:30:05Z", "count": 2}

    finding = diagnosis(pod, (twice,))

    assert finding is not None
    assert finding.reason == "StartupTimeout"


def on_a_lost_node(reason: str = "") -> dict[str, Any]:
    """Conditions as the node controller leaves them, or a kubelet that gives a reason."""
    ready = {"type": "Ready", "status": "False"} | ({"reason": reason} if reason else {})
    return {
        "phase": "Running",
        "conditions": [ready, {"type": "ContainersReady", "status": "True"}],
        "containerStatuses": [{"name": "engine", "ready": True, "state": {"running": {}}}],
    }


def test_a_pod_on_a_lost_node_says_so() -> None:
    pod = a_pod(**on_a_lost_node())
    pod["spec"]["nodeName"] = "gpu-7"

    finding = diagnosis(pod, ())

    assert finding is not None
    assert finding.reason == "NodeLost"
    assert finding.message.startswith("node gpu-7 does not answer")


def test_a_pod_whose_gate_is_closed_is_on_no_lost_node() -> None:
    assert diagnosis(a_pod(**on_a_lost_node("ReadinessGatesNotReady")), ()) is None


AFTERMATH = (
    "\n[2026-11-29 23:41:02] Received sigquit from a child process. It usually means the child "
    "failed.\n[2026-11-29 23:41:02] kill_process_tree called: parent_pid=1, include_parent=True\n"
)


@pytest.mark.parametrize(
    ("code", "log", "reason", "says"),
    [
        (
            2,
            "sglang serve: error: argument --page-size: invalid int value: 'abc'",
            "BadEngineArgs",
            "argument --page-size: invalid int value: 'abc'",
        ),
        (
            2,
            (
                "sglang serve: error: argument --radix-eviction-policy: invalid choice: 'bogus' "
                "(choose from 'lru', 'lfu', 'slru', 'priority', 'tlru')"
            ),
            "BadEngineArgs",
            "choose from 'lru'",
        ),
        (
            1,
            "ValueError: speculative_eagle_topk(10) > 1 with page_size(16) > 1 is unstable",
            "EngineCrash",
            "page_size(16) > 1 is unstable",
        ),
        (
            1,
            "OSError: Repo id must use alphanumeric chars, '-', '_' or '.': '/model-missing'.",
            "ModelNotFound",
            "/model-missing",
        ),
        (
            1,
            "ValueError: Unrecognized model in /model. Should have a `model_type` key.",
            "ModelNotFound",
            "Unrecognized model",
        ),
        (
            137,
            "RuntimeError: Cannot find any model weights with `/model`\n" + AFTERMATH,
            "ModelNotFound",
            "Cannot find any model weights",
        ),
        (
            137,
            "RuntimeError: min_bfs_breadth must be less than or equal to max_bfs_breadth, "
            "current min_bfs_breadth: 5\n" + AFTERMATH,
            "EngineCrash",
            "min_bfs_breadth must be",
        ),
        (
            1,
            (
                "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9). If exit "
                "code is -9 (SIGKILL), a common cause is the OS OOM killer."
            ),
            "OutOfMemory",
            "spec.engine.resources.limits.memory",
        ),
    ],
)
def test_what_sglang_0_5_23_says_at_its_end_is_understood(
    code: int, log: str, reason: str, says: str
) -> None:
    """Recorded from the real engine."""
    finding = diagnosis(a_pod(**ended(code, log)), ())

    assert finding is not None
    assert (finding.reason, says in finding.message) == (reason, True)


def test_a_pod_that_is_starting_has_no_fault() -> None:
    assert diagnosis(a_pod(**waiting("ContainerCreating")), ()) is None


def test_events_tell_what_the_pod_does_not() -> None:
    events = (
        {"reason": "FailedMount", "message": 'configmap "c" not found', "lastTimestamp": "2"},
        {"reason": "BackOff", "message": "restarting", "lastTimestamp": "3"},
    )

    finding = diagnosis(a_pod(**waiting("ContainerCreating")), events)

    assert finding is not None
    assert (finding.reason, 'configmap "c"' in finding.message) == ("Volume", True)


def test_a_model_image_that_cannot_be_pulled_is_named() -> None:
    events = ({"reason": "Failed", "message": 'Failed to pull image "r.io/model:1": not found'},)

    finding = diagnosis(a_pod(**waiting("ContainerCreating")), events)

    assert finding is not None
    assert finding.message.startswith("cannot pull image r.io/model:1")


@pytest.mark.parametrize("reason", ["FailedMount", "Failed"])
def test_a_fault_that_has_healed_is_not_told_of_a_loading_engine(reason: str) -> None:
    running: dict[str, Any] = {
        "containerStatuses": [{"name": "engine", "ready": False, "state": {"running": {}}}]
    }
    events = ({"reason": reason, "message": 'Failed to pull image "r.io/x:1"'},)

    assert diagnosis(a_pod(**running), events) is None


def test_a_name_in_an_error_about_a_secret_is_kept() -> None:
    finding = diagnosis(
        a_pod(**waiting("CreateContainerConfigError", 'secret "hub" not found')), ()
    )

    assert finding is not None
    assert '"hub"' in finding.message


@pytest.mark.parametrize(
    ("log", "field"),
    [
        ("OSError: /model does not appear to have a file named config.json", "spec.model.source"),
        (
            "OSError: /draft-model does not appear to have a file named config.json",
            "spec.speculative",
        ),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: '/lora/sql/config.json'",
            "spec.model.loraAdapters",
        ),
    ],
)
def test_a_missing_model_is_told_by_the_field_of_its_source(log: str, field: str) -> None:
    finding = diagnosis(a_pod(**ended(1, log)), ())

    assert finding is not None
    assert (finding.reason, field in finding.message) == ("ModelNotFound", True)


def test_too_little_memory_for_the_cache_is_not_told_to_lower_the_share() -> None:
    log = "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."

    finding = diagnosis(a_pod(**ended(1, log)), ())

    assert finding is not None
    assert "Raise spec.engine.memory.fractionStatic" in finding.message


def test_the_time_of_a_log_line_is_not_part_of_the_fault() -> None:
    first = diagnosis(a_pod(**ended(1, "[2026-11-29 23:41:02 TP0] RuntimeError: boom: x")), ())
    second = diagnosis(a_pod(**ended(1, "[2026-11-29 23:59:59 TP0] RuntimeError: boom: x")), ())

    assert first == second


def test_pulling_and_backing_off_read_the_same() -> None:
    """Kubelet alternates between the two: status must not be written at each turn."""
    cause = 'failed to pull and unpack image "r.io/x:1": r.io/x:1: not found'
    first = waiting("ErrImagePull", cause)
    second = waiting(
        "ImagePullBackOff", f'Back-off pulling image "r.io/x:1": ErrImagePull: {cause}'
    )

    assert diagnosis(a_pod(**first), ()) == diagnosis(a_pod(**second), ())


@pytest.mark.parametrize(
    "secret",
    ["hf_abcdefghijklmnop", "sk-0123456789abcdef", "https://bob:hunter22@host/x"],
)
def test_secrets_are_redacted(secret: str) -> None:
    finding = diagnosis(a_pod(**ended(1, f"RuntimeError: bad credentials {secret}")), ())

    assert finding is not None
    assert secret not in finding.message
    assert "hunter22" not in finding.message
    assert "***" in finding.message


def test_a_secret_argument_is_redacted() -> None:
    finding = diagnosis(a_pod(**ended(1, "RuntimeError: --api-key=s3cretvalue is wrong")), ())

    assert finding is not None
    assert "s3cretvalue" not in finding.message


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (GPU, True),
        ("0/3 nodes are available: 3 Insufficient memory.", True),
        (CLAIM, False),
        ("0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.", False),
    ],
)
def test_only_a_shortage_counts_as_lack_of_room(message: str, expected: bool) -> None:
    assert lacks_room(a_pod(**unplaceable(message))) is expected
