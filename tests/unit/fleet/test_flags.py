import argparse

import pytest

from sglang_fleet import flags


def given(arguments: list[str], environment: dict[str, str]) -> dict[str, str]:
    parser = argparse.ArgumentParser()
    flags.add_to(parser, environment)
    return flags.given(parser.parse_args(arguments))


def test_without_a_flag_nothing_is_given() -> None:
    assert given([], {"SGLANG_FLEET_CACHE_WARMING_PROMPTS": ""}) == {}


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        pytest.param(["--cache-warming-prompts", "a.json"], {}, id="command line"),
        pytest.param([], {"SGLANG_FLEET_CACHE_WARMING_PROMPTS": "a.json"}, id="environment"),
        pytest.param(
            ["--cache-warming-prompts=a.json"],
            {"SGLANG_FLEET_CACHE_WARMING_PROMPTS": "b.json"},
            id="the command line before the environment",
        ),
    ],
)
def test_a_flag_is_given(arguments: list[str], environment: dict[str, str]) -> None:
    assert given(arguments, environment) == {"cache_warming_prompts": "a.json"}


def test_help_names_the_environment_variable() -> None:
    parser = argparse.ArgumentParser()

    flags.add_to(parser, {})

    assert "SGLANG_FLEET_CACHE_WARMING_PROMPTS" in parser.format_help()


def test_arguments_of_another_parser_give_nothing() -> None:
    assert flags.given(argparse.Namespace(model_path="m")) == {}
