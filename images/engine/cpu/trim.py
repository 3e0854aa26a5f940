"""Shrink an environment that holds PyPI's torch and sglang to what a CPU server needs.

`python -m images.engine.cpu.trim SITE_PACKAGES`, from the repository's folder.
PyPI has no CPU build of torch for x86-64. Without its CUDA parts, symbol tables, and the code and data of other
devices and models, the environment is a third as large. Needs gcc, readelf and strip.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from images.engine.cpu import cuda_stubs

UNUSED = (
    # Headers, tests, tools and type stubs.
    "torch/include",
    "torch/test",
    "torch/share",
    "torch/bin/protoc*",
    "torch/utils/benchmark",
    "**/tests",
    "**/*.pyi",
    "**/*.pyx",
    "**/*.pxd",
    "**/*.dist-info/sboms",
    "tvm_ffi/3rdparty",
    "tvm_ffi/include",
    "jsonschema/benchmarks",
    # What sglang has for GPUs, for pictures and videos, and for its own tests and benchmarks.
    "sglang/multimodal_gen",
    "sglang/test",
    "sglang/benchmark",
    "sglang/kernels/jit/csrc/*",  # the folders themselves are looked for
    "sglang/kernels/jit/include/*",
    "sglang/kernels/jit/benchmark",
    "sglang/**/*.cu",
    "sglang/**/*.cuh",
    "sglang/**/*.co",
    "sglang/**/configs/**/*device_name=*.json",
    # Servers in Rust, which only --enable-rust-server and the like load.
    "sglang/srt/rust_extensions/*.so",
    # Decoders of picture formats that torchvision and Pillow do without.
    "torchvision/image_stable.so",
    "torchvision.libs/libnvjpeg*",
    "PIL/_avif*",
    "pillow.libs/libavif*",
    # Compiled sources of modules that are compiled here too.
    "**/__pycache__",
)

NATIVE_OVERRIDES = "    registry._register_all_overrides()"
"""The line of torch/_native/__init__.py that registers CUDA kernels, which are gone."""

TRANSFORMERS_MODELS = Path(__file__).with_name("transformers_models.txt")
"""Families that stay: those sglang imports at start, and what a text model may need."""


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def drop_unused(packages: Path) -> None:
    for pattern in UNUSED:
        for path in list(packages.glob(pattern)):
            remove(path)


def drop_models(packages: Path) -> None:
    """Remove the model families of transformers that no server here loads; it finds them by listing the folder."""
    kept = set(TRANSFORMERS_MODELS.read_text().split())
    for family in (packages / "transformers/models").iterdir():
        if family.is_dir() and family.name not in kept:
            shutil.rmtree(family)


def stub_cuda(packages: Path) -> None:
    """Replace CUDA's libraries and torch's GPU code by stubs."""
    torch_lib = packages / "torch/lib"
    for runtime in packages.glob("nvidia/**/libcudart.so.*"):
        shutil.copy(runtime, torch_lib)
    libraries = [
        path
        for pattern in (
            "torch/lib/*.so*",
            "torch/_C*.so",
            "torchvision/*.so",
            "torchvision.libs/*.so*",
        )
        for path in sorted(packages.glob(pattern))
    ]
    users = [path for path in libraries if path.name not in cuda_stubs.TORCH_CUDA_LIBRARIES]
    stubs = cuda_stubs.missing_symbols(users, torch_lib)
    for name in cuda_stubs.TORCH_CUDA_LIBRARIES:
        remove(torch_lib / name)
    for package in packages.glob("nvidia*"):
        remove(package)
    for soname, wanted in sorted(stubs.items()):
        cuda_stubs.write_stub(soname, torch_lib / soname, wanted)


def disable_native_overrides(packages: Path) -> None:
    module = packages / "torch/_native/__init__.py"
    text = module.read_text()
    if NATIVE_OVERRIDES not in text:
        raise SystemExit(
            f"{module}: the call to leave out is not there; is this another version of torch?"
        )
    module.write_text(text.replace(NATIVE_OVERRIDES, "    pass  # no CUDA kernels here"))


def strip_libraries(packages: Path) -> None:
    """Drop symbol tables. `strip` breaks some libraries that patchelf has been at; these stay as they are."""
    for library in packages.rglob("*.so*"):
        if not library.is_file() or library.is_symlink():
            continue
        stripped = library.with_name(f"{library.name}.stripped")
        subprocess.run(["strip", "--strip-unneeded", "-o", stripped, library], check=True)
        if loadable(stripped):
            stripped.replace(library)
        else:
            stripped.unlink()


def loadable(library: Path) -> bool:
    """Whether each segment lies at the same place within a page in the file and in memory, as the loader demands."""
    return all(
        (offset - address) % alignment == 0
        for offset, address, alignment in cuda_stubs.load_segments(library)
    )


def size_mb(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) // 1_000_000


def main() -> None:
    packages = Path(sys.argv[1])
    before_mb = size_mb(packages)
    drop_unused(packages)
    drop_models(packages)
    stub_cuda(packages)
    disable_native_overrides(packages)
    strip_libraries(packages)
    print(f"trimmed from {before_mb} to {size_mb(packages)} MB")


if __name__ == "__main__":
    main()
