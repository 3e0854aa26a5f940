from pathlib import Path

import pytest

from images.engine.cpu import trim


def make(packages: Path, *files: str) -> None:
    for name in files:
        path = packages / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def files_in(packages: Path) -> set[str]:
    return {str(path.relative_to(packages)) for path in packages.rglob("*") if path.is_file()}


def test_code_and_data_of_other_devices_go_and_the_server_stays(tmp_path: Path) -> None:
    moe = "sglang/srt/layers/moe/configs/E=8,N=1,device_name=NVIDIA_H100.json"
    server = "sglang/srt/managers/scheduler.py"
    make(tmp_path, server, moe, "sglang/multimodal_gen/a/b.py", "torch/include/ATen.h")

    trim.drop_unused(tmp_path)

    assert files_in(tmp_path) == {server}


def test_the_folder_that_sglang_looks_for_stays_without_its_sources(tmp_path: Path) -> None:
    make(tmp_path, "sglang/kernels/jit/csrc/ngram_corpus/trie.cpp")

    trim.drop_unused(tmp_path)

    folder = tmp_path / "sglang/kernels/jit/csrc"
    assert folder.is_dir()
    assert list(folder.iterdir()) == []


def test_only_the_listed_model_families_stay(tmp_path: Path) -> None:
    kept = {f"transformers/models/{name}" for name in ("llama/a.py", "auto/a.py", "__init__.py")}
    make(tmp_path, *kept, "transformers/models/zoedepth/a.py")

    trim.drop_models(tmp_path)

    assert files_in(tmp_path) == kept


def test_another_version_of_torch_is_refused_not_half_trimmed(tmp_path: Path) -> None:
    make(tmp_path, "torch/_native/__init__.py")

    with pytest.raises(SystemExit, match="another version of torch"):
        trim.disable_native_overrides(tmp_path)
