"""What NGRAM's verification needs of a tree that is given by its mask."""


def reconstruct_indices_from_tree_mask(
    tree_mask,
    verified_seq_len,
    positions,
    retrieve_index,
    retrieve_next_token,
    retrieve_next_sibling,
    batch_size,
    nodes,
):
    """Position, first child and next sibling of each node, written into the arguments; -1 where there is none."""
    masks = tree_mask[: batch_size * nodes * nodes].view(batch_size, nodes, nodes).bool().tolist()
    positions_out = positions.view(-1)
    for request, length in enumerate(verified_seq_len.tolist()):
        mask = masks[request]
        ancestors = [[node for node in range(i) if mask[i][node]] for i in range(nodes)]
        parents = [found[-1] if found else -1 for found in ancestors]
        for node in range(nodes):
            positions_out[request * nodes + node] = len(ancestors[node]) + length
            retrieve_index[request, node] = request * nodes + node
            later = range(node + 1, nodes)
            retrieve_next_token[request, node] = next((i for i in later if mask[i][node]), -1)
            retrieve_next_sibling[request, node] = next(
                (i for i in later if parents[i] == parents[node] >= 0), -1
            )
