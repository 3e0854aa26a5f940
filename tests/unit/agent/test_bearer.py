from pathlib import Path

import pytest

from sglang_agent.bearer import Answer, checked


@pytest.fixture(name="token_file")
def _token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("sesame\n")
    return path


@pytest.mark.parametrize("header", ["Bearer sesame", "bearer sesame", "Bearer  sesame "])
def test_the_token_opens(token_file: Path, header: str) -> None:
    assert checked(token_file, header) is Answer.ALLOWED


@pytest.mark.parametrize(
    "header",
    [
        *(None, "", "Bearer", "Bearer ", "sesame", "Basic sesame", "Bearer sesam"),
        *("Bearer sesamee", "Bearer séame", "Bearer \udcff", "Bearer sesame sesame"),
    ],
)
def test_anything_else_does_not(token_file: Path, header: str | None) -> None:
    assert checked(token_file, header) is Answer.DENIED


@pytest.mark.parametrize("header", [None, "Bearer", "Bearer ", "Bearer sesame"])
@pytest.mark.parametrize("content", [None, "", "\n"])
def test_without_a_token_nobody_is_let_in(
    tmp_path: Path, content: str | None, header: str | None
) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)

    assert checked(path, header) is Answer.NO_TOKEN


def test_a_new_token_counts_at_once(token_file: Path) -> None:
    assert checked(token_file, "Bearer sesame") is Answer.ALLOWED
    token_file.write_text("other")

    assert checked(token_file, "Bearer sesame") is Answer.DENIED
    assert checked(token_file, "Bearer other") is Answer.ALLOWED
