"""How many ranks an engine has, and how they are grouped."""

from typing import Any

from sglang_controllers.api import ClusterSpec

ATTENTION_GROUPS = ("attn-dp-size", "attention-data-parallel-size")
"""SGLang's newer spelling of `dpAttention` with `data`. As an extra argument it wins."""


def tensor(spec: ClusterSpec) -> int:
    return spec.engine.parallelism.tensor or 1


def stages(spec: ClusterSpec) -> int:
    return spec.engine.parallelism.pipeline or 1


def attention_groups(spec: ClusterSpec) -> int:
    """parallel_hook.py, handle_deprecated_dp_attention: `data` counts groups with dpAttention."""
    return spec.engine.parallelism.data or 1 if _grouped(spec) else _given_groups(spec)


def replicas(spec: ClusterSpec) -> int:
    """Copies of the model in a pod."""
    return 1 if _grouped(spec) else spec.engine.parallelism.data or 1


def devices(spec: ClusterSpec) -> int:
    """server_args.py, compute_world_size: attention groups are inside the tensor ranks."""
    return replicas(spec) * tensor(spec) * stages(spec)


def _grouped(spec: ClusterSpec) -> bool:
    return bool(spec.engine.parallelism.dp_attention) and _given_groups(spec) == 1


def _given_groups(spec: ClusterSpec) -> int:
    extra = spec.engine.extra_args
    return max(whole(next((extra[f] for f in ATTENTION_GROUPS if f in extra), 1)) or 1, 1)


def whole(value: Any) -> int | None:
    """`value` as SGLang's parser reads a whole number, None when it cannot."""
    if isinstance(value, bool | None):
        return None
    try:
        return int(value) if isinstance(value, int | float | str) else None
    except (ValueError, OverflowError):
        return None
