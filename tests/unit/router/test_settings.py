import pytest

from sglang_router_launcher.settings import (
    API_KEY,
    LIST_PORT,
    Settings,
    SettingsError,
    settings_taken_from,
)


@pytest.mark.parametrize("environment", [{}, {LIST_PORT: ""}])
def test_everything_has_a_default(environment: dict[str, str]) -> None:
    assert settings_taken_from(environment) == Settings(api_key=None, list_port=29001)


def test_an_empty_key_does_not_let_everybody_in() -> None:
    with pytest.raises(SettingsError, match="the key is empty"):
        settings_taken_from({API_KEY: ""})


def test_the_key_is_taken_out_of_the_environment() -> None:
    environment = {API_KEY: "sesame", LIST_PORT: "9000", "PATH": "/bin"}

    settings = settings_taken_from(environment)

    assert settings == Settings("sesame", 9000)
    assert environment == {LIST_PORT: "9000", "PATH": "/bin"}


@pytest.mark.parametrize("port", ["0", "65536", "-1", "http", "1.5", "٣", "1_0"])
def test_a_bad_port_is_refused_with_its_name(port: str) -> None:
    with pytest.raises(SettingsError) as raised:
        settings_taken_from({LIST_PORT: port})

    assert str(raised.value).startswith(f'{LIST_PORT}: got "{port}"; ')


@pytest.mark.parametrize("key", ["open sesame", "sesame\n", "sésame", " sesame", "\t"])
def test_a_key_that_no_header_carries_is_refused_and_not_shown(key: str) -> None:
    environment = {API_KEY: key}

    with pytest.raises(SettingsError) as raised:
        settings_taken_from(environment)

    assert str(raised.value).startswith(f"{API_KEY}: ")
    assert key.strip() == "" or key.strip() not in str(raised.value)
    assert environment == {}


def test_settings_do_not_show_the_key() -> None:
    assert "sesame" not in repr(Settings("sesame", 29001))
