import json
import os
from pathlib import Path

import pytest

from sglang_agent.warming.settings import Claim
from sglang_agent.warming.sources import Volume, claimed, volume, volume_stamp
from sglang_warming.files import Problem
from sglang_warming.loop import Source
from sglang_warming.prompts import Prompt
from tests.unit.agent.warming.volume import ProjectedVolume


@pytest.fixture(name="projected")
def _projected(tmp_path: Path) -> ProjectedVolume:
    return ProjectedVolume(tmp_path / "warming")


def texts(source: Source) -> list[str | None]:
    return [entry[1].text for entry in source.open() if not isinstance(entry, Problem)]


def test_a_key_is_read_by_the_form_that_its_name_says(projected: ProjectedVolume) -> None:
    projected.write({"a.jsonl": '"one"\n"two"\n', "b.txt": '"three"\n'})

    seen = volume(projected.folder)

    assert [(each.kind, each.name, each.key) for each in seen.sources] == [
        ("configMap", "prompts", "a.jsonl"),
        ("configMap", "prompts", "b.txt"),
    ]
    assert [texts(each) for each in seen.sources] == [["one", "two"], ['"three"']]
    assert seen.hash == "abc"


def test_a_change_of_the_volume_is_seen(projected: ProjectedVolume) -> None:
    projected.write({"a.txt": "one"})
    before = volume_stamp(projected.folder)
    assert volume_stamp(projected.folder) == before

    projected.write({"a.txt": "two"}, content_hash="def")

    assert volume_stamp(projected.folder) != before
    assert [texts(each) for each in volume(projected.folder).sources] == [["two"]]
    assert volume(projected.folder).hash == "def"


def test_slots_are_joined(projected: ProjectedVolume) -> None:
    projected.write({"a.txt": "one"}, "h0")
    real = (projected.folder / "..data").resolve()
    index = {"sources": [{"configMap": "more", "key": "b.txt", "file": "s1-0"}], "hash": "h1"}
    (real / "index-1.json").write_text(json.dumps(index))
    (real / "s1-0").write_text("two")

    seen = volume(projected.folder)

    assert [texts(each) for each in seen.sources] == [["one"], ["two"]]
    assert seen.hash == "h0-h1"


def test_without_a_volume_there_is_nothing(tmp_path: Path) -> None:
    assert volume(tmp_path / "warming") == Volume()
    assert volume_stamp(tmp_path / "warming") == volume_stamp(tmp_path / "warming")


@pytest.mark.parametrize("index", ["", "[]", "{}", '{"sources": [1], "hash": "a"}', '{"hash": 1}'])
def test_a_broken_slot_does_not_harm_the_others(projected: ProjectedVolume, index: str) -> None:
    projected.write({"a.txt": "one"}, "h0")
    ((projected.folder / "..data").resolve() / "index-1.json").write_text(index)

    seen = volume(projected.folder)

    assert [texts(each) for each in seen.sources] == [["one"]]
    assert seen.hash == "h0"


def test_a_claim_is_a_file_or_a_folder_of_files(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set/b.txt").write_text("two")
    (tmp_path / "set/a.txt").write_text("one")
    (tmp_path / "set/.hidden").write_text("no")
    (tmp_path / "c.txt").write_text("three")
    claims = (Claim("data", "/set", tmp_path), Claim("data", "c.txt", tmp_path))

    sources, _ = claimed(claims)

    assert [(each.kind, each.name, each.key, texts(each)) for each in sources] == [
        ("claim", "data", "set/a.txt", ["one"]),
        ("claim", "data", "set/b.txt", ["two"]),
        ("claim", "data", "c.txt", ["three"]),
    ]


def test_a_change_of_a_claim_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one")
    claims = (Claim("data", "", tmp_path),)
    before = claimed(claims)[1]
    assert claimed(claims)[1] == before

    os.utime(file, (1, 1))
    touched = claimed(claims)[1]
    (tmp_path / "b.txt").write_text("two")

    assert len({before, touched, claimed(claims)[1]}) == 3


def test_what_a_claim_lacks_is_told(tmp_path: Path) -> None:
    (source,), _ = claimed((Claim("data", "gone.jsonl", tmp_path),))

    assert list(source.open()) == [
        Problem(None, "the file cannot be read: No such file or directory")
    ]


def test_prompt_is_what_a_text_file_holds(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("Be brief.\n")
    (source,), _ = claimed((Claim("data", "a", tmp_path),))

    assert list(source.open()) == [(0, Prompt(text="Be brief."))]
