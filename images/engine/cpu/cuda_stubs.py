"""Stubs for the CUDA libraries that PyPI's torch is linked against, for hosts without a GPU.

torch's own libraries name cuDNN, NCCL, CUPTI and libtorch_cuda as needed, so the dynamic linker wants to see them and
every symbol asked of them. A stub exports just these symbols, with the versions asked for; calling one prints its name
and aborts. Needs gcc and readelf.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

TORCH_CUDA_LIBRARIES = (
    "libtorch_cuda.so",
    "libtorch_cuda_linalg.so",
    "libtorch_nvshmem.so",
    "libcaffe2_nvrtc.so",
)
"""Libraries in torch/lib that hold GPU code only (495 MB)."""

CUDA_LIBRARY = re.compile(r"lib(cu|nv|nccl)")
REAL_LIBRARIES = {"libcudart.so.13", "libcuda.so.1"}
"""Not stubbed: the runtime is small (0.7 MB) and reports "no driver"; the driver's library is opened, not linked."""

PREAMBLE = """\
#include <stdio.h>
#include <stdlib.h>
extern void *_ZTVN10__cxxabiv117__class_type_infoE[];
"""

# Two functions are called while torch is imported, so they need an answer. The first returns a reference that
# libtorch_python assigns to; the second constructs a default argument, whose type pybind11 reads from its vtable.
GIL_CHECKER = "_ZN4c10d15get_gil_checkerEv"
NCCL_OPTIONS = "_ZN4c10d16ProcessGroupNCCL7OptionsC1Eb"
ANSWERS = {
    GIL_CHECKER: f"""\
static void *gil_checker[8];
void *get_gil_checker(void) __asm__("{GIL_CHECKER}");
void *get_gil_checker(void) {{ return gil_checker; }}
""",
    NCCL_OPTIONS: f"""\
extern void *options_type[] __asm__("_ZTIN4c10d16ProcessGroupNCCL7OptionsE");
static void no_operation(void) {{}}
static void *options_vtable[18] = {{ 0, options_type, {", ".join(["no_operation"] * 16)} }};
void new_options(void **self, int high_priority) __asm__("{NCCL_OPTIONS}");
void new_options(void **self, int high_priority) {{ self[0] = options_vtable + 2; }}
""",
}


@dataclass(frozen=True, slots=True)
class Symbol:
    """One line of a library's dynamic symbol table. `version` is empty where there is none."""

    name: str
    version: str
    kind: str
    size_bytes: int
    weak: bool
    defined: bool


def output_of(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def symbols(library: Path) -> Iterator[Symbol]:
    for line in output_of("readelf", "-W", "--dyn-syms", str(library)).splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[0].rstrip(":").isdigit():
            name, _, version = fields[7].replace("@@", "@").partition("@")
            yield Symbol(
                name=name,
                version=version,
                kind=fields[3],
                size_bytes=int(fields[2], 0),
                weak=fields[4] == "WEAK",
                defined=fields[6] != "UND",
            )


def defined_names(library: Path) -> set[str]:
    return {symbol.name for symbol in symbols(library) if symbol.defined}


def needed_libraries(library: Path) -> list[str]:
    return re.findall(r"NEEDED.*\[(.*?)\]", output_of("readelf", "-W", "-d", str(library)))


def load_segments(library: Path) -> Iterator[tuple[int, int, int]]:
    """Offset in the file, address and alignment of what is mapped into memory."""
    for line in output_of("readelf", "-W", "-l", str(library)).splitlines():
        if line.split()[:1] == ["LOAD"]:
            fields = line.split()
            yield int(fields[1], 0), int(fields[2], 0), int(fields[-1], 0)


def version_owners(library: Path) -> dict[str, str]:
    """Symbol version -> name of the library that it is expected from."""
    owners: dict[str, str] = {}
    owner = ""
    for line in output_of("readelf", "-W", "-V", str(library)).splitlines():
        if match := re.search(r"File: (\S+)", line):
            owner = match[1]
        elif owner and (match := re.search(r"Name: (\S+)\s+Flags", line)):
            owners[match[1]] = owner
    return owners


def system_names() -> set[str]:
    """What the C and C++ runtime defines."""
    names: set[str] = set()
    for pattern in ("libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "ld-linux-*.so.2"):
        for folder in (
            Path("/lib/x86_64-linux-gnu"),
            Path("/usr/lib/x86_64-linux-gnu"),
            Path("/lib64"),
        ):
            for library in folder.glob(pattern):
                names |= defined_names(library)
    return names


def real_symbols(torch_lib: Path) -> dict[str, Symbol]:
    """What torch's own GPU libraries define."""
    return {
        symbol.name: symbol
        for name in TORCH_CUDA_LIBRARIES
        if (torch_lib / name).exists()
        for symbol in symbols(torch_lib / name)
        if symbol.defined
    }


def stubbed_libraries(user: Path, present: set[str]) -> list[str]:
    """Those that `user` needs and that a stub has to stand in for."""
    return [
        name
        for name in needed_libraries(user)
        if name in TORCH_CUDA_LIBRARIES
        or (name not in present | REAL_LIBRARIES and CUDA_LIBRARY.match(name))
    ]


def missing_symbols(users: list[Path], torch_lib: Path) -> dict[str, dict[str, Symbol]]:
    """Library to stub -> the symbols that `users` ask of it, with the type and size the real one had."""
    present = {path.name for path in users}
    defined = system_names().union(*(defined_names(path) for path in users))
    real = real_symbols(torch_lib)
    torch_cuda = TORCH_CUDA_LIBRARIES[0]
    stubs: dict[str, dict[str, Symbol]] = {}
    for user in users:
        missing = stubbed_libraries(user, present)
        if not missing:
            continue
        for name in missing:
            stubs.setdefault(name, {})
        owners = version_owners(user)
        for symbol in symbols(user):
            if symbol.defined or not symbol.name or symbol.name in defined:
                continue
            if symbol.weak and symbol.name not in real:
                continue
            of_torch = symbol.name in real and torch_cuda in missing
            owner = owners.get(symbol.version) or (torch_cuda if of_torch else missing[0])
            if owner in missing:
                shape = real.get(symbol.name, symbol)
                stubs[owner][symbol.name] = replace(
                    symbol, kind=shape.kind, size_bytes=shape.size_bytes
                )
    return stubs


def c_definition(index: int, symbol: Symbol) -> str:
    name = symbol.name
    if name in ANSWERS:
        return ANSWERS[name]
    if name.startswith("_ZTI"):  # type_info: pybind11 reads its name while torch is imported
        return (
            f'const void *s{index}[3] __asm__("{name}") = '
            f'{{ &_ZTVN10__cxxabiv117__class_type_infoE[2], "{name[4:]}" }};\n'
        )
    if symbol.kind in ("OBJECT", "TLS"):
        storage = "__thread " if symbol.kind == "TLS" else ""
        return (
            f"{storage}char s{index}[{max(symbol.size_bytes, 16)}] "
            f'__asm__("{name}") __attribute__((aligned(32)));\n'
        )
    return (
        f'int s{index}(void) __asm__("{name}"); '
        f'int s{index}(void) {{ fputs("CUDA stub called: {name}\\n", stderr); abort(); }}\n'
    )


def c_source(wanted: dict[str, Symbol]) -> str:
    return PREAMBLE + "".join(
        c_definition(index, symbol) for index, (_, symbol) in enumerate(sorted(wanted.items()))
    )


def version_script(wanted: dict[str, Symbol]) -> str:
    """A linker version script; empty where no symbol has a version."""
    by_version: dict[str, list[str]] = {}
    for symbol in wanted.values():
        if symbol.version:
            by_version.setdefault(symbol.version, []).append(symbol.name)
    return "".join(
        f"{version} {{ global: {'; '.join(sorted(names))}; }};\n"
        for version, names in sorted(by_version.items())
    )


def write_stub(soname: str, path: Path, wanted: dict[str, Symbol]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        source, script = Path(scratch, "stub.c"), Path(scratch, "versions.map")
        source.write_text(c_source(wanted))
        command = ["gcc", "-shared", "-fPIC", "-O1", "-w", "-s", "-o", str(path), str(source)]
        command += [f"-Wl,-soname,{soname}", "-lstdc++"]
        if versions := version_script(wanted):
            script.write_text(versions)
            command.append(f"-Wl,--version-script={script}")
        output_of(*command)
