"""What stands around a launch: variables, shells and containers."""

from typing import Any

import pytest

from sglang_controllers.convert import converted

LAUNCH = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp 2"


def spec_of(command: str) -> dict[str, Any]:
    return dict(converted(command).manifest["spec"])


def warnings_of(command: str) -> str:
    return "\n".join(converted(command).warnings)


@pytest.mark.parametrize(
    "command",
    [
        f"A=1 B='x y' {LAUNCH}",
        f"env A=1 B='x y' nohup {LAUNCH}",
        f"export A=1\nexport B='x y'\n{LAUNCH}",
        f"A=1 && export B='x y'; {LAUNCH}",
        f"docker run -e A=1 --env 'B=x y' lmsysorg/sglang:v0.5.23 {LAUNCH}",
        f"A=1 bash -c \"B='x y' {LAUNCH}\"",
    ],
)
def test_variables_become_the_engines(command: str) -> None:
    assert spec_of(command)["engine"] == {
        "parallelism": {"tensor": 2},
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "x y"}],
    }


@pytest.mark.parametrize(
    "command",
    [
        LAUNCH.replace(" --", " \\\n  --"),
        LAUNCH.replace(" --", "\n  --"),
        f"# how we run it\nset -euo pipefail\n\n{LAUNCH}\n",
        f"sudo uv run {LAUNCH}",
        LAUNCH.replace("python -m sglang.launch_server", "/opt/venv/bin/sglang serve"),
        LAUNCH.replace("python", "/usr/bin/python3.12 -u"),
        f"{LAUNCH} > server.log 2>&1 &",
        f"{LAUNCH} | tee server.log",
        f"cd /srv && {LAUNCH}",
        f"docker run --rm -it --gpus all -p 1:1 lmsysorg/sglang:v0.5.23 {LAUNCH}",
        f"docker run lmsysorg/sglang:v0.5.23 bash -lc '{LAUNCH}'",
    ],
)
def test_the_same_launch_is_found_in_other_surroundings(command: str) -> None:
    assert converted(command).manifest == converted(LAUNCH).manifest


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (f"{LAUNCH} > server.log", "> server.log: a pod logs by itself; left out"),
        (f"cd /srv && {LAUNCH}", "cd /srv: paths are absolute in a pod; left out"),
        (f"CUDA_VISIBLE_DEVICES=0,1 {LAUNCH}", "CUDA_VISIBLE_DEVICES: left out"),
        (f"HF_TOKEN=hf_abc {LAUNCH}", "HF_TOKEN: a secret is not copied"),
        (f"docker run -e HF_TOKEN x/y:1 {LAUNCH}", "-e HF_TOKEN: its value is in your shell"),
        (f"docker run -v /data:/data x/y:1 {LAUNCH}", "volumes are not taken over"),
        (f"docker run lmsysorg/sglang:latest {LAUNCH}", "lmsysorg/sglang:latest: left out"),
        (f"docker run x/y:1 {LAUNCH}", "spec.engine.image: x/y:1 must run as uid 1000"),
    ],
)
def test_what_is_not_taken_over_is_said(command: str, says: str) -> None:
    assert says in warnings_of(command)


def test_a_secret_in_a_variable_is_not_copied() -> None:
    assert "hf_abc" not in str(converted(f"HF_TOKEN=hf_abc {LAUNCH}"))


def test_an_image_of_ones_own_is_kept() -> None:
    assert spec_of(f"docker run x/y:1 {LAUNCH}")["engine"]["image"] == "x/y:1"


@pytest.mark.parametrize(("size", "quantity"), [("32g", "32Gi"), ("512MB", "512Mi"), ("64", "64")])
def test_shared_memory_is_kept(size: str, quantity: str) -> None:
    command = f"docker run --shm-size={size} lmsysorg/sglang:v0.5.23 {LAUNCH}"

    assert spec_of(command)["engine"]["sharedMemory"] == quantity
