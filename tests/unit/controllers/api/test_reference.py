"""The settings reference is the generated one, and tells of every field and argument."""

from pathlib import Path

import pytest

from sglang_controllers.api.reference import ENGINE_TESTED, settings_reference
from sglang_controllers.api.settings import RESERVED, SETTINGS, Setting

FILE = Path(__file__).parents[4] / "docs" / "reference" / "settings.md"


def row_of(field: str) -> list[str]:
    rows = (line for line in settings_reference().splitlines() if line.startswith(f"| `{field}`"))
    return [cell.strip() for cell in next(rows).split(" | ")]


def test_the_file_is_what_the_models_generate() -> None:
    assert FILE.read_text() == settings_reference(), "run `make generate`"


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.field)
def test_every_argument_is_in_the_reference(setting: Setting) -> None:
    assert f"`--{setting.flag}" in settings_reference()


def test_every_argument_of_the_operator_is_in_the_reference() -> None:
    text = settings_reference()

    assert [f for r in RESERVED for f in r.flags if f"`--{f}`" not in text] == []


@pytest.mark.parametrize(
    ("field", "cells"),
    [
        (
            "engine.parallelism.tensor",
            ["`--tp-size`", "whole number, 1 to 64", "1", "parser"],
        ),
        (
            "scheduling.overlap.mode",
            [
                "`--disable-overlap-schedule` when `disabled`",
                "`enabled`, `disabled`",
                "`enabled`",
                "engine",
            ],
        ),
        ("model.trustRemoteCode", ["`--trust-remote-code` when `true`", "`true`, `false`"]),
        ("cache.hiCache", ["`--enable-hierarchical-cache`", "object", "off", "parser"]),
        ("speculative.ngram", ["`--speculative-algorithm NGRAM`", "object", "off", "engine"]),
        ("cache.eviction.tlru.threshold", ["`--radix-eviction-policy-config`, a key of its JSON"]),
        ("model.loraAdapters[].source", ["`--lora-paths`", "text"]),
        ("engine.version", ["-", "text", "`0.5.23`", "-"]),
        (
            "engine.grammarBackend",
            ["`--grammar-backend`", "`llguidance`, `none`, `outlines`, `xgrammar`"],
        ),
        ("engine.sharedMemory", ["-", "quantity", "`8Gi`", "-"]),
    ],
)
def test_a_field_has_its_argument_values_default_and_test(field: str, cells: list[str]) -> None:
    assert row_of(field)[1 : 1 + len(cells)] == cells


def test_what_is_called_engine_tested_is_a_field() -> None:
    assert all(row_of(field)[4] == "engine" for field in ENGINE_TESTED)
