"""Stands in for the CPU build of sgl_kernel, in PyTorch alone: the real one is not on PyPI and needs AMX.

It has the functions that SGLang 0.5.23 imports when SGLANG_USE_CPU_ENGINE=1 on a host without AMX. Each does what the
Triton kernel of the same name in sglang/kernels/ops does; names and order of parameters are those of the callers.
"""

from sgl_kernel import attention as _attention  # noqa: F401 - registers torch.ops.sgl_kernel
from sgl_kernel.cache import (
    assign_draft_cache_locs_contiguous_cpu,
    assign_extend_cache_locs_cpu,
    assign_req_to_token_pool_cpu,
    build_draft_decode_metadata_cpu,
    copy_all_layer_kv_cache_cpu,
)
from sgl_kernel.trees import (
    build_tree_kernel_efficient_cpu,
    fill_accept_out_cache_loc_cpu,
    fill_bonus_tokens_cpu,
    rotate_input_ids_cpu,
    verify_tree_greedy_cpu,
)

__version__ = "0.4.10"
__all__ = [
    "assign_draft_cache_locs_contiguous_cpu",
    "assign_extend_cache_locs_cpu",
    "assign_req_to_token_pool_cpu",
    "build_draft_decode_metadata_cpu",
    "build_tree_kernel_efficient_cpu",
    "copy_all_layer_kv_cache_cpu",
    "fill_accept_out_cache_loc_cpu",
    "fill_bonus_tokens_cpu",
    "rotate_input_ids_cpu",
    "verify_tree_greedy_cpu",
]
