import argparse
from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.warming_flag import problem_with


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.json"
    path.write_text('["You are a helpful assistant."]')
    return path


def problem(path: Path, **arguments: Any) -> str | None:
    given = argparse.Namespace(**{"disaggregation_mode": "null", **arguments})
    return problem_with(str(path), given, {})


def test_a_file_with_a_prompt_is_taken(prompts: Path) -> None:
    assert problem(prompts) is None


def test_a_bad_entry_does_not_keep_the_others_from_being_warmed(prompts: Path) -> None:
    prompts.write_text('[{"txt": "a"}, "b"]')

    assert problem(prompts) is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(None, "it cannot be read (No such file or directory)", id="missing"),
        pytest.param("", "it has no prompt; entry 0: not JSON", id="empty"),
        pytest.param("[]", "it has no prompt", id="empty list"),
        pytest.param('[{"txt": "a"}]', 'entry 0: unknown key "txt"', id="bad entry"),
        pytest.param("[", "it has no prompt; entry 0: not JSON", id="no JSON"),
    ],
)
def test_a_file_without_a_prompt_is_refused(prompts: Path, content: str | None, said: str) -> None:
    if content is None:
        prompts.unlink()
    else:
        prompts.write_text(content)

    message = problem(prompts)

    assert message is not None
    assert message.startswith(f'--cache-warming-prompts: got "{prompts}"; ')
    assert said in message


def test_a_folder_is_refused(tmp_path: Path) -> None:
    message = problem(tmp_path)

    assert message is not None
    assert "it cannot be read (Is a directory); name a file of prompts" in message


@pytest.mark.parametrize(
    "flag", ["disable_radix_cache", "encoder_only", "grpc_mode", "smg_grpc_mode"]
)
def test_what_leaves_nothing_to_warm_is_a_contradiction(prompts: Path, flag: str) -> None:
    message = problem(prompts, **{flag: True})

    assert message is not None
    assert f"--cache-warming-prompts: does not go with --{flag.replace('_', '-')}: " in message
    assert message.endswith("leave out one of the two")


@pytest.mark.parametrize("mode", ["prefill", "decode"])
def test_one_half_of_a_pair_is_not_warmed(prompts: Path, mode: str) -> None:
    message = problem(prompts, disaggregation_mode=mode)

    assert message is not None
    assert f"--disaggregation-mode {mode}" in message


def test_several_tokenizers_are_not_warmed(prompts: Path) -> None:
    message = problem(prompts, tokenizer_worker_num=2)

    assert message is not None
    assert "--tokenizer-worker-num 2" in message


def test_the_rust_server_is_not_warmed(prompts: Path) -> None:
    message = problem_with(str(prompts), argparse.Namespace(), {"SGLANG_RUST_SERVER": "true"})

    assert message is not None
    assert "SGLANG_RUST_SERVER" in message
