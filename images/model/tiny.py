# ruff: noqa: INP001 - a script
"""Write a tiny Llama with random weights and SmolLM2's tokenizer: `tiny.py SMOLLM2_DIR OUT`.

It answers nonsense, but starts in half the memory and answers ten times faster: for tests of everything but the answer.
Runs in the CPU engine's environment.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

SHAPE = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
}
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


def tensors(vocabulary: int) -> dict[str, torch.Tensor]:
    hidden, inner = SHAPE["hidden_size"], SHAPE["intermediate_size"]
    queries = SHAPE["num_attention_heads"] * SHAPE["head_dim"]
    keys = SHAPE["num_key_value_heads"] * SHAPE["head_dim"]
    projections = {
        "self_attn.q_proj": (queries, hidden),
        "self_attn.k_proj": (keys, hidden),
        "self_attn.v_proj": (keys, hidden),
        "self_attn.o_proj": (hidden, queries),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
    }
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> torch.Tensor:
        return (0.05 * torch.randn(*shape, generator=generator)).to(torch.bfloat16)

    norm = torch.ones(hidden, dtype=torch.bfloat16)
    result = {
        "model.embed_tokens.weight": random(vocabulary, hidden),
        "model.norm.weight": norm.clone(),
    }
    for layer in range(SHAPE["num_hidden_layers"]):
        prefix = f"model.layers.{layer}"
        for name, shape in projections.items():
            result[f"{prefix}.{name}.weight"] = random(*shape)
        for name in ("input_layernorm", "post_attention_layernorm"):
            result[f"{prefix}.{name}.weight"] = norm.clone()
    return result


def main() -> None:
    smollm2, out = Path(sys.argv[1]), Path(sys.argv[2])
    config = json.loads((smollm2 / "config.json").read_text()) | SHAPE
    config.pop("_model_name_or_path", None)
    (out / "config.json").write_text(json.dumps(config, indent=1))
    for name in TOKENIZER_FILES:
        shutil.copy(smollm2 / name, out)
    save_file(tensors(config["vocab_size"]), out / "model.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    main()
