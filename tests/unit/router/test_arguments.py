"""With smg's own parser."""

import pytest
from smg.launch_router import parse_router_args
from smg.router import Router

from sglang_router_launcher.arguments import (
    ArgumentsError,
    ControlKeys,
    fresh_keys,
    parsed,
    with_keys,
    with_quick_removal,
)

ARGUMENTS = ["--port", "8000", "--service-discovery", "--selector", "a=b", "c=d"]
KEYS = ControlKeys(admin="nobody-has-it", reader="may-look")


def test_smgs_arguments_are_taken_as_they_are() -> None:
    args = parsed(ARGUMENTS)

    assert (args.port, args.service_discovery) == (8000, True)
    assert args.selector == {"a": "b", "c": "d"}


def test_the_keys_are_added_to_what_smg_has_parsed() -> None:
    args = with_keys(parsed(ARGUMENTS), "sesame", KEYS)

    roles = {key: role for _, _, key, role in args.control_plane_api_keys}
    assert args.api_key == "sesame"
    assert roles == {"nobody-has-it": "admin", "may-look": "user"}


def test_keys_are_as_smg_parses_them_itself() -> None:
    given = ["launcher:nobody:admin:nobody-has-it", "list:worker list:user:may-look"]
    of_smg = parse_router_args([*ARGUMENTS, "--control-plane-api-keys", *given])

    args = with_keys(parsed(ARGUMENTS), None, KEYS)

    assert args.control_plane_api_keys == of_smg.control_plane_api_keys


def test_keys_are_new_at_each_start() -> None:
    keys = [key for made in (fresh_keys(), fresh_keys()) for key in (made.admin, made.reader)]

    assert len(set(keys)) == 4
    assert min(map(len, keys)) >= 43  # 256 bits


def test_keys_are_not_shown() -> None:
    keys = fresh_keys()

    assert keys.admin not in repr(keys)
    assert keys.reader not in repr(keys)


@pytest.mark.parametrize("argument", ["--api-key", "--api-k"])
def test_a_key_among_the_arguments_is_refused_and_not_shown(argument: str) -> None:
    with pytest.raises(ArgumentsError, match="SGLANG_ROUTER_API_KEY") as raised:
        parsed([*ARGUMENTS, argument, "sesame"])

    assert "sesame" not in str(raised.value)


def test_control_plane_keys_among_the_arguments_are_refused_and_not_shown() -> None:
    with pytest.raises(ArgumentsError, match="--control-plane-api-keys") as raised:
        parsed([*ARGUMENTS, "--control-plane-api-keys", "id:name:admin:sesame"])

    assert "sesame" not in str(raised.value)


def test_what_smg_refuses_after_its_parser_is_told_in_its_words() -> None:
    with pytest.raises(ArgumentsError, match="expected 'id:name:role:key'"):
        parsed([*ARGUMENTS, "--control-plane-api-keys", "sesame"])


def test_smgs_router_takes_arguments_with_a_quick_removal() -> None:
    args = parsed(ARGUMENTS)

    quick = with_quick_removal(args)

    assert vars(quick) == vars(args) | {"drain_settle_secs": 0}
    Router.from_args(quick)


def test_smgs_router_refuses_what_it_does_not_know() -> None:
    """So that the test above would notice when smg drops the setting."""
    args = parsed(ARGUMENTS)
    vars(args)["drain_settle_seconds"] = 0

    with pytest.raises(TypeError, match="drain_settle_seconds"):
        Router.from_args(args)
