"""Flags that SGLang had before 0.5.23, and what does their work now."""

RENAMED: dict[str, str] = {
    "cuda-graph-bs": "cuda-graph-bs-decode",
    "cuda-graph-max-bs": "cuda-graph-max-bs-decode",
    "piecewise-cuda-graph-max-tokens": "cuda-graph-max-bs-prefill",
    "piecewise-cuda-graph-tokens": "cuda-graph-bs-prefill",
    "disable-piecewise-cuda-graph": "disable-prefill-cuda-graph",
    "enable-piecewise-cuda-graph": "cuda-graph-backend-prefill breakable",
    "enable-ep-moe": "ep-size",
    "enable-deepep-moe": "moe-a2a-backend deepep",
    "enable-flashinfer-cutlass-moe": "moe-runner-backend flashinfer_cutlass",
    "enable-flashinfer-trtllm-moe": "moe-runner-backend flashinfer_trtllm",
    "enable-flashinfer-mxfp4-moe": "moe-runner-backend flashinfer_mxfp4",
    "enable-triton-kernel-moe": "moe-runner-backend triton_kernel",
    "enable-flashinfer-mla": "attention-backend flashinfer",
    "enable-flashmla": "attention-backend flashmla",
    "fp4-gemm-runner-backend": "fp4-gemm-backend",
    "fp8-gemm-runner-backend": "fp8-gemm-backend",
    "nsa-decode-backend": "dsa-decode-backend",
    "nsa-prefill-backend": "dsa-prefill-backend",
    "schedule-heuristic": "schedule-policy",
    "speculative-ngram-max-match-window-size": "speculative-ngram-max-trie-depth",
}
"""Without dashes. A replacement may name the value that means the same."""
