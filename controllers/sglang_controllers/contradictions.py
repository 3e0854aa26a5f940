"""What SGLang 0.5.23 refuses of typed settings together with other arguments.

Each check names the place in SGLang's source that it repeats, below `sglang/srt/arg_groups` if
not said otherwise. What depends on the hardware or on the model's configuration cannot be known
here: then the engine itself says it.
"""

from collections.abc import Callable, Iterator
from typing import Any

from sglang_controllers.api import ClusterSpec
from sglang_controllers.api.problems import shown
from sglang_controllers.api.spec import EvictionPolicy, OverlapMode, SchedulingPolicy

DEFAULT_MAX_BFS_BREADTH = 10
DEFAULT_DRAFT_TOKENS = 12

EXTRA = "spec.engine.extraArgs"
DATA_PARALLEL = ("dp-size", "data-parallel-size", "dp")
PIPELINE_PARALLEL = ("pp-size", "pipeline-parallel-size")
ATTENTION_DATA_PARALLEL = ("attn-dp-size", "attention-data-parallel-size")

NOT_WITH_NGRAM: tuple[tuple[str, Callable[[Any], bool]], ...] = (
    ("enable-lmcache", bool),  # kv_cache_hook.py, handle_cache_compatibility
    ("enable-unified-memory", bool),  # kv_cache_hook.py, handle_unified_memory_pool
    ("weight-cache-mode", lambda mode: mode != "off"),  # model_path_hook.py
    ("dwdp-size", lambda size: size != 1),  # parallel_hook.py, handle_dwdp
    ("device", lambda device: device not in ("cuda", "cpu", "xpu")),  # speculative_hook.py
)


def contradictions(spec: ClusterSpec) -> Iterator[str]:
    for check in (_accelerators, _attention, _pages, _eviction, _policy, _overlap, _ngram):
        yield from check(spec)


def _accelerators(spec: ClusterSpec) -> Iterator[str]:
    """server_args.py, compute_world_size: replicas x tensor x pipeline ranks, one device each."""
    count = spec.engine.accelerator.count
    tensor, replicas = _tensor(spec), _data_replicas(spec)
    stages = _size(spec, PIPELINE_PARALLEL)
    needed = tensor * replicas * stages
    held = tensor if count is None else count
    if held and held < needed:
        got = "unset" if count is None else f"got {count}"
        yield (
            f"spec.engine.accelerator.count: {got}; tensor {tensor} x data {replicas} x pipeline "
            f"{stages} needs {needed}; write {needed}"
        )


def _attention(spec: ClusterSpec) -> Iterator[str]:
    """parallel_hook.py, handle_context_parallelism."""
    tensor, groups = _tensor(spec), _attention_groups(spec)
    if groups > 0 and tensor % groups:
        yield (
            f"spec.engine.parallelism.tensor: got {tensor}; must be a multiple of the attention's "
            f"data parallel size {groups}; change one of them"
        )


def _pages(spec: ClusterSpec) -> Iterator[str]:
    """validation_hook.py, check_server_args."""
    chunk = _whole(spec.engine.extra_args.get("chunked-prefill-size"))
    page = spec.cache.page_size
    if page and chunk and chunk > 0 and chunk % page:
        yield (
            f"spec.cache.pageSize: got {page}; must divide {EXTRA}.chunked-prefill-size, which is "
            f"{chunk}; write {max(chunk // page, 1) * page} there or change the page size"
        )


def _eviction(spec: ClusterSpec) -> Iterator[str]:
    """mem_cache/utils.py, get_eviction_strategy: the others take no settings."""
    policy = spec.cache.eviction.policy
    if "radix-eviction-policy-config" in spec.engine.extra_args and policy != EvictionPolicy.SLRU:
        got = "unset" if policy is None else f"got {shown(policy)}"
        yield (
            f"spec.cache.eviction.policy: {got}; only slru takes {EXTRA}."
            "radix-eviction-policy-config; remove that or write slru"
        )


def _policy(spec: ClusterSpec) -> Iterator[str]:
    """validation_hook.py, check_server_args, and managers/schedule_policy.py."""
    policy, extra = spec.scheduling.policy, spec.engine.extra_args
    by_priority = (None, SchedulingPolicy.FCFS, SchedulingPolicy.LOF)
    if extra.get("enable-priority-scheduling") and policy not in by_priority:
        yield (
            f"spec.scheduling.policy: got {shown(policy)}; {EXTRA}.enable-priority-scheduling "
            "works with fcfs and lof; write one of them or remove that flag"
        )
    if extra.get("disable-radix-cache") and policy == SchedulingPolicy.SHORTEST_PREFILL_FIRST:
        yield (
            f"spec.scheduling.policy: got {shown(policy)}; it needs the prefix cache; remove "
            f"{EXTRA}.disable-radix-cache or write fcfs"
        )


def _overlap(spec: ClusterSpec) -> Iterator[str]:
    """validation_hook.py, check_server_args."""
    mode = spec.scheduling.overlap.mode
    if spec.engine.extra_args.get("enable-pdmux") and mode != OverlapMode.DISABLED:
        got = "unset" if mode is None else f"got {shown(mode)}"
        yield (
            f"spec.scheduling.overlap.mode: {got}; {EXTRA}.enable-pdmux works without overlap "
            "only; write disabled"
        )


def _ngram(spec: ClusterSpec) -> Iterator[str]:
    ngram, extra = spec.speculative.ngram, spec.engine.extra_args
    if ngram is None:
        return
    yield from _ngram_pages(spec, ngram.max_bfs_breadth or DEFAULT_MAX_BFS_BREADTH)
    yield from _ngram_corpus(spec, ngram.num_draft_tokens or DEFAULT_DRAFT_TOKENS)
    for flag, refused in NOT_WITH_NGRAM:
        if flag in extra and refused(extra[flag]):
            yield (
                f"spec.speculative.ngram: excludes {EXTRA}.{flag}: {shown(extra[flag])}; "
                "remove one of them"
            )
    if _size(spec, PIPELINE_PARALLEL) > 1:  # validation_hook.py, check_pipeline_parallel_compat
        yield "spec.speculative.ngram: excludes pipeline parallelism; remove one of them"
    if _attention_groups(spec) > 1:  # speculative_hook.py, _handle_ngram
        yield "spec.speculative.ngram: excludes data parallel attention; remove one of them"


def _ngram_pages(spec: ClusterSpec, breadth: int) -> Iterator[str]:
    """speculative_hook.py, _handle_ngram.

    Without a backend in the arguments SGLang chooses one: on the CPU never flashinfer, on an
    accelerator often.
    """
    page = spec.cache.page_size or 1
    backend = spec.engine.extra_args.get("attention-backend")
    on_cpu = spec.engine.accelerator.count == 0 or spec.engine.extra_args.get("device") == "cpu"
    if page > 1 and breadth > 1 and (backend != "flashinfer" if backend else on_cpu):
        yield (
            f"spec.cache.pageSize: got {page}; NGRAM drafts a tree (maxBfsBreadth {breadth}), "
            "which SGLang verifies only with page size 1 or the attention backend flashinfer; "
            "remove pageSize or write spec.speculative.ngram.maxBfsBreadth: 1"
        )


def _ngram_corpus(spec: ClusterSpec, draft_tokens: int) -> Iterator[str]:
    """speculative_hook.py, _handle_ngram."""
    extra = spec.engine.extra_args
    budget = _whole(extra.get("speculative-ngram-external-sam-budget", 0))
    if "speculative-ngram-external-corpus-path" not in extra or budget is None:
        return
    if not 0 < budget < draft_tokens:
        yield (
            f"{EXTRA}.speculative-ngram-external-sam-budget: got {budget}; with a corpus it must "
            f"be from 1 to {draft_tokens - 1}, one less than numDraftTokens; write "
            f"{max(draft_tokens // 2, 1)}"
        )


def _tensor(spec: ClusterSpec) -> int:
    return spec.engine.parallelism.tensor or 1


def _attention_groups(spec: ClusterSpec) -> int:
    """parallel_hook.py, handle_deprecated_dp_attention: dp-size counts groups with the old flag."""
    groups = _size(spec, ATTENTION_DATA_PARALLEL)
    if groups == 1 and spec.engine.extra_args.get("enable-dp-attention"):
        return _size(spec, DATA_PARALLEL)
    return groups


def _data_replicas(spec: ClusterSpec) -> int:
    old_flag = spec.engine.extra_args.get("enable-dp-attention")
    moved = old_flag and _size(spec, ATTENTION_DATA_PARALLEL) == 1
    return 1 if moved else _size(spec, DATA_PARALLEL)


def _size(spec: ClusterSpec, flags: tuple[str, ...]) -> int:
    """The first of `flags` that is given, 1 when none is or it is not a whole number."""
    extra = spec.engine.extra_args
    given = next((extra[flag] for flag in flags if flag in extra), 1)
    return max(_whole(given) or 1, 1)


def _whole(value: Any) -> int | None:
    """`value` as SGLang's parser reads a whole number, None when it cannot."""
    if isinstance(value, bool | None):
        return None
    try:
        return int(value) if isinstance(value, int | float | str) else None
    except (ValueError, OverflowError):
        return None
