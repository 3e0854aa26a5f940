import os
import subprocess
import sys
from pathlib import Path

import pytest

STAND_INS = Path(__file__).parents[3] / "images/engine/cpu/standins"


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-B", "-c", f"import triton, triton.language as tl\n{code}"],
        env={**os.environ, "PYTHONPATH": str(STAND_INS)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("@triton.jit\ndef k(x_ptr, N: tl.constexpr): ...", id="a kernel"),
        pytest.param("@triton.jit(do_not_specialize=['n'])\ndef k(n): ...", id="with options"),
        pytest.param(
            "@triton.autotune(configs=[triton.Config({'B': 1})], key=['n'])\n"
            "@triton.heuristics({'E': lambda args: True})\n@triton.jit\ndef k(n): ...",
            id="tuned",
        ),
        pytest.param("from triton.language.extra import libdevice", id="any submodule"),
        pytest.param("class E(triton.compiler.CompilationError): ...", id="a base class"),
        pytest.param("isinstance(1, triton.compiler.CompiledKernel)", id="isinstance"),
        pytest.param("def f(x: tl.tensor | None): ...", id="an annotation"),
        pytest.param(
            "assert triton.cdiv(7, 2) == 4 and triton.next_power_of_2(5) == 8", id="maths"
        ),
    ],
)
def test_what_needs_triton_can_be_imported(code: str) -> None:
    result = run(code)

    assert result.returncode == 0, result.stderr


def test_running_a_kernel_says_that_there_is_no_gpu() -> None:
    result = run("@triton.jit\ndef rope(x): ...\nrope[(1,)](1)")

    assert "triton kernel rope cannot run: this host has no GPU" in result.stderr


def test_no_driver_is_active_so_callers_take_their_cpu_branch() -> None:
    result = run("triton.runtime.driver.active.get_current_device()")

    assert "RuntimeError: 0 active drivers" in result.stderr
