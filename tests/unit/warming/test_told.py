from pathlib import Path

from sglang_warming.loop import Failure, Progress, State, file_source
from sglang_warming.told import Told

SOURCE = file_source("file", "/etc/prompts.json", "prompts.json", Path("/etc/prompts.json"))


def test_news_are_told_once() -> None:
    told = Told()
    progress = Progress(State.WARMING, total=3)

    assert told.news(progress) == ["warming: 0 of 3 prompts, 0 failed"]
    assert told.news(progress) == []


def test_a_failure_is_told_by_file_and_entry() -> None:
    told = Told()
    progress = Progress(State.WARMING, total=3)
    told.news(progress)
    progress.fail(Failure(SOURCE, 2, "text: is empty"))
    progress.fail(Failure(SOURCE, None, "the file cannot be read"))

    assert told.news(progress) == [
        "/etc/prompts.json: entry 2: text: is empty",
        "/etc/prompts.json: the file cannot be read",
    ]


def test_a_failure_in_a_config_map_is_told_by_its_key() -> None:
    told = Told()
    progress = Progress(State.WARMING, total=3)
    told.news(progress)
    source = file_source("configMap", "prompts", "chat.json", Path("s0-0"))
    progress.fail(Failure(source, 2, "text: is empty"))

    assert told.news(progress) == ["configMap prompts, chat.json: entry 2: text: is empty"]


def test_a_new_round_is_told_anew() -> None:
    told = Told()
    told.news(Progress(State.WARMED, total=1, warmed=1))

    assert told.news(Progress(State.WARMED, total=1, warmed=1)) == [
        "warmed: 1 of 1 prompts, 0 failed"
    ]
