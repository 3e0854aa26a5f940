"""The values that SGLang 0.5.23 offers for a flag, where its parser has a list of them.

Images with plugins offer more. A test compares this with the real parser.
"""

_CHOICES = """
    attention-backend decode-attention-backend prefill-attention-backend: aiter ascend
        compressed cutedsl_mla dsa dsv4 fa3 fa4 flashinfer flashmla flex_attention hpc_ops
        intel_amx intel_xpu llada2_cfg_flashinfer minicpm_flashattn minicpm_flashinfer nsa qsa
        tokenspeed_mla torch_native triton trtllm_mha trtllm_mla wave

    bf16-gemm-backend: auto cutedsl gemv torch

    boundary-reduction: ar auto rs rs+rsv rsv

    cp-strategy: interleave zigzag

    cuda-graph-backend-decode cuda-graph-backend-prefill: breakable disabled full

    dcp-comm-backend: a2a ag_rs fi_a2a

    decoupled-spec-role: drafter null verifier

    deepep-dispatcher-output-dtype: auto bf16 fp8 int8 nvfp4

    deepep-mode: auto low_latency normal

    deepep-v2-mode: direct hybrid

    disaggregation-decode-allocation-policy: early prefill_complete

    disaggregation-decode-retraction-backup: cpu_tensor host_pool none

    disaggregation-mode: decode null prefill

    disaggregation-transfer-backend: ascend fake mooncake mooncake_tcp mori nixl

    dsa-decode-backend: aiter fa3 flashinfer_sparse_mla flashmla_auto flashmla_kv
        flashmla_sparse flashmla_sparse_q8 intel_xpu tilelang triton trtllm

    dsa-paged-mqa-logits-backend: aiter auto cutedsl deepgemm

    dsa-prefill-backend: aiter fa3 flashinfer_sparse_mla flashmla_auto flashmla_kv
        flashmla_sparse flashmla_sparse_q8 intel_xpu tilelang triton triton_sparse_mla trtllm

    dsa-topk-backend speculative-dsa-topk-backend: flashinfer sgl-kernel torch

    dsa-triton-union: 0 2 4

    dsv4-attn-backend: auto flashmla flashmla_mega trtllm

    dsv4-prefill-backend: auto flashmla_sparse flashmla_sparse_q8

    dtype: auto bfloat16 float float16 float32 half

    elastic-ep-backend: mooncake nixl none

    elastic-ep-join-mode: recover scale

    encoder-transfer-backend: auto mooncake zmq_to_scheduler zmq_to_tokenizer

    ep-dispatch-algorithm: dynamic fake lp static

    expert-balancedness-report-mode: both off prometheus server_log

    expert-distribution-recorder-mode: per_pass per_token stat stat_approx

    flashinfer-a2a-dispatch-type: auto bf16 mxfp8 nvfp4

    flashinfer-allreduce-fusion-backend: auto cutedsl mnnvl trtllm

    flashinfer-mxfp4-moe-precision: bf16 default fp8

    fp4-gemm-backend: auto flashinfer_cudnn flashinfer_cutedsl flashinfer_cutlass
        flashinfer_trtllm marlin

    fp8-gemm-backend: aiter auto cutlass deep_gemm flashinfer_cutedsl flashinfer_cutlass
        flashinfer_deepgemm flashinfer_trtllm triton

    fuseep-mode: 1 2

    grammar-backend: llguidance none outlines xgrammar

    hicache-host-memory-mode: buffer_only cache

    hicache-io-backend: direct kernel kernel_ascend

    hicache-mem-layout: layer_first page_first page_first_direct page_first_kv_split page_head

    hicache-storage-backend: aibrix dynamic eic file hf3fs mooncake mori nixl npu_memcache
        seaweedfs shm sim simm tensorcast

    hicache-storage-prefetch-policy: best_effort timeout wait_complete

    hicache-write-policy: write_back write_through write_through_selective

    image-processor-backend: auto pil torchvision

    kv-cache-dtype: auto bf16 bfloat16 fp4_mx_block16 fp8_e4m3 fp8_e5m2 mxfp8 nvfp4

    kv-canary: log none raise

    kv-canary-real-data: all none partial

    linear-attn-backend linear-attn-decode-backend linear-attn-prefill-backend: cutedsl
        flashinfer flashkda helion intel_xpu nvidia_kda ptx_kda triton

    linear-attn-verify-backend: cutedsl flashinfer flashkda helion intel_xpu nv_cutedsl
        nvidia_kda ptx_kda triton

    load-balance-method: auto follow_bootstrap_room round_robin total_requests total_tokens

    load-format speculative-draft-load-format: auto bitsandbytes dummy expert_pack
        fastsafetensors flash_rl gguf instanttensor layered mistral npcache presharded private
        pt remote remote_instance runai_streamer safetensors sharded_state

    log-requests-format: json text

    log-requests-level: 0 1 2 3

    lora-backend: ascend csgmv torch_native triton triton_v2

    lora-eviction-policy: fifo lru

    lora-target-modules: all down_proj embed_tokens gate_proj gate_up_proj k_proj
        kv_a_proj_with_mqa kv_b_proj lm_head o_proj q_a_proj q_b_proj q_proj qkv_proj qkvr
        up_proj v_proj weights_proj wk wo_ud wq_b

    mamba-backend: flashinfer triton

    mamba-radix-cache-strategy: auto extra_buffer extra_buffer_lazy no_buffer

    mamba-ssm-dtype: bfloat16 float16 float32

    max-lora-chunk-size: 128 16 32 64

    mm-attention-backend: aiter_attn amx_attn ascend_attn fa3 fa4 flashinfer_cudnn sdpa
        triton_attn xpu_attn

    mm-feature-transport: cpu cuda_ipc cuda_vmm

    mm-global-cache-backend: mooncake

    moe-a2a-backend: ascend_fuseep ascend_tp deepep deepep_v2 flashinfer flashinfer_megamoe
        megamoe mooncake mori nixl none pplx

    moe-runner-backend speculative-moe-runner-backend: aiter auto cutlass deep_gemm
        experimental_sgl_marlin experimental_sgl_trtllm flashinfer_cutedsl flashinfer_cutlass
        flashinfer_megamoe flashinfer_mxfp4 flashinfer_trtllm flashinfer_trtllm_routed hpc_ops
        humming intel_xpu lora_cutedsl lora_marlin lora_triton marlin megamoe triton
        triton_kernel

    monokernel-backend: amd

    ple-offload-backend: file pinned

    prefill-kv-cache-dequant-dtype: auto fp8_e4m3 nvfp4

    qsa-indexer-dtype: auto bfloat16 fp8_e4m3

    quantization speculative-draft-model-quantization: auto-round auto-round-int8 awq awq_marlin
        bitsandbytes compressed-tensors fp8 gguf gptq gptq_marlin humming mlx_q4 mlx_q8 modelopt
        modelopt_fp4 modelopt_fp8 modelopt_mixed modelslim moe_wna16 mxfp4 mxfp8 mxfp_w4a8
        nvfp4_online petit_nvfp4 quark quark_int4fp8_moe quark_mxfp4 unquant w4afp8 w8a8_fp8
        w8a8_int8

    radix-eviction-policy: lfu lru priority slru tlru

    reasoning-parser: apertus2509 auto beam cohere_command4 deepseek-r1 deepseek-v3 deepseek-v4
        deepseek-v41 dots gemma4 gigachat35 glm45 gpt-oss granite_thinking_parser hunyuan
        inkling interns1 iquest_q1 k2_horizon kimi kimi_k2 kimi_k3 ling3 mimo minimax
        minimax-append-think minimax-m3 mistral muse nanbeige nemotron_3 poolside_v1 qwen3
        qwen3-thinking response_template step3 step3p5

    remote-instance-weight-loader-backend: modelexpress nccl transfer_engine

    retraction-policy: length priority

    return-hidden-states-mode: full last

    rl-on-policy-target: fsdp

    sampling-backend: ascend flashinfer intel_xpu pytorch

    sampling-defaults: model openai

    schedule-policy: dfs-weight fcfs hrrn lof lpm priority random routing-key
        shortest-prefill-first

    speculative-attention-mode: decode prefill

    speculative-draft-kv-cache-dtype: auto bf16 bfloat16 fp8_e4m3 fp8_e5m2

    speculative-moe-a2a-backend: ascend_fuseep ascend_tp deepep deepep_v2 flashinfer megamoe
        mooncake mori nixl none pplx

    speculative-ngram-match-type: BFS PROB

    startup-weight-load-mode: overlap serial

    tokenizer-backend: fastokens huggingface

    tokenizer-mode: auto slow

    tool-call-parser: apertus2509 auto beam cohere_command4 deepseekv3 deepseekv31 deepseekv32
        deepseekv4 deepseekv41 dots gemma4 gigachat3 gigachat35 glm glm45 glm47 gpt-oss hermes
        hunyuan inkling interns1 iquest_q1 k2_horizon kimi_k2 kimi_k3 lfm2 ling3 llama3 mimo
        minicpm5 minimax-m2 minimax-m3 mistral muse nanbeige poolside_v1 pythonic qwen qwen25
        qwen3_coder response_template spark25 step3 step3p5 trinity

    unified-cache-external-linker-backend: dynamic mooncake mori

    weight-cache-mode: client daemon off
"""
"""Paragraphs of flags, a colon, and what each of them may be."""


def _choices(text: str) -> dict[str, tuple[str, ...]]:
    paragraphs = (paragraph.partition(":") for paragraph in text.strip().split("\n\n"))
    return {flag: tuple(v.split()) for flags, _, v in paragraphs for flag in flags.split()}


CHOICES = _choices(_CHOICES)
