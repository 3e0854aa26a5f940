from pathlib import Path

import pytest

from sglang_bench.errors import BenchError
from sglang_bench.workload import prompts_of, requests
from sglang_warming.prompts import Prompt

TEXT = Prompt(text="Classify:", cache_salt="a")
IDS = Prompt(input_ids=(5, 6))
CHAT = Prompt(messages=({"role": "system", "content": "Be brief."},))


def test_a_request_begins_with_its_prompt() -> None:
    (text,), (ids,), (chat,) = (requests([prompt], 1, seed=1) for prompt in (TEXT, IDS, CHAT))

    assert text.text is not None
    assert text.text.startswith("Classify: ")
    assert text.cache_salt == "a"
    assert ids.input_ids is not None
    assert ids.input_ids[:2] == (5, 6)
    assert set(ids.input_ids) <= {5, 6}
    assert chat.messages is not None
    assert chat.messages[0] == {"role": "system", "content": "Be brief."}
    assert chat.messages[1]["role"] == "user"


def test_a_seed_gives_the_same_requests_again_and_another_one_others() -> None:
    assert requests([TEXT, CHAT], 20, seed=1) == requests([TEXT, CHAT], 20, seed=1)
    assert requests([TEXT, CHAT], 20, seed=1) != requests([TEXT, CHAT], 20, seed=2)


def test_no_two_requests_are_the_same() -> None:
    texts = {prompt.text for prompt in requests([TEXT], 100, seed=1)}

    assert len(texts) == 100


def test_bad_entries_are_told_and_the_others_used(tmp_path: Path) -> None:
    path = tmp_path / "prompts.json"
    path.write_text('["a", {"txt": "b"}]')

    prompts, problems = prompts_of(path)

    assert prompts == [Prompt(text="a")]
    assert len(problems) == 1
    assert problems[0].startswith(f'{path}: entry 1: unknown key "txt"')


@pytest.mark.parametrize("content", [None, "[]", '[{"txt": 1}]'])
def test_a_file_without_a_prompt_is_refused(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "prompts.json"
    if content is not None:
        path.write_text(content)

    with pytest.raises(BenchError, match=r"--prompts: got .*(it has no prompt|cannot be read)"):
        prompts_of(path)
