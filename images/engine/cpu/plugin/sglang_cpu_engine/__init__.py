"""An SGLang plugin that lets NGRAM speculation run on CPUs without AMX, and start without a compiler.

Written for SGLang 0.5.23.
"""

import os
from pathlib import Path

NGRAM_CORPUS = Path(__file__).with_name("ngram_corpus.so")
"""SGLang's C++ corpus, compiled when the environment is made."""

TEXT_MODELS = {
    "gemma",
    "gpt2",
    "granite",
    "llama",
    "llama_eagle",
    "llama_eagle3",
    "olmo",
    "olmo2",
    "opt",
    "phi",
    "qwen2",
    "qwen2_eagle",
    "qwen2_moe",
    "qwen3",
    "qwen3_moe",
    "starcoder2",
    "transformers",
}
"""Modules of sglang.srt.models that are loaded unless SGLANG_DISABLED_MODEL_ARCHS says otherwise."""


def register() -> None:
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    # Without AMX, SGLang replaces intel_amx by torch_native, which cannot verify drafts. The operations that
    # intel_amx needs come from the stand-in for sgl_kernel instead.
    HookRegistry.register(
        "sglang.srt.arg_groups.overrides._attention_backend_platform_fallbacks",
        lambda _view: {},
        HookType.REPLACE,
    )
    HookRegistry.register(
        "sglang.kernels.ops.speculative.ngram_corpus.load_jit", load_compiled, HookType.AROUND
    )
    os.environ.setdefault("SGLANG_DISABLED_MODEL_ARCHS", ",".join(sorted(other_models())))


def load_compiled(load_jit, *args, **options):
    """The compiled corpus in place of a build at first use, which takes a C++ compiler and 15 s."""
    if args != ("ngram_corpus",):
        return load_jit(*args, **options)
    import tvm_ffi

    return tvm_ffi.load_module(str(NGRAM_CORPUS))


def other_models() -> set[str]:
    """Importing all 280 model modules would take 2 s of each start, and log a warning for those that need a GPU."""
    import sglang.srt

    folder = Path(sglang.srt.__path__[0], "models")
    return {path.stem for path in folder.glob("*.py")} - TEXT_MODELS
