"""Benchmarks of SGLang's caches: the command `sglang-bench`."""
