"""What SGLang 0.5.23 refuses of typed settings together with other arguments.

Each check names the place in SGLang's source that it repeats, below `sglang/srt/arg_groups` if
not said otherwise. What depends on the hardware or on the model's configuration cannot be known
here: then the engine itself says it.
"""

from collections.abc import Iterator

from sglang_controllers.api import ClusterSpec
from sglang_controllers.api.cache import PrefixCaching
from sglang_controllers.api.files import KvCacheDtype
from sglang_controllers.api.problems import shown
from sglang_controllers.api.scheduling import OverlapMode, SchedulingPolicy
from sglang_controllers.exclusions import EXTRA, Flags, excluded
from sglang_controllers.parallelism import (
    attention_groups,
    replicas,
    stages,
    tensor,
    whole,
)
from sglang_controllers.speculation import on_cpu, speculation_problems

DEFAULT_CHUNKS = (2048, 4096, 8192, 16384)
"""memory_hook.py: what SGLang chooses, by the accelerator's memory."""

DEFAULT_LORAS_PER_BATCH = 8

NOT_WITH_PIPELINE: Flags = (
    ("enable-pdmux", bool),  # validation_hook.py, check_server_args
    ("min-free-slots-delay", lambda slots: slots is not None),  # check_pipeline_parallel_compat
    ("moe-dp-size", lambda size: size != 1),  # parallel_hook.py, handle_context_parallelism
    ("moe-data-parallel-size", lambda size: size != 1),
)
NOT_WITH_GROUPS: Flags = (
    ("enable-lmcache", bool),  # kv_cache_hook.py, handle_cache_compatibility
)
NOT_WITH_HICACHE: Flags = (
    ("enable-lmcache", bool),  # kv_cache_hook.py, handle_cache_compatibility
    ("enable-unified-cache-external-linker", bool),  # hicache_hook.py, handle_hicache
)
NOT_WITHOUT_PREFIXES: Flags = NOT_WITH_HICACHE  # the same two places

NEEDS_ACCELERATOR = (KvCacheDtype.MXFP8, KvCacheDtype.NVFP4, KvCacheDtype.FP4_MX_BLOCK16)
NVFP4_BACKENDS = ("flashinfer", "trtllm_mha")


def contradictions(spec: ClusterSpec) -> Iterator[str]:
    for check in (
        _accelerators,
        _attention,
        _experts,
        _pipeline,
        _pages,
        _cache,
        _kv_cache_dtype,
        _policy,
        _multiplexing,
        _lora,
        speculation_problems,
    ):
        yield from check(spec)


def _accelerators(spec: ClusterSpec) -> Iterator[str]:
    """server_args.py, compute_world_size: one device for each rank.

    The CRD's rule says the same without `extraArgs`, which may only lower the need.
    """
    groups = attention_groups(spec)
    if replicas(spec) > 1 and groups > 1:  # parallel_hook.py, handle_data_parallelism
        yield (
            f"spec.engine.parallelism.data: got {replicas(spec)}; excludes {EXTRA}.attn-dp-size, "
            f"which is {groups}; remove one of them, or write dpAttention: true and data: {groups}"
        )


def _attention(spec: ClusterSpec) -> Iterator[str]:
    """parallel_hook.py, handle_data_parallelism."""
    ranks, groups = tensor(spec), attention_groups(spec)
    if groups > 0 and ranks % groups:
        yield (
            f"spec.engine.parallelism.tensor: got {ranks}; must be a multiple of the attention's "
            f"data parallel size {groups}; change one of them"
        )
    if groups > 1:
        yield from excluded(spec, "engine.parallelism.dpAttention", NOT_WITH_GROUPS)
        return
    extra = spec.engine.extra_args
    alone = extra.get("moe-a2a-backend", "none") == "none"  # validation_hook.py
    needy = [
        # overrides.py, _dp_lm_head_validation; a single rank just ignores it
        *(["enable-dp-lm-head"] if replicas(spec) > 1 else []),
        *(["enable-two-batch-overlap"] if alone else []),
    ]
    for flag in needy:
        if extra.get(flag) is True:
            yield (
                f"{EXTRA}.{flag}: got true; it needs spec.engine.parallelism.dpAttention with data "
                "of at least 2; write them or remove it"
            )


def _experts(spec: ClusterSpec) -> Iterator[str]:
    """runtime_context.py, parallel_widths_of: tensor = expert x MoE data x MoE tensor."""
    extra = spec.engine.extra_args
    copies = whole(extra.get("moe-dp-size", extra.get("moe-data-parallel-size", 1))) or 1
    groups = spec.engine.parallelism.expert or 1
    if tensor(spec) % (groups * copies):
        yield (
            f"spec.engine.parallelism.expert: got {groups}; must divide spec.engine.parallelism."
            f"tensor, which is {tensor(spec)}; write 1 or {tensor(spec)}"
        )


def _pipeline(spec: ClusterSpec) -> Iterator[str]:
    if stages(spec) > 1:
        yield from excluded(spec, "engine.parallelism.pipeline", NOT_WITH_PIPELINE)


def _pages(spec: ClusterSpec) -> Iterator[str]:
    """validation_hook.py, check_server_args, after handle_data_parallelism has cut the chunk."""
    page, groups, chunk = (
        spec.cache.page_size or 1,
        attention_groups(spec),
        spec.scheduling.chunked_prefill_size,
    )
    if chunk is not None and chunk <= 0:
        return
    possible = DEFAULT_CHUNKS if chunk is None else (chunk,)
    if all((size // groups) % page for size in possible):
        good = max(possible[-1] // (page * groups), 1) * page * groups
        got = "unset" if chunk is None else f"got {chunk}"
        each = f" for each of {groups} attention groups" if groups > 1 else ""
        yield (
            f"spec.scheduling.chunkedPrefillSize: {got}; must be whole pages of {page} tokens"
            f"{each}; write {good} or change spec.cache.pageSize"
        )


def _cache(spec: ClusterSpec) -> Iterator[str]:
    if spec.cache.hi_cache is not None:
        yield from excluded(spec, "cache.hiCache", NOT_WITH_HICACHE)
    if spec.cache.prefix_caching is PrefixCaching.DISABLED:
        yield from excluded(spec, "cache.prefixCaching", NOT_WITHOUT_PREFIXES)


def _kv_cache_dtype(spec: ClusterSpec) -> Iterator[str]:
    """kv_cache_hook.py, handle_nvfp4_prefill_kv_dequant_dtype and what follows it."""
    dtype, backend = spec.model.kv_cache_dtype, spec.engine.attention_backend
    dequant = spec.engine.extra_args.get("prefill-kv-cache-dequant-dtype", "auto")
    if dtype in NEEDS_ACCELERATOR and on_cpu(spec):
        yield (
            f"spec.model.kvCacheDtype: got {shown(dtype)}; no CPU has this format; write auto or "
            "remove it"
        )
    elif dtype is KvCacheDtype.NVFP4 and backend is not None and backend not in NVFP4_BACKENDS:
        yield (
            f"spec.engine.attentionBackend: got {shown(backend)}; kvCacheDtype nvfp4 works with "
            "flashinfer and trtllm_mha; remove it or write one of them"
        )
    if dequant != "auto" and dtype is not KvCacheDtype.NVFP4:
        got = "unset" if dtype is None else f"got {shown(dtype)}"
        yield (
            f"spec.model.kvCacheDtype: {got}; {EXTRA}.prefill-kv-cache-dequant-dtype works with "
            "nvfp4 only; write nvfp4 or remove that flag"
        )


def _policy(spec: ClusterSpec) -> Iterator[str]:
    """validation_hook.py, check_server_args, and managers/schedule_policy.py."""
    policy = spec.scheduling.policy
    off = spec.cache.prefix_caching is PrefixCaching.DISABLED
    if off and policy is SchedulingPolicy.SHORTEST_PREFILL_FIRST:
        yield (
            f"spec.scheduling.policy: got {shown(policy)}; it needs prefix caching; remove "
            "spec.cache.prefixCaching or write fcfs"
        )
    retraction = spec.engine.extra_args.get("retraction-policy")
    if retraction == "priority" and spec.scheduling.priority is None:
        yield (
            f"spec.scheduling.priority: unset; {EXTRA}.retraction-policy: priority needs it; "
            "write priority: {} or remove that flag"
        )


def _multiplexing(spec: ClusterSpec) -> Iterator[str]:
    """validation_hook.py, check_server_args. Pipeline stages switch overlap off by themselves."""
    if not spec.engine.extra_args.get("enable-pdmux") or stages(spec) > 1:
        return
    mode, chunk = spec.scheduling.overlap.mode, spec.scheduling.chunked_prefill_size
    if mode is not OverlapMode.DISABLED:
        got = "unset" if mode is None else f"got {shown(mode)}"
        yield (
            f"spec.scheduling.overlap.mode: {got}; {EXTRA}.enable-pdmux works without overlap "
            "only; write disabled"
        )
    if chunk != -1:
        got = "unset" if chunk is None else f"got {chunk}"
        yield (
            f"spec.scheduling.chunkedPrefillSize: {got}; {EXTRA}.enable-pdmux works with whole "
            "prompts only; write -1"
        )


def _lora(spec: ClusterSpec) -> Iterator[str]:
    """lora_hook.py, check_lora_server_args."""
    extra, adapters = spec.engine.extra_args, len(spec.model.lora_adapters)
    enabled = extra.get("enable-lora") is True
    shaped = "max-lora-rank" in extra and "lora-target-modules" in extra
    if enabled and not adapters and not shaped:
        yield (
            f"spec.model.loraAdapters: unset; {EXTRA}.enable-lora needs adapters, or max-lora-rank "
            "and lora-target-modules; add an adapter or remove that flag"
        )
    if not adapters and not enabled:
        return
    loaded = whole(extra.get("max-loaded-loras"))
    batch = whole(extra.get("max-loras-per-batch")) or DEFAULT_LORAS_PER_BATCH
    if loaded is not None and loaded < max(batch, adapters):
        yield (
            f"{EXTRA}.max-loaded-loras: got {loaded}; must hold the {adapters} adapters and a "
            f"batch of {batch}; write {max(batch, adapters)} or remove it"
        )
    if extra.get("enable-lora-overlap-loading") is True and not 0 < (loaded or 0) <= 2 * batch:
        yield (
            f"{EXTRA}.max-loaded-loras: got {shown(loaded)}; enable-lora-overlap-loading needs it, "
            f"at most twice max-loras-per-batch; write {2 * batch}"
        )
