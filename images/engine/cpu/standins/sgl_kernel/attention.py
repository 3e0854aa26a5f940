"""The two attention operations of SGLang's intel_amx backend, as torch.ops.sgl_kernel.*."""

import torch
import torch.nn.functional as F

# Kept: an operation lives as long as its library object.
_library = torch.library.Library("sgl_kernel", "FRAGMENT")


def _refuse_unsupported(logit_cap, is_cross, sliding_window, sinks):
    """A wrong answer would go unnoticed."""
    if logit_cap > 0 or is_cross or sliding_window > 0 or sinks is not None:
        raise NotImplementedError(
            "attention with a logit cap, a sliding window, sinks or an encoder "
            "is not in the CPU engine's stand-in for sgl_kernel"
        )


def _attend(query, key, value, scale, mask):
    """Tensors are [batch, heads, tokens, size]; keys may have fewer heads than queries."""
    grouped = query.shape[1] != key.shape[1]
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, scale=scale, enable_gqa=grouped
    )


def _decode_attention(
    query,
    key_buffer,
    value_buffer,
    _key_scale,
    _value_scale,
    output,
    key,
    value,
    cache_loc,
    _logits,
    req_to_token,
    req_pool_indices,
    seq_lens,
    scale,
    logit_cap,
    is_cross,
    sliding_window,
    _encoder_lens,
    sinks,
):
    """One new token for each request; its key and value are stored first."""
    _refuse_unsupported(logit_cap, is_cross, sliding_window, sinks)
    if key is not None and value is not None:
        key_buffer[cache_loc] = key.view(-1, *key_buffer.shape[1:]).to(key_buffer.dtype)
        value_buffer[cache_loc] = value.view(-1, *value_buffer.shape[1:]).to(value_buffer.dtype)
    longest = max(int(seq_lens.max()), 1)
    valid = torch.arange(longest)[None] < seq_lens[:, None]
    slots = torch.where(valid, req_to_token[req_pool_indices.long(), :longest].long(), 0)
    result = _attend(
        query.unsqueeze(2),
        key_buffer[slots].transpose(1, 2).to(query.dtype),
        value_buffer[slots].transpose(1, 2).to(query.dtype),
        scale,
        valid[:, None, None, :],
    )
    output.copy_(result.transpose(1, 2).reshape(output.shape))


def _extend_mask(length, new, tree, is_causal):
    """Which of `length` tokens each of the `new` last ones attends to; None for all."""
    if tree is not None:
        return torch.cat([torch.ones(new, length - new, dtype=torch.bool), tree], 1)
    if is_causal:
        return torch.ones(new, length, dtype=torch.bool).tril_(length - new)
    return None


def _extend_attention(
    query,
    key,
    value,
    output,
    key_buffer,
    value_buffer,
    _key_scale,
    _value_scale,
    req_to_token,
    req_pool_indices,
    seq_lens,
    extend_lens,
    extend_start,
    _max_extend_len,
    scale,
    logit_cap,
    is_cross,
    sliding_window,
    _encoder_lens,
    sinks,
    tree_mask,
    is_causal,
):
    """Several new tokens for each request: a prompt, or drafts to verify (then with a tree mask)."""
    _refuse_unsupported(logit_cap, is_cross, sliding_window, sinks)
    trees = tree_mask.view(-1) if tree_mask is not None else None
    used = 0
    requests = zip(
        req_pool_indices.tolist(),
        seq_lens.tolist(),
        extend_lens.tolist(),
        extend_start.tolist(),
        strict=True,
    )
    for row, length, new, start in requests:
        slots = req_to_token[row, :length].long()
        keys = key_buffer[slots].to(query.dtype)
        values = value_buffer[slots].to(query.dtype)
        if key is not None and value is not None:
            keys[length - new :] = key.view(-1, *keys.shape[1:])[start : start + new]
            values[length - new :] = value.view(-1, *values.shape[1:])[start : start + new]
        tree = None
        if trees is not None:
            tree = trees[used : used + new * new].view(new, new)
            used += new * new
        result = _attend(
            query[start : start + new].transpose(0, 1)[None],
            keys.transpose(0, 1)[None],
            values.transpose(0, 1)[None],
            scale,
            _extend_mask(length, new, tree, is_causal),
        )
        output[start : start + new] = result[0].transpose(0, 1)


_library.define(
    "decode_attention_cpu(Tensor q, Tensor(a!) kb, Tensor(b!) vb, float ks, float vs, Tensor(c!) o,"
    " Tensor? k, Tensor? v, Tensor loc, Tensor(d!) logits, Tensor r2t, Tensor rpi, Tensor sl,"
    " float scale, float cap, bool cross, int sw, Tensor? enc, Tensor? sinks) -> ()"
)
_library.impl("decode_attention_cpu", _decode_attention, "CompositeExplicitAutograd")
_library.define(
    "extend_attention_cpu(Tensor q, Tensor? k, Tensor? v, Tensor(a!) o, Tensor kb, Tensor vb,"
    " float ks, float vs, Tensor r2t, Tensor rpi, Tensor sl, Tensor el, Tensor es, int mx,"
    " float scale, float cap, bool cross, int sw, Tensor? enc, Tensor? sinks, Tensor? tree_mask,"
    " bool is_causal) -> ()"
)
_library.impl("extend_attention_cpu", _extend_attention, "CompositeExplicitAutograd")
