"""Leave compiled the modules that a server imports, as a check that they can be: `precompile.py SITE_PACKAGES`.

Python writes a module's bytecode when it first imports it. Compiling all that is installed would be three times as
large. The image is read-only and copying may change times, so the bytecode is marked as not to be compared with its
source.
"""

from __future__ import annotations

import compileall
import importlib
import importlib.util
import sys
from pathlib import Path

SERVER_MODULES = (
    "sglang.launch_server",
    "sglang.srt.arg_groups.pipeline",
    "sglang.srt.entrypoints.http_server",
    "sglang.srt.entrypoints.openai.serving_responses",
    "sglang.srt.managers.detokenizer_manager",
    "sglang.srt.managers.scheduler",
    "sglang.srt.model_executor.model_runner",
    "sglang.srt.constrained.xgrammar_backend",
    "sglang.srt.dllm.algorithm",
    "sglang.srt.kv_canary.runner.canary_manager",
    "sglang.srt.kv_canary.token_oracle.install",
    "sglang.srt.layers.attention.attention_registry",
    "sglang.srt.layers.attention.intel_amx_backend",
    "sglang.srt.layers.attention.torch_native_backend",
    "sglang.srt.mem_cache.kv_cache_configurator",
    "sglang.srt.mem_cache.rust_tree_core.adapter",
    "sglang.srt.speculative.ngram_worker",
    "sglang.srt.speculative.cpp_ngram.ngram_corpus",
    "sglang.srt.speculative.external_corpus_manager",
    "uvicorn.lifespan.on",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.h11_impl",
    "uvicorn.protocols.websockets.auto",
)
"""What the processes of a server import, the parts that they look up by name at run time included."""

SERVER_FOLDERS = (
    "prometheus_client",
    "sglang/srt/arg_groups",
    "sglang/srt/distributed",
    "sglang/srt/function_call",
    "sglang/srt/layers/attention",
    "sglang/srt/mem_cache",
    "sglang/srt/model_loader",
    "sglang/srt/parser",
    "uvicorn",
)
"""Compiled whole: which of their modules a server imports depends on its arguments."""

UNCHECKED_HASH = (0b01).to_bytes(4, "little")
"""Header field of bytecode that is used without a look at its source (PEP 552)."""


def import_server() -> None:
    from sglang.srt.plugins import load_plugins  # type: ignore[import-not-found]

    load_plugins()
    for name in SERVER_MODULES:
        importlib.import_module(name)
    from sglang.srt.models.registry import (  # type: ignore[import-not-found]
        import_model_classes,
    )
    from sglang.srt.speculative.cpp_ngram.ngram_corpus import (  # type: ignore[import-not-found]
        NgramCorpus,
    )

    if "LlamaForCausalLM" not in import_model_classes("sglang.srt.models"):
        raise SystemExit("the model registry has no LlamaForCausalLM")
    NgramCorpus(capacity=1000)


def mark_unchecked(compiled: Path) -> None:
    source = compiled.parent.parent / f"{compiled.name.split('.')[0]}.py"
    data = compiled.read_bytes()
    if data[4:8] != bytes(4) or not source.exists():  # marked already
        return
    header = data[:4] + UNCHECKED_HASH + importlib.util.source_hash(source.read_bytes())
    compiled.write_bytes(header + data[16:])


def main() -> None:
    packages = Path(sys.argv[1])
    import_server()
    for folder in SERVER_FOLDERS:
        compileall.compile_dir(packages / folder, quiet=1)
    compiled = list(packages.rglob("__pycache__/*.pyc"))
    for path in compiled:
        mark_unchecked(path)
    print(f"{len(compiled)} modules compiled")


if __name__ == "__main__":
    main()
