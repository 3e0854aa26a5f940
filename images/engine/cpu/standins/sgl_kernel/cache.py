"""Which token of which request lies in which slot of the KV cache. Results are written into the arguments."""

import ctypes

import numpy as np
import torch


def assign_req_to_token_pool_cpu(
    req_pool_indices, req_to_token, start_offset, end_offset, out_cache_loc, _pool_len
):
    """Enter the new slots, which lie one request after the other, into each request's row."""
    taken = 0
    ranges = zip(req_pool_indices.tolist(), start_offset.tolist(), end_offset.tolist(), strict=True)
    for row, start, end in ranges:
        slots = out_cache_loc[taken : taken + end - start]
        req_to_token[row, start:end] = slots.to(req_to_token.dtype)
        taken += end - start


def assign_extend_cache_locs_cpu(
    req_pool_indices, req_to_token, start_offset, end_offset, out_cache_loc, _pool_len
):
    """The reverse: read a range of each request's row, one request after the other."""
    taken = 0
    ranges = zip(req_pool_indices.tolist(), start_offset.tolist(), end_offset.tolist(), strict=True)
    for row, start, end in ranges:
        slots = req_to_token[row, start:end]
        out_cache_loc[taken : taken + end - start] = slots.to(out_cache_loc.dtype)
        taken += end - start


def assign_draft_cache_locs_contiguous_cpu(
    req_pool_indices, req_to_token, seq_lens, out_cache_loc, _pool_len, topk, num_steps
):
    drafts = topk * num_steps
    for i, (row, start) in enumerate(
        zip(req_pool_indices.tolist(), seq_lens.tolist(), strict=True)
    ):
        slots = req_to_token[row, start : start + drafts]
        out_cache_loc[i * drafts : (i + 1) * drafts] = slots.to(out_cache_loc.dtype)


def build_draft_decode_metadata_cpu(
    req_to_token, req_pool_indices, seq_lens, topk, num_steps, pool_len
):
    """A row for each branch of each request: the committed prefix, then the branch's draft slots."""
    rows = torch.zeros(seq_lens.shape[0] * topk, pool_len, dtype=req_to_token.dtype)
    requests = zip(req_pool_indices.tolist(), seq_lens.tolist(), strict=True)
    for i, (request, length) in enumerate(requests):
        for branch in range(topk):
            row = rows[i * topk + branch]
            row[:length] = req_to_token[request, :length]
            first = length + branch * num_steps
            row[length : length + num_steps] = req_to_token[request, first : first + num_steps]
    return rows


def copy_all_layer_kv_cache_cpu(data_ptrs, strides, tgt_loc, src_loc):
    """Copy slots within each layer's buffer, given by its address and the bytes of a slot."""
    targets = tgt_loc.numpy().astype(np.int64)
    sources = src_loc.numpy().astype(np.int64)
    if targets.size == 0:
        return
    slots = int(max(targets.max(), sources.max())) + 1
    for address, stride in zip(data_ptrs.tolist(), strides.tolist(), strict=True):
        # Addresses come as signed integers.
        array_type = ctypes.c_uint8 * (slots * stride)
        layer = np.ctypeslib.as_array(array_type.from_address(address & (1 << 64) - 1))
        layer = layer.reshape(slots, stride)
        layer[targets] = layer[sources].copy()
