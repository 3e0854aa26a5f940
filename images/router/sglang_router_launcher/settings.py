"""What the launcher is told: two environment variables. Everything else is smg's, as arguments."""

from collections.abc import MutableMapping
from dataclasses import dataclass, field

API_KEY = "SGLANG_ROUTER_API_KEY"
LIST_PORT = "SGLANG_ROUTER_LIST_PORT"
DEFAULT_LIST_PORT = 29001


class SettingsError(ValueError):
    """A variable that cannot be used; the text says which and why, and shows no key."""


@dataclass(frozen=True, slots=True)
class Settings:
    api_key: str | None = field(repr=False)
    """What clients have to show. None: everybody is let in."""
    list_port: int


def settings_taken_from(environment: MutableMapping[str, str]) -> Settings:
    """The settings. The key is removed from the environment: what runs later must not see it."""
    given = environment.pop(API_KEY, None)
    if given == "":  # to take it for no key would let everybody in
        raise SettingsError(f"{API_KEY}: the key is empty; write one, or leave the variable out")
    key = given or ""
    # A header cannot carry it, so nobody could ever show it.
    if not key.isascii() or not key.isprintable() or " " in key:
        raise SettingsError(
            f"{API_KEY}: the value has a blank, a line break or a character beyond ASCII; "
            "an HTTP header cannot carry such a key; write one of letters and digits"
        )
    port = environment.get(LIST_PORT, "").strip() or str(DEFAULT_LIST_PORT)
    if not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65535):
        raise SettingsError(
            f'{LIST_PORT}: got "{port}"; a port is a number from 1 to 65535; '
            f'write it like "{DEFAULT_LIST_PORT}"'
        )
    return Settings(key or None, int(port))
