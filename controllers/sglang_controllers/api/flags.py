"""Every flag of SGLang 0.5.23 and what it takes: a typo is found before a pod is made.

A test compares this with the real parser.
"""

from enum import StrEnum


class Takes(StrEnum):
    """What follows a flag."""

    SWITCH = "no value"
    WHOLE = "one whole number"
    DECIMAL = "one number"
    TEXT = "one value that SGLang reads itself"
    LIST = "one value or more"
    OPTIONAL = "any number of values, also none"


_FLAGS: dict[Takes, str] = {
    Takes.SWITCH: """
        abort-on-priority-when-disabled allow-auto-truncate
        checkpoint-engine-wait-weights-before-ready constrained-json-disable-any-whitespace
        dcp-replicate-q-proj debug-cuda-graph delete-ckpt-after-loading
        disable-aiter-allreduce-fusion-in-decode disable-aiter-allreduce-fusion-in-prefill
        disable-attn-tp-gather disable-chunked-prefix-cache disable-cuda-graph
        disable-cuda-graph-padding disable-custom-all-reduce disable-decode-cuda-graph
        disable-fast-image-processor disable-flashinfer-autotune
        disable-flashinfer-cutlass-moe-fp4-allgather disable-hybrid-swa-memory
        disable-outlines-disk-cache disable-overlap-schedule disable-prefill-cuda-graph
        disable-priority-preemption disable-radix-cache disable-shared-experts-fusion
        disable-tokenizer-batch-decode disaggregation-decode-enable-offload-kvcache
        disaggregation-decode-enable-radix-cache disaggregation-enable-kv-checksum dllm-fdfo
        enable-adaptive-dispatch-to-encoder enable-aiter-allreduce-fusion enable-amd-monokernel
        enable-attn-tp-input-scattered enable-broadcast-mm-inputs-process enable-cache-report
        enable-cp-decode-attn-tp enable-cudagraph-gc enable-custom-logit-processor
        enable-decoder-swa-bounded-replay enable-deepseek-v4-fp4-indexer
        enable-dense-mlp-attn-tp enable-deterministic-inference enable-dp-attention
        enable-dp-attention-local-control-broadcast enable-dp-lm-head
        enable-draft-weights-cpu-backup enable-dsa-cache-layer-split enable-dsa-fused-indexer
        enable-dynamic-batch-tokenizer enable-dynamic-chunking enable-elastic-expert-backup
        enable-encoder-swa-bounded-replay enable-eplb enable-flashinfer-allreduce-fusion
        enable-flexkv enable-forward-pass-metrics enable-fp32-lm-head
        enable-fused-moe-sum-all-reduce enable-fused-qk-norm-rope enable-hicache
        enable-hierarchical-cache enable-hisparse enable-http-worker-reuseport enable-http2
        enable-int8-mamba-checkpoint enable-kv-cache-sharding enable-layernorm-sp
        enable-layerwise-nvtx-marker enable-lean-attention enable-linear-replayssm
        enable-linear-replayssm-spec enable-linker-mla-dedup enable-lmcache enable-lora
        enable-lora-overlap-loading enable-mamba-cache-stochastic-rounding
        enable-megamoe-for-layernorm-sp enable-memory-saver enable-metrics
        enable-metrics-for-all-schedulers enable-mfu-metrics enable-mis enable-mixed-chunk
        enable-mm-global-cache enable-mscclpp enable-multi-layer-eagle enable-multimodal
        enable-nccl-nvls enable-nvidia-megakernel enable-p2p-check enable-page-major-kv-layout
        enable-paged-experts enable-pd-role-switch enable-pdmux
        enable-precise-embedding-interpolation enable-prefill-cp enable-prefill-delayer
        enable-prefix-mm-cache enable-priority-scheduling enable-profile-cuda-graph
        enable-quant-communications enable-request-time-stats-logging enable-response-store
        enable-return-aux-hidden-states enable-return-hidden-states enable-return-indexer-topk
        enable-return-routed-experts enable-scattered-sconv enable-session-radix-cache
        enable-shared-experts-attn-tp enable-single-batch-overlap enable-ssl-refresh
        enable-streaming-session enable-strict-thinking enable-symm-mem enable-tf32-matmul
        enable-tokenizer-batch-encode enable-torch-compile enable-torch-compile-debug-mode
        enable-torch-symm-mem enable-tp-lm-head-all-to-all enable-trace enable-two-batch-overlap
        enable-unified-cache-external-linker enable-unified-memory enable-w4a4-mxfp4-megamoe
        enable-waterfill enable-watermark enable-weights-cpu-backup encoder-only
        enforce-disable-flashinfer-allreduce-fusion enforce-shared-experts-fusion
        experts-shared-outer-loras export-metrics-to-file flashinfer-mla-disable-ragged
        grpc-mode help incremental-streaming-output is-embedding language-model-only
        language-only log-requests lora-strict-loading lora-use-virtual-experts
        mlx-enable-sampling mm-enable-dp-encoder no-dcp-replicate-q-proj no-dllm-fdfo
        no-enable-decoder-swa-bounded-replay no-enable-dsa-fused-indexer
        no-enable-fused-qk-norm-rope no-enable-tf32-matmul no-enable-tp-lm-head-all-to-all
        no-experts-shared-outer-loras no-lora-strict-loading no-mm-enable-dp-encoder
        no-ple-offload-embedding no-speculative-enable-w4a4-mxfp4-megamoe ple-offload-embedding
        pre-warm-nccl prefill-only-disable-kv-cache quantize-and-serve
        remote-instance-weight-loader-start-seed-via-transfer-engine return-input-ids
        return-output-ids schedule-low-priority-values-first show-time-cost skip-server-warmup
        skip-tokenizer-init sleep-on-idle smg-grpc-mode speculative-adaptive
        speculative-dspark-align-verify-tokens-to-graph-tier
        speculative-enable-w4a4-mxfp4-megamoe speculative-use-block-verification
        speculative-use-rejection-sampling stream-response-default-include-usage
        strip-thinking-cache triton-attention-reduce-in-fp32 trust-mm-content-hashes
        trust-remote-code trust-request-chat-template use-ray weight-loader-disable-mmap
        weight-loader-drop-cache-after-load weight-loader-prefetch-checkpoints
    """,
    Takes.WHOLE: """
        asr-max-buffer-seconds asr-max-concurrent-sessions attention-context-parallel-size
        attention-data-parallel-size attn-cp-size attn-dp-size base-gpu-id batch-notify-size
        c128-page-size chunked-prefill-size constrained-json-max-whitespace-cnt cpu-offload-gb
        cuda-graph-max-bs-decode cuda-graph-max-bs-prefill cuda-graph-max-seq-len-prefill
        data-parallel-size dcp-size decode-context-parallel-size decode-log-interval
        decoupled-spec-rank default-priority-value detokenizer-worker-num
        disaggregation-bootstrap-port disaggregation-decode-extra-slots
        disaggregation-decode-polling-interval dist-timeout dp-size dsa-triton-union dwdp-size
        dynamic-batch-tokenizer-batch-size elastic-ep-initial-size elastic-ep-join-rank-offset
        encoder-bootstrap-port engine-info-bootstrap-port ep ep-num-redundant-experts ep-size
        eplb-rebalance-layers-per-chunk eplb-rebalance-num-iterations
        expert-distribution-recorder-buffer-size expert-parallel-size fuseep-mode
        gated-launch-port gpu-id-step grpc-http-sidecar-port grpc-port
        grpc-response-timeout-secs hicache-size hicache-storage-prefetch-retry-max-attempts
        hicache-storage-prefetch-retry-poll-interval http2-initial-connection-window-size
        http2-max-concurrent-streams int8-mamba-ckpt-size kt-cpuinfer
        kt-max-deferred-experts-per-token kt-num-gpu-experts kt-threadpool-count
        kv-canary-sweep-interval linear-replayssm-cache-len load-snapshot-publish-interval
        log-requests-level mamba-cache-philox-rounds mamba-max-states-per-path
        mamba-track-interval max-ep-size max-loaded-loras max-lora-chunk-size max-lora-rank
        max-loras-per-batch max-mamba-cache-size max-queued-requests max-running-requests
        media-url-max-file-size-mb min-free-slots-delay mm-io-worker-num
        mm-preprocess-cache-size-mb mm-processor-worker-num moe-data-parallel-size
        moe-dense-tp-size moe-dp-size nccl-port nnodes node-rank num-continuous-decode-steps
        num-reserved-decode-tokens offload-group-size offload-num-in-group offload-prefetch-step
        optimistic-prefill-attempts page-size paged-experts-num-resident pipeline-parallel-size
        port pp-async-batch-depth pp-max-micro-batch-size pp-size prefill-decode-interval
        prefill-decode-interval-min-bs prefill-delayer-max-delay-passes prefill-max-requests
        priority-scheduling-preemption-threshold random-seed
        remote-instance-weight-loader-seed-instance-service-port sampling-mask-max-tokens
        scheduler-recv-interval shared-experts-tp-size sm-group-num smg-http-sidecar-port
        speculative-dflash-block-size speculative-domino-candidate-pool-size
        speculative-draft-sink-size speculative-draft-window-size speculative-dspark-block-size
        speculative-eagle-topk speculative-ngram-capacity
        speculative-ngram-external-corpus-max-tokens speculative-ngram-external-sam-budget
        speculative-ngram-max-bfs-breadth speculative-ngram-max-trie-depth
        speculative-ngram-min-bfs-breadth speculative-num-draft-tokens speculative-num-steps
        stream-interval swa-prefix-tails tensor-parallel-size tokenizer-worker-num
        torch-compile-max-bs tp-size triton-attention-num-kv-splits
        triton-attention-split-tile-size weight-cache-timeout weight-loader-prefetch-num-threads
    """,
    Takes.DECIMAL: """
        disaggregation-decode-host-receive-threshold dynamic-batch-tokenizer-batch-timeout
        elastic-ep-scale-timeout eplb-min-rebalancing-utilization-threshold
        gc-warning-threshold-secs hicache-host-memory-fraction hicache-ratio
        lora-drain-wait-threshold mamba-full-memory-ratio mem-fraction-static
        prefill-delayer-max-delay-ms prefill-delayer-queue-min-ratio
        prefill-delayer-token-usage-low-watermark schedule-conservativeness
        soft-watchdog-timeout speculative-accept-threshold-acc
        speculative-accept-threshold-single swa-full-tokens-ratio
        tbo-token-distribution-threshold watchdog-timeout
    """,
    Takes.TEXT: """
        admin-api-key api-key attention-backend bf16-gemm-backend boundary-reduction
        chat-template completion-template config constrained-json-whitespace-pattern
        context-bucket context-length cp-strategy crash-dump-folder cuda-graph-backend-decode
        cuda-graph-backend-prefill cuda-graph-config cuda-graph-prefill-max-context
        dcp-comm-backend debug-tensor-dump-input-file debug-tensor-dump-output-folder
        decode-attention-backend decoupled-spec-bind-endpoint decoupled-spec-connect-endpoints
        decoupled-spec-role decrypted-config-file decrypted-draft-config-file deepep-config
        deepep-dispatcher-output-dtype deepep-mode deepep-v2-mode default-chat-template-kwargs
        device disaggregation-decode-allocation-policy disaggregation-decode-retraction-backup
        disaggregation-ib-device disaggregation-mode disaggregation-transfer-backend
        dist-init-addr dllm-algorithm dllm-algorithm-config download-dir dsa-decode-backend
        dsa-paged-mqa-logits-backend dsa-prefill-backend dsa-topk-backend dsv4-attn-backend
        dsv4-prefill-backend dtype elastic-ep-backend elastic-ep-join-mode
        encoder-transfer-backend ep-dispatch-algorithm eplb-algorithm
        expert-balancedness-report-mode expert-distribution-recorder-mode
        export-metrics-to-file-dir extra-metric-labels fastapi-root-path file-storage-path
        flashinfer-a2a-dispatch-type flashinfer-allreduce-fusion-backend
        flashinfer-mxfp4-moe-precision flexkv-config-file forward-hooks
        forward-pass-metrics-ipc-name forward-pass-metrics-worker-id fp4-gemm-backend
        fp8-gemm-backend grammar-backend hf-chat-template-name hicache-host-memory-mode
        hicache-io-backend hicache-mem-layout hicache-storage-backend
        hicache-storage-backend-extra-config hicache-storage-prefetch-policy
        hicache-write-policy hierarchical-sparse-attention-extra-config hisparse-config host
        image-processor-backend init-expert-location json-model-override-args kt-method
        kt-weight-path kv-cache-dtype kv-canary kv-canary-real-data kv-events-config
        limit-mm-data-per-request linear-attn-backend linear-attn-decode-backend
        linear-attn-prefill-backend linear-attn-verify-backend lmcache-config-file
        load-balance-method load-format load-publish-endpoint log-level log-level-http
        log-requests-format lora-backend lora-eviction-policy mamba-backend
        mamba-radix-cache-strategy mamba-ssm-dtype max-prefill-tokens max-total-tokens
        mm-attention-backend mm-feature-transport mm-global-cache-backend mm-process-config
        model model-config-parser model-impl model-loader-extra-config model-path
        modelexpress-config modelopt-checkpoint-restore-path modelopt-checkpoint-save-path
        modelopt-export-path modelopt-quant moe-a2a-backend moe-runner-backend
        monokernel-backend mooncake-ib-device msprobe-dump-config nccl-init-addr offload-mode
        otlp-service-name otlp-traces-endpoint pdmux-config-path ple-offload-backend
        ple-offload-dir preferred-sampling-params prefill-attention-backend
        prefill-kv-cache-dequant-dtype qsa-indexer-dtype quantization quantization-param-path
        radix-cache-backend radix-eviction-policy radix-eviction-policy-config reasoning-parser
        remote-instance-weight-loader-backend remote-instance-weight-loader-seed-instance-ip
        remote-instance-weight-loader-send-weights-group-ports retraction-policy
        return-hidden-states-mode revision rl-on-policy-target rl-quant-profile sampling-backend
        sampling-defaults schedule-policy served-model-name sidecar sidecar-args spec-trace-dir
        speculative-adaptive-config speculative-algorithm speculative-attention-mode
        speculative-draft-attention-backend speculative-draft-kv-cache-dtype
        speculative-draft-load-format speculative-draft-model speculative-draft-model-path
        speculative-draft-model-quantization speculative-draft-model-revision
        speculative-dsa-topk-backend speculative-dspark-confidence-sts-path
        speculative-dspark-sps-table-path speculative-moe-a2a-backend
        speculative-moe-runner-backend speculative-ngram-external-corpus-path
        speculative-ngram-match-type speculative-token-map ssl-ca-certs ssl-certfile ssl-keyfile
        ssl-keyfile-password startup-weight-load-mode tokenizer-backend
        tokenizer-metrics-custom-labels-header tokenizer-mode tokenizer-path tool-call-parser
        tool-server trace-modules unified-cache-external-linker-backend
        unified-cache-external-linker-config uno-lora-path warmups watermark-config
        weight-cache-mode weight-cache-socket weight-version
    """,
    Takes.LIST: """
        allowed-media-domains bucket-e2e-request-latency bucket-inter-token-latency
        bucket-time-to-first-token cuda-graph-bs-decode cuda-graph-bs-prefill
        debug-tensor-dump-layers encoder-register-urls encoder-urls flashinfer-autotune-skip-ops
        gc-threshold generation-tokens-buckets log-requests-target numa-node
        prefill-delayer-forward-passes-buckets prefill-delayer-wait-seconds-buckets
        prompt-tokens-buckets return-aux-hidden-state-layer-ids
        tokenizer-metrics-allowed-custom-labels
    """,
    Takes.OPTIONAL: """
        custom-weight-loader lora-paths lora-target-modules model-checksum
        uvicorn-access-log-exclude-prefixes
    """,
}

FLAGS: dict[str, Takes] = {flag: takes for takes, text in _FLAGS.items() for flag in text.split()}
