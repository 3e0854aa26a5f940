"""Fields of a SGLangCluster, read back from the real engine that runs with them."""

from typing import Any

import pytest

from e2e.tests.kube import Manifest, Namespace, a_cluster
from sglang_controllers.api.reference import ENGINE_TESTED

SPEC: Manifest = {
    "model": {
        "servedName": "settings/model",
        "trustRemoteCode": True,
        "contextLength": 512,
        "chatTemplate": "chatml",
        "reasoningParser": "qwen3",
        "toolCallParser": "qwen",
    },
    "engine": {"memory": {"fractionStatic": 0.6}, "grammarBackend": "none"},
    "cache": {"eviction": {"policy": "slru", "slru": {"protectedThreshold": 3}}, "pageSize": 16},
    "scheduling": {
        "policy": "fcfs",
        "conservativeness": 0.7,
        "maxQueuedRequests": 32,
        "chunkedPrefillSize": 256,
        "priority": {
            "default": 2,
            "order": "low-first",
            "preemption": "disabled",
            "preemptionThreshold": 7,
        },
    },
}

READ_BACK: dict[str, tuple[str, Any]] = {
    "model.servedName": ("served_model_name", "settings/model"),
    "model.trustRemoteCode": ("trust_remote_code", True),
    "model.contextLength": ("context_length", 512),
    "model.chatTemplate": ("chat_template", "chatml"),
    "model.reasoningParser": ("reasoning_parser", "qwen3"),
    "model.toolCallParser": ("tool_call_parser", "qwen"),
    "engine.memory.fractionStatic": ("mem_fraction_static", 0.6),
    "engine.grammarBackend": ("grammar_backend", "none"),
    "cache.eviction.policy": ("radix_eviction_policy", "slru"),
    "cache.eviction.slru.protectedThreshold": (
        "radix_eviction_policy_config",
        {"protected_threshold": 3},
    ),
    "cache.pageSize": ("page_size", 16),
    "scheduling.policy": ("schedule_policy", "fcfs"),
    "scheduling.conservativeness": ("schedule_conservativeness", 0.7),
    "scheduling.maxQueuedRequests": ("max_queued_requests", 32),
    "scheduling.chunkedPrefillSize": ("chunked_prefill_size", 256),
    "scheduling.priority": ("enable_priority_scheduling", True),
    "scheduling.priority.default": ("default_priority_value", 2),
    "scheduling.priority.order": ("schedule_low_priority_values_first", True),
    "scheduling.priority.preemption": ("disable_priority_preemption", True),
    "scheduling.priority.preemptionThreshold": ("priority_scheduling_preemption_threshold", 7),
}


@pytest.fixture(scope="module")
def info(namespace: Namespace) -> Manifest:
    """What the engine says of itself."""
    namespace.apply(a_cluster("settings", **SPEC))
    namespace.wait_ready("settings")
    return namespace.server_info("settings")


@pytest.mark.parametrize("field", READ_BACK)
def test_a_field_is_in_the_real_engine(info: Manifest, field: str) -> None:
    argument, value = READ_BACK[field]

    assert info[argument] == value


def test_the_reference_calls_these_fields_engine_tested() -> None:
    assert set(READ_BACK) <= ENGINE_TESTED
