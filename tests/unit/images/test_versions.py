import re
from pathlib import Path

import pytest

from sglang_fleet.versions import TESTED

ROOT = Path(__file__).parents[3]


def pinned() -> dict[str, str]:
    lines = (ROOT / "images/engine/cpu/requirements.txt").read_text().splitlines()
    packages = [line for line in lines if line and not line.startswith("#")]
    return dict(line.split("==", 1) for line in packages)


def argument(dockerfile: str, name: str) -> str:
    match = re.search(rf"^ARG {name}=(\S+)", (ROOT / dockerfile).read_text(), re.MULTILINE)
    assert match, f"{dockerfile} has no ARG {name}"
    return match[1]


def test_every_package_of_the_cpu_engine_is_pinned() -> None:
    versions = pinned()

    assert "torch" in versions
    assert all(re.fullmatch(r"[0-9][0-9A-Za-z.+]*", version) for version in versions.values())


def test_the_hooks_of_the_plugin_are_tested_with_the_version_of_the_image() -> None:
    assert all(pinned()["sglang"] in versions for versions in TESTED.values())


def test_the_cpu_engine_has_the_version_of_the_public_image() -> None:
    assert argument("images/engine/Dockerfile", "BASE").endswith(f":v{pinned()['sglang']}")


@pytest.mark.parametrize("part", ["", "images/agent/", "images/engine/", "images/router/"])
def test_images_are_built_with_the_uv_of_the_makefile(part: str) -> None:
    makefile = (ROOT / "Makefile").read_text()

    version = argument(f"{part}Dockerfile", "UV").partition(":")[2]

    assert f"UV_VERSION := {version}\n" in makefile


def test_the_operator_and_the_cpu_engine_share_their_base() -> None:
    assert argument("Dockerfile", "BASE") == argument("images/engine/cpu/Dockerfile", "BASE")
