from pathlib import Path

import pytest

from sglang_agent.cli import main
from sglang_agent.settings import DEFAULTS, Settings, SettingsError, settings_from


def test_everything_has_a_default() -> None:
    assert settings_from({}) == Settings(
        engine_url="http://127.0.0.1:30000",
        port=30001,
        socket=Path("/run/sglang-agent/agent.sock"),
        token_file=Path("/run/secrets/sglang-agent/token"),
        drain_timeout_s=120,
        reaction_s=5,
        termination_log=Path("/dev/termination-log"),
    )


def test_every_variable_is_read() -> None:
    settings = settings_from(
        {
            "SGLANG_AGENT_ENGINE_URL": "http://[::1]:8001/",
            "SGLANG_AGENT_PORT": "9000",
            "SGLANG_AGENT_SOCKET": "/a/socket",
            "SGLANG_AGENT_TOKEN_FILE": "/a/token",
            "SGLANG_AGENT_DRAIN_TIMEOUT_S": "0",
            "SGLANG_AGENT_REACTION_S": "2.5",
            "SGLANG_AGENT_TERMINATION_LOG": "/a/log",
        }
    )

    assert settings == Settings(
        "http://[::1]:8001", 9000, Path("/a/socket"), Path("/a/token"), 0, 2.5, Path("/a/log")
    )
    assert settings.engine_port == 8001


BAD = {
    "SGLANG_AGENT_ENGINE_URL": (
        *("", "127.0.0.1:30000", "https://127.0.0.1:30000", "http://", "http://a:b", "http://a:0"),
        *("http://a:70000", "http://a/b", "http://a?b", "http://user:word@a", "http://[a"),
    ),
    "SGLANG_AGENT_PORT": ("", "0", "65536", "-1", "http", "1.5", "٣", "1_0"),
    "SGLANG_AGENT_SOCKET": ("", "agent.sock", "/" + 107 * "a"),
    "SGLANG_AGENT_TOKEN_FILE": ("", "token"),
    "SGLANG_AGENT_DRAIN_TIMEOUT_S": ("", "2m", "-1", "nan", "inf", "1e3", ".5", "1.2.3"),
    "SGLANG_AGENT_REACTION_S": ("", "5s", "-0.1", "nan", "infinity"),
    "SGLANG_AGENT_TERMINATION_LOG": ("", "termination-log"),
}


def test_every_variable_is_tried_with_bad_values() -> None:
    assert BAD.keys() == DEFAULTS.keys()


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in BAD.items() for v in values])
def test_a_bad_value_is_refused_with_its_name(name: str, value: str) -> None:
    with pytest.raises(SettingsError) as raised:
        settings_from({name: value})

    assert str(raised.value).startswith(f'{name}: got "{value}"; ')


def test_the_command_says_what_is_wrong_and_exits_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SGLANG_AGENT_PORT", "http")

    code = main()

    assert code == 2
    assert capsys.readouterr().err == (
        'error: SGLANG_AGENT_PORT: got "http"; a port is a number from 1 to 65535; '
        'write it like "30001"\n'
    )
