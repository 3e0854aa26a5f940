"""Trees of draft tokens: building and verifying them. Results are written into the arguments."""

import torch

FULL_MASK = 0
"""TreeMaskMode.FULL_MASK: the mask covers the prefix too, not the drafts alone."""


def fill_bonus_tokens_cpu(accept_tokens, accept_lens, bonus_tokens, accept_stride):
    """The last accepted token of each request."""
    size = bonus_tokens.shape[0]
    last = torch.arange(size) * accept_stride + accept_lens[:size].long() - 1
    bonus_tokens.copy_(accept_tokens.reshape(-1)[last])


def fill_accept_out_cache_loc_cpu(accept_index, out_cache_loc, accept_out_cache_loc):
    accepted = accept_index.reshape(-1)
    accepted = accepted[accepted > -1].long()
    accept_out_cache_loc[: accepted.numel()] = out_cache_loc[accepted]


def rotate_input_ids_cpu(input_ids, start_loc, seq_lens, topk_index, select_index=None):
    """Shift each request's tokens left by one and put its new token at the end."""
    new = topk_index.reshape(-1)
    ranges = zip(start_loc.tolist(), seq_lens.tolist(), strict=True)
    for i, (start, length) in enumerate(ranges):
        if length > 0:
            shifted = input_ids[start + 1 : start + length].clone()
            input_ids[start : start + length - 1] = shifted
            last = int(select_index[i]) if select_index is not None else start + length - 1
            input_ids[last] = new[i]


def _parents(selected, parent_list, topk, nodes):
    """Node -> its parent; -1 for the root and for a node whose parent was not selected."""
    parents = [-1] * nodes
    for node in range(1, nodes):
        group = selected[node - 1] // topk
        if group == 0:
            parents[node] = 0
        elif parent_list[group] in selected:
            parents[node] = selected.index(parent_list[group]) + 1
    return parents


def _link(parents, child, sibling):
    """Enter each node's first child and next sibling, from the last node to the first."""
    first_child = [-1] * len(parents)
    for node in range(len(parents) - 1, 0, -1):
        parent = parents[node]
        if parent >= 0:
            if first_child[parent] != -1:
                sibling[node] = first_child[parent]
            child[parent] = node
            first_child[parent] = node


def _ancestor_mask(parents):
    """Which nodes each node attends to (itself, its ancestors, the root), and how deep it lies."""
    nodes = len(parents)
    mask = torch.zeros(nodes, nodes, dtype=torch.bool)
    depths = []
    for node in range(nodes):
        depth, at = 0, node
        while at > 0:
            mask[node, at] = True
            depth += 1
            at = parents[at]
        mask[node, 0] = True
        depths.append(depth)
    return mask, depths


def build_tree_kernel_efficient_cpu(
    parent_list,
    selected_index,
    seq_lens,
    tree_mask,
    positions,
    retrieve_index,
    retrieve_next_token,
    retrieve_next_sibling,
    topk,
    _depth,
    nodes,
    tree_mask_mode,
):
    requests = seq_lens.shape[0]
    selected = selected_index.reshape(requests, -1).tolist()
    parent_lists = (
        parent_list.reshape(requests, -1).tolist() if parent_list.numel() else [[]] * requests
    )
    mask_out, positions_out = tree_mask.view(-1), positions.view(-1)
    index, child, sibling = (
        tensor.view(-1) for tensor in (retrieve_index, retrieve_next_token, retrieve_next_sibling)
    )
    written = 0
    for request, length in enumerate(seq_lens.tolist()):
        parents = _parents(selected[request], parent_lists[request], topk, nodes)
        base = request * nodes
        _link(parents, child[base : base + nodes], sibling[base : base + nodes])
        mask, depths = _ancestor_mask(parents)
        positions_out[base : base + nodes] = torch.tensor(depths) + length
        index[base : base + nodes] = torch.arange(base, base + nodes)
        if int(tree_mask_mode) == FULL_MASK:
            width = length + nodes
            rows = mask_out[written : written + nodes * width].view(nodes, width)
            rows[:, length:] = mask
            written += nodes * width
        else:
            mask_out[base * nodes : (base + nodes) * nodes] = mask.reshape(-1)


def verify_tree_greedy_cpu(
    predicts,
    accept_index,
    accept_token_num,
    candidates,
    retrive_index,
    retrive_next_token,
    retrive_next_sibling,
    target_predict,
):
    """Walk down each tree for as long as a child is the token that the model itself predicts."""
    predicted = target_predict.reshape(-1).tolist()
    tokens, index = candidates.tolist(), retrive_index.tolist()
    children, siblings = retrive_next_token.tolist(), retrive_next_sibling.tolist()
    for request in range(candidates.shape[0]):
        accepted, last = 0, index[request][0]
        accept_index[request, 0] = last
        node = children[request][0]
        while node != -1 and accepted + 1 < accept_index.shape[1]:
            if tokens[request][node] != predicted[last]:
                node = siblings[request][node]
                continue
            predicts[last] = predicted[last]
            accepted += 1
            last = index[request][node]
            accept_index[request, accepted] = last
            node = children[request][node]
        accept_token_num[request] = accepted
        predicts[last] = predicted[last]
