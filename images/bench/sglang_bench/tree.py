"""SGLang's own radix tree on its Rust core, fed as the scheduler feeds it. A token stands for a block of a trace."""

import os
import warnings
from array import array
from collections.abc import Sequence

from sglang_agent.warming.prefixes import Prefixes, Stored
from sglang_bench.errors import BenchError

# The tree needs no GPU. SGLang warns of each kind of hardware that is not there.
os.environ.setdefault("SGLANG_USE_CPU_ENGINE", "1")
os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
warnings.simplefilter("ignore", UserWarning)
try:
    import torch
    from sglang.srt.disaggregation.kv_events import BlockRemoved, BlockStored
    from sglang.srt.mem_cache.allocator.token import TokenToKVPoolAllocator
    from sglang.srt.mem_cache.base_prefix_cache import (
        EvictParams,
        InsertParams,
        MatchPrefixParams,
    )
    from sglang.srt.mem_cache.cache_init_params import CacheInitParams
    from sglang.srt.mem_cache.radix_cache import RadixKey
    from sglang.srt.mem_cache.unified_cache.component_type import ComponentType
    from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache
except ImportError as error:
    raise BenchError(
        f"--trace: needs SGLang's own classes, which this Python has not ({error}); run it with a "
        "Python that has SGLang: images/README.md says how with that of `make engine-env`"
    ) from error


class Tree:
    def __init__(self, blocks: int) -> None:
        self._free = TokenToKVPoolAllocator(blocks, torch.int64, "cpu", None, need_sort=False)
        self._cache = UnifiedRadixCache(
            CacheInitParams(
                disable=False,
                req_to_token_pool=None,
                token_to_kv_pool_allocator=self._free,
                page_size=1,
                tree_components=(ComponentType.FULL,),
                enable_kv_cache_events=True,
            )
        )

    def serve(self, blocks: Sequence[int]) -> int:
        """Blocks that were there. All are afterwards, and others had to go where the tree was full."""
        key = RadixKey(array("q", blocks))
        match = self._cache.match_prefix(MatchPrefixParams(key=key))
        hits: int = match.device_prefix_len
        lock = self._cache.lock(match.last_device_node)
        missing = len(blocks) - hits
        self._cache.evict(EvictParams(num_tokens=max(0, missing - self._free.available_size())))
        new = self._free.alloc(missing)
        if new is None:
            raise BenchError(
                f"--blocks: got {self._free.size}; a request of the trace has {len(blocks)}; "
                "give the cache more"
            )
        there = self._cache.path_device_indices(match.last_device_node)[:hits]
        value = torch.cat((there, new))
        self._cache.insert(InsertParams(key=key, value=value, prev_prefix_len=hits))
        self._cache.unlock(lock)
        return hits

    def tell(self, prefixes: Prefixes, now_s: float) -> None:
        """What has come and gone since the last time, as an agent hears it."""
        for event in self._cache.take_events():
            match event:
                case BlockStored():
                    names, before = event.block_hashes, event.parent_block_hash
                    prefixes.store(Stored(names, before, event.token_ids), now_s)
                case BlockRemoved():
                    prefixes.remove(event.block_hashes)

    def check(self) -> None:
        """SGLang's own look at its tree: raises where it is broken."""
        self._cache.sanity_check()
