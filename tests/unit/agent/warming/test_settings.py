from pathlib import Path

import pytest

from sglang_agent.settings import SettingsError, settings_from
from sglang_agent.warming.settings import Claim, Peers, WarmingSettings


def test_without_its_variables_nothing_is_warmed() -> None:
    others = {"SGLANG_AGENT_REVISION": "abc", "SGLANG_AGENT_POD_IP": "10.0.0.1"}

    assert settings_from(others).warming is None


def test_each_variable_is_read() -> None:
    settings = settings_from(
        {
            "SGLANG_AGENT_WARMING_DIR": "/a",
            "SGLANG_AGENT_WARMING_PATHS": '[{"claim": "data", "path": "/p", "mount": "/m"},'
            '{"claim": "data", "mount": "/m"}]',
            "SGLANG_AGENT_WARMING_GATE_S": "2.5",
            "SGLANG_AGENT_PEERS_SERVICE": "peers.ns",
            "SGLANG_AGENT_PEERS_MAX_TOKENS": "4096",
            "SGLANG_AGENT_REVISION": "abc",
            "SGLANG_AGENT_POD_IP": "10.0.0.1",
        }
    )

    assert settings.warming == WarmingSettings(
        folder=Path("/a"),
        claims=(Claim("data", "/p", Path("/m")), Claim("data", "", Path("/m"))),
        gate_s=2.5,
        peers=Peers("peers.ns", 4096, "abc", "10.0.0.1"),
        revision="abc",
    )
    assert [claim.place for claim in settings.warming.claims] == [Path("/m/p"), Path("/m")]


@pytest.mark.parametrize(
    "given",
    [{"SGLANG_AGENT_WARMING_GATE_S": "300"}, {"SGLANG_AGENT_WARMING_PATHS": "[]"}],
)
def test_one_of_them_is_enough(given: dict[str, str]) -> None:
    warming = settings_from(given).warming

    assert warming
    assert warming.folder == Path("/run/sglang-warming")


def test_peers_may_listen_at_another_port() -> None:
    given = {"SGLANG_AGENT_PEERS_SERVICE": "peers:99", "SGLANG_AGENT_PEERS_MAX_TOKENS": "1"}
    warming = settings_from(given).warming

    assert warming
    assert warming.peers == Peers("peers", 1, "", "", 99)


BAD = {
    "SGLANG_AGENT_PEERS_SERVICE": ("peers:", "peers:http", "peers:0"),
    "SGLANG_AGENT_WARMING_DIR": ("", "warming"),
    "SGLANG_AGENT_WARMING_PATHS": ("", "{}x", "[1]", '[{"claim": "a"}]', '[{"claim":1,"mount":2}]'),
    "SGLANG_AGENT_WARMING_GATE_S": ("", "5m", "-1", "nan", "٣"),
    "SGLANG_AGENT_PEERS_MAX_TOKENS": ("", "0", "-1", "many", "9999999999"),
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in BAD.items() for v in values])
def test_a_bad_value_is_refused_with_its_name(name: str, value: str) -> None:
    with pytest.raises(SettingsError) as raised:
        settings_from(
            {
                "SGLANG_AGENT_PEERS_SERVICE": "peers",
                "SGLANG_AGENT_PEERS_MAX_TOKENS": "1",
                name: value,
            }
        )

    assert str(raised.value).startswith(f'{name}: got "{value}"; ')
