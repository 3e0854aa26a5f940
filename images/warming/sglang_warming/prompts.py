"""A prompt that is to be warmed, made from what a user has written. Names are SGLang's own."""

import hashlib
import json
import math
import re
from dataclasses import dataclass
from typing import Any

MAX_TOKEN_ID = 2**31 - 1
"""The engine has 32 bits for an id. What its vocabulary lacks, it refuses itself."""

MAX_LEVELS = 100
"""Of objects and lists in an entry. Python's own limit depends on who calls."""

MIN_REPEAT_S = 1.0
DURATION = re.compile(r"(?=\d)(?:(\d{1,5})h)?(?:(\d{1,5})m)?(?:(\d{1,5})s)?", re.ASCII)

KINDS = ("text", "input_ids", "messages")
ONLY_WITH_MESSAGES = ("tools", "chat_template_kwargs")
NAMES = ("lora_path", "cache_salt")
KEYS = (*KINDS, *ONLY_WITH_MESSAGES, *NAMES, "repeat_interval")


class EntryError(ValueError):
    """An entry that cannot be used: field, what it is, rule, fix. Never the text of a prompt."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """Exactly one of `text`, `input_ids` and `messages` is set."""

    text: str | None = None
    input_ids: tuple[int, ...] | None = None
    messages: tuple[dict[str, Any], ...] | None = None
    tools: tuple[dict[str, Any], ...] | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    lora_path: str | None = None
    cache_salt: str | None = None
    repeat_interval_s: float | None = None

    def fields(self) -> dict[str, Any]:
        """What makes it this prompt and no other one: all that is set but how often it is sent."""
        named = {name: getattr(self, name) for name in KEYS[:-1]}
        return {name: value for name, value in named.items() if value is not None}


def identity(prompt: Prompt) -> str:
    """Equal exactly for prompts that warm the same."""
    text = json.dumps(prompt.fields(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def prompt_of(entry: Any) -> Prompt:
    """The prompt that a parsed entry of a file describes. EntryError where it describes none."""
    if isinstance(entry, str):
        return Prompt(text=_text("entry", _sendable(entry)))
    if isinstance(entry, list):
        return Prompt(input_ids=token_ids("entry", entry))
    if isinstance(entry, dict):
        return _described(_sendable(entry))
    raise EntryError(
        f"entry: got {kind(entry)}; it is a text, a list of token ids or an object; write one of them"
    )


def token_ids(field: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise EntryError(f"{field}: got {kind(value)}; token ids are a list; write it like [1, 2]")
    if not value:
        raise EntryError(f"{field}: got no ids; a prompt has one at least; remove the entry")
    for place, number in enumerate(value):
        if type(number) is not int:
            raise EntryError(
                f"{field}: got {kind(number)} at position {place}; a token id is a whole number; "
                "write text as a string, not in a list"
            )
        if not 0 <= number <= MAX_TOKEN_ID:
            raise EntryError(
                f"{field}: got an id out of range at position {place}; ids go from 0 to "
                f"{MAX_TOKEN_ID}; take them from the model's tokenizer"
            )
    return tuple(value)


def kind(value: Any) -> str:
    """What a JSON value is, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return f"a string of {len(value)} characters"
        case list():
            return f"a list of {len(value)}"
        case _:
            return f"an object of {len(value)} keys"


def _described(entry: dict[str, Any]) -> Prompt:
    entry = {key: value for key, value in entry.items() if value is not None}
    unknown = sorted(entry.keys() - set(KEYS))
    if unknown:
        raise EntryError(f'unknown key "{unknown[0][:40]}"; known are {", ".join(KEYS)}; remove it')
    present = [name for name in KINDS if name in entry]
    if len(present) != 1:
        raise EntryError(
            f"entry: got {' and '.join(present) or 'no prompt'}; it has exactly one of "
            f"{', '.join(KINDS)}; write one"
        )
    for name in ONLY_WITH_MESSAGES:
        if name in entry and "messages" not in entry:
            raise EntryError(f"{name}: is for messages only; remove it, or write messages")
    tools = entry.get("tools")
    return Prompt(
        text=_text("text", entry["text"]) if "text" in entry else None,
        input_ids=token_ids("input_ids", entry["input_ids"]) if "input_ids" in entry else None,
        messages=_messages(entry["messages"]) if "messages" in entry else None,
        tools=None if tools is None else _objects("tools", tools),
        chat_template_kwargs=_object(entry.get("chat_template_kwargs")),
        lora_path=_name("lora_path", entry.get("lora_path")),
        cache_salt=_name("cache_salt", entry.get("cache_salt")),
        repeat_interval_s=_interval_s(entry.get("repeat_interval")),
    )


def _text(field: str, value: Any) -> str:
    if not isinstance(value, str):
        raise EntryError(f"{field}: got {kind(value)}; it is a string; write it in quotes")
    if not value:
        raise EntryError(f"{field}: is empty; a prompt has a token at least; remove the entry")
    return value


def _messages(value: Any) -> tuple[dict[str, Any], ...]:
    messages = _objects("messages", value)
    for place, message in enumerate(messages):
        if not isinstance(message.get("role"), str):
            raise EntryError(
                f"messages: got one without a role at position {place}; each has a role; "
                'write it like {"role": "system", "content": "..."}'
            )
    return messages


def _objects(field: str, value: Any) -> tuple[dict[str, Any], ...]:
    if not (isinstance(value, list) and value and all(isinstance(item, dict) for item in value)):
        raise EntryError(f"{field}: got {kind(value)}; it is a list of one or more objects")
    return tuple(value)


def _object(value: Any) -> dict[str, Any] | None:
    if value is None or isinstance(value, dict):
        return value
    raise EntryError(f"chat_template_kwargs: got {kind(value)}; it is an object")


def _name(field: str, value: Any) -> str | None:
    if value is None or (isinstance(value, str) and value):
        return value
    raise EntryError(f"{field}: got {kind(value)}; it is a string that is not empty; or remove it")


def _interval_s(value: Any) -> float | None:
    if value is None:
        return None
    seconds = _seconds(value)
    if seconds is None or not MIN_REPEAT_S <= seconds <= 100_000 * 3600:
        seen = f'"{value[:20]}"' if isinstance(value, str) else kind(value)
        raise EntryError(
            f"repeat_interval: got {seen}; it is a time of {MIN_REPEAT_S:g} s or more, in seconds "
            'or with units (h, m or s); write it like "10m"'
        )
    return seconds


def _seconds(value: Any) -> float | None:
    if type(value) in (int, float):
        return float(value) if abs(value) < 1e9 else None
    if isinstance(value, str) and (found := DURATION.fullmatch(value)):
        hours, minutes, seconds = (int(part or 0) for part in found.groups())
        return float(3600 * hours + 60 * minutes + seconds)
    return None


def _sendable(entry: Any, levels: int = MAX_LEVELS) -> Any:
    """The entry, which JSON in UTF-8 can carry to the engine and every reader can take apart."""
    if levels == 0:
        raise EntryError(f"entry: is nested deeper than {MAX_LEVELS} levels; flatten it")
    match entry:
        case str():
            try:
                entry.encode()
            except UnicodeEncodeError:
                problem = "entry: has half of a surrogate pair; that is no character; remove it"
                raise EntryError(problem) from None
        case float() if not math.isfinite(entry):
            raise EntryError("entry: has a number out of range; JSON cannot carry it; remove it")
        case list():
            for item in entry:
                _sendable(item, levels - 1)
        case dict():
            for key, item in entry.items():
                _sendable(key)
                _sendable(item, levels - 1)
    return entry
