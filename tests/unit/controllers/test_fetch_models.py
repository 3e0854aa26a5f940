"""What of the download script is pure: the choice of files, and the words for errors."""

import errno
from pathlib import Path

import pytest

from sglang_controllers.download_errors import DOWNLOAD_ERROR
from sglang_controllers.scripts import fetch_models


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("model.safetensors", ["pytorch_model.bin"]),
        ("consolidated.safetensors", ["model.safetensors"]),  # load format mistral
        ("pytorch_model.bin", ["config.json"]),
        ("pytorch_model.bin", ["onnx/model.safetensors"]),
        ("audio_tokenizer/pytorch_model.bin", ["model.safetensors"]),  # MiMo-Audio
        ("mask_embedding.pt", ["model.safetensors"]),  # DFlash
        ("sparse_linear.pt", ["model.safetensors"]),  # BGE-M3
        ("model-Q4_K_M.gguf", ["config.json"]),
        ("modeling_special.py", ["model.safetensors"]),
        ("tokenizer.model", ["original/tokenizer.model"]),
    ],
)
def test_what_sglang_reads_is_fetched(name: str, others: list[str]) -> None:
    assert name in fetch_models.wanted([name, *others])


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("pytorch_model-00001-of-00002.bin", ["model.safetensors"]),
        ("training_args.bin", ["model.safetensors"]),
        ("rng_state.pth", ["model.safetensors"]),
        ("model-Q4_K_M.gguf", ["model.safetensors"]),
        ("audio_tokenizer/pytorch_model.bin", ["audio_tokenizer/model.safetensors"]),
        ("original/consolidated.00.pth", []),
        ("tf_model.h5", []),
        ("flax_model.msgpack", []),
        ("rust_model.ot", []),
        ("onnx/model_q4.onnx", []),
        ("onnx/model.onnx_data", []),
        ("checkpoint-5/optimizer.pt", []),
        ("assets/Logo.PNG", []),
        (".gitattributes", []),
    ],
)
def test_what_sglang_never_reads_is_left_out(name: str, others: list[str]) -> None:
    assert name not in fetch_models.wanted([name, *others])


def caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RuntimeError("Data processing error: No space left on device (os error 28)"), "no-space"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "no-space"),
        (caused(FileNotFoundError("no such entry"), TimeoutError("timed out")), "unreachable"),
        (caused(ConnectionError("hub"), PermissionError(errno.EPERM, "denied")), "unreachable"),
        (PermissionError(errno.EPERM, "denied"), "not-writable"),
        (ModuleNotFoundError("No module named 'huggingface_hub'"), "no-client"),
        (ValueError("Consistency check failed"), "failed"),
    ],
)
def test_an_error_is_told_by_what_is_below_it(error: BaseException, kind: str) -> None:
    assert fetch_models.kind_of(error) == kind


def test_neither_a_token_nor_a_password_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret\n")

    shown = fetch_models.shown("Bearer hf_secret to https://me:pass@mirror.example/org/name@main")

    assert shown == "Bearer *** to https://mirror.example/org/name@main"


def test_an_explanation_is_one_line_that_the_operator_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example/")
    error = ValueError("first\nsecond " + "x" * 500)

    sentence = fetch_models.explained("failed", error, Path("/cache"), "org/name")

    assert sentence.startswith("org/name cannot be fetched from https://mirror.example: ValueError")
    assert len(sentence) == 300
    found = DOWNLOAD_ERROR.fullmatch(f"error: failed: {sentence}")
    assert found
    assert found["what"] == sentence
