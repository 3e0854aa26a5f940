"""What SGLang 0.5.23 refuses of speculative decoding together with other settings.

The places are in `sglang/srt/arg_groups/speculative_hook.py` if not said otherwise.
"""

from collections.abc import Iterator

from sglang_controllers.api import ClusterSpec
from sglang_controllers.api.settings import EAGLE, NEXTN, NGRAM, STANDALONE
from sglang_controllers.api.speculative import Drafting, Eagle, Nextn
from sglang_controllers.exclusions import EXTRA, Flags, excluded
from sglang_controllers.parallelism import attention_groups, stages, whole

DEFAULT_MAX_BFS_BREADTH = 10
DEFAULT_DRAFT_TOKENS = 12

TREE_BACKENDS = ("flashinfer", "fa3", "triton")
"""_handle_eagle_family: attention kernels that verify a tree in pages."""

NOT_WITH_ANY: Flags = (
    ("enable-lmcache", bool),  # kv_cache_hook.py, handle_cache_compatibility
    ("weight-cache-mode", lambda mode: mode != "off"),  # model_path_hook.py
    ("dwdp-size", lambda size: size != 1),  # parallel_hook.py, handle_dwdp
)
NOT_WITH: dict[str, Flags] = {
    NGRAM: (
        ("enable-unified-memory", bool),  # kv_cache_hook.py, handle_unified_memory_pool
        ("device", lambda device: device not in ("cuda", "cpu", "xpu")),  # _handle_ngram
        ("speculative-use-block-verification", bool),  # handle_speculative_decoding
    ),
    STANDALONE: (
        ("enable-unified-memory", bool),
        ("speculative-use-block-verification", bool),
        ("speculative-use-rejection-sampling", bool),  # _handle_eagle_family
        ("enable-watermark", bool),  # validation_hook.py, check_watermark_server_args
    ),
    EAGLE: (),
    NEXTN: (),
}
"""Beside NOT_WITH_ANY."""

NOT_WITH_TREE: Flags = (
    ("enable-unified-memory", bool),  # kv_cache_hook.py, handle_unified_memory_pool
    ("speculative-use-rejection-sampling", bool),  # _handle_eagle_family
)


def on_cpu(spec: ClusterSpec) -> bool:
    return spec.engine.accelerator.count == 0 or spec.engine.extra_args.get("device") == "cpu"


def speculation_problems(spec: ClusterSpec) -> Iterator[str]:
    union = spec.speculative
    drafting: dict[str, Drafting | None] = {
        EAGLE: union.eagle,
        NEXTN: union.nextn,
        STANDALONE: union.standalone,
    }
    if union.ngram is not None:
        yield from _combined(spec, NGRAM)
        yield from _ngram_pages(spec, union.ngram.max_bfs_breadth or DEFAULT_MAX_BFS_BREADTH)
        yield from _ngram_corpus(spec, union.ngram.num_draft_tokens or DEFAULT_DRAFT_TOKENS)
    for member, draft in drafting.items():
        if draft is not None:
            yield from _combined(spec, member)
            yield from _tree(spec, member, draft)
            yield from _adapters(spec, member, draft)


def _combined(spec: ClusterSpec, member: str) -> Iterator[str]:
    yield from excluded(spec, member, NOT_WITH_ANY + NOT_WITH[member])
    if stages(spec) > 1 and not (member in (EAGLE, NEXTN) and _staged_drafts(spec)):
        # validation_hook.py, check_pipeline_parallel_compat
        yield f"spec.{member}: excludes pipeline parallelism; remove one of them"
    if attention_groups(spec) > 1 and member in (NGRAM, STANDALONE):
        # _handle_ngram and _handle_eagle_family
        yield f"spec.{member}: excludes data parallel attention; remove one of them"
    if spec.cache.hi_cache is not None and (whole(spec.engine.extra_args.get("dcp-size")) or 1) > 1:
        # hicache_hook.py, resolve_hicache_dcp_compatibility
        yield f"spec.{member}: excludes hiCache with {EXTRA}.dcp-size; remove one of them"


def _staged_drafts(spec: ClusterSpec) -> bool:
    """SGLang's switch for EAGLE in pipeline stages."""
    return any(
        variable["name"] == "SGLANG_ENABLE_PP_SPEC" and variable.get("value") not in (None, "0")
        for variable in spec.engine.env
    )


def _tree(spec: ClusterSpec, member: str, draft: Drafting) -> Iterator[str]:
    """_handle_eagle_family. Without a shape SGLang chooses one by the model."""
    if (draft.topk or 1) == 1:
        return
    page, backend = spec.cache.page_size or 1, spec.engine.attention_backend
    field = f"spec.{member}.topk"
    if page > 1 and (backend not in TREE_BACKENDS if backend else on_cpu(spec)):
        yield (
            f"{field}: got {draft.topk}; a tree is verified with page size 1, or with the "
            f"attention backends {', '.join(TREE_BACKENDS)}; write 1 or remove spec.cache.pageSize"
        )
    if backend == "trtllm_mha":
        yield f"{field}: got {draft.topk}; the attention backend trtllm_mha takes 1 only; write 1"
    yield from excluded(spec, f"{member}.topk", NOT_WITH_TREE)


def _adapters(spec: ClusterSpec, member: str, draft: Drafting) -> Iterator[str]:
    """lora_hook.py, check_lora_speculative_compatibility."""
    if not spec.model.lora_adapters and spec.engine.extra_args.get("enable-lora") is not True:
        return
    if not isinstance(draft, Eagle | Nextn):
        yield (
            f"spec.{member}: excludes LoRA adapters; remove them or draft with ngram, eagle or "
            "nextn"
        )
    elif spec.engine.extra_args.get("speculative-adaptive"):
        yield f"{EXTRA}.speculative-adaptive: excludes LoRA adapters; remove one of them"


def _ngram_pages(spec: ClusterSpec, breadth: int) -> Iterator[str]:
    """_handle_ngram.

    Without a backend in the arguments SGLang chooses one: on the CPU never flashinfer, on an
    accelerator often.
    """
    page, backend = spec.cache.page_size or 1, spec.engine.attention_backend
    if page > 1 and breadth > 1 and (backend != "flashinfer" if backend else on_cpu(spec)):
        yield (
            f"spec.cache.pageSize: got {page}; NGRAM drafts a tree (maxBfsBreadth {breadth}), "
            "which SGLang verifies only with page size 1 or the attention backend flashinfer; "
            "remove pageSize or write spec.speculative.ngram.maxBfsBreadth: 1"
        )


def _ngram_corpus(spec: ClusterSpec, draft_tokens: int) -> Iterator[str]:
    """_handle_ngram."""
    extra = spec.engine.extra_args
    budget = whole(extra.get("speculative-ngram-external-sam-budget", 0))
    if "speculative-ngram-external-corpus-path" not in extra or budget is None:
        return
    if not 0 < budget < draft_tokens:
        yield (
            f"{EXTRA}.speculative-ngram-external-sam-budget: got {budget}; with a corpus it must "
            f"be from 1 to {draft_tokens - 1}, one less than numDraftTokens; write "
            f"{max(draft_tokens // 2, 1)}"
        )
