"""Prompt files, read entry by entry: any bytes give prompts or problems, never an exception.

JSON is one entry or a list of them, JSONL an entry a line, plain text one prompt.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, BinaryIO

from sglang_warming.prompts import EntryError, Prompt, prompt_of

LIMIT_BYTES = 8 * 2**20
"""Of what is read as a whole: a line of JSONL, any other file. A million token ids have 7 MB."""

MAX_PROBLEMS = 1000
PIECE_BYTES = 2**16
WHITE = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why an entry is no prompt. `index` None: it is about the whole file, or about `count` more."""

    index: int | None
    message: str
    count: int = 1


Entry = tuple[int, Prompt] | Problem


def entries(name: str, stream: BinaryIO) -> Iterator[Entry]:
    """What the file holds, in its order. OSError only where the stream cannot be read."""
    told = left_out = 0
    for entry in _entries(name, stream):
        if not isinstance(entry, Problem) or told < MAX_PROBLEMS:
            told += isinstance(entry, Problem)
            yield entry
        else:
            left_out += 1
    if left_out:
        yield Problem(None, f"{left_out} more problems are not told", left_out)


def _entries(name: str, stream: BinaryIO) -> Iterator[Entry]:
    ending = name.lower().rpartition(".")[2]
    if ending == "jsonl":
        return _jsonl(_pieces(stream))
    start = stream.read(LIMIT_BYTES + 1)
    if ending not in ("json", "txt"):
        ending = _form(start)
    if ending == "jsonl":
        return _jsonl(chain((start,), _pieces(stream)))
    if len(start) > LIMIT_BYTES:
        return iter((_too_large("a file that is not JSONL"),))
    return _json(start) if ending == "json" else _plain(start)


def _form(start: bytes) -> str:
    """What a file is whose name does not say it: the first that fits."""
    if len(start) <= LIMIT_BYTES and _is_json(start):
        return "json"
    line = start.lstrip().partition(b"\n")[0]
    return "jsonl" if _is_json(line) else "txt"


def _is_json(data: bytes) -> bool:
    """Whether it parses. A number or a word alone is rather how a text begins."""
    try:
        text = _decoded(data).strip(WHITE)
        if not text.startswith(("[", "{", '"')):
            return False
        # Element by element: a long list is never in memory as a whole.
        for _ in _elements(text) if text.startswith("[") else (DECODER.decode(text),):
            pass
    except (EntryError, ValueError, RecursionError):
        return False
    return True


def _plain(data: bytes) -> Iterator[Entry]:
    try:
        text = _decoded(data)
        yield 0, prompt_of(text.removesuffix("\n").removesuffix("\r"))
    except EntryError as error:
        yield Problem(0, str(error))


def _jsonl(pieces: Iterable[bytes]) -> Iterator[Entry]:
    index = 0
    for line in _lines(pieces):
        if line is None:
            yield Problem(index, _too_large("a line").message)
        elif line.strip():
            yield from _parsed(index, line)
        else:
            continue  # a blank line is no entry
        index += 1


def _parsed(index: int, line: bytes) -> Iterator[Entry]:
    try:
        yield index, prompt_of(DECODER.decode(_decoded(line)))
    except EntryError as error:
        yield Problem(index, str(error))
    except (ValueError, RecursionError) as error:
        yield Problem(index, _not_json(error))


def _json(data: bytes) -> Iterator[Entry]:
    """One entry, or a list of them, of which those before a mistake count."""
    index = 0
    try:
        text = _decoded(data).strip(WHITE)
        if not text.startswith("["):
            yield 0, prompt_of(DECODER.decode(text))
            return
        elements = _elements(text)
        for element in elements:
            if index == 0 and type(element) in (int, float):
                yield 0, prompt_of([element, *elements])
            else:
                yield from _element(index, element)
            index += 1
    except EntryError as error:
        yield Problem(0, str(error))
    except (ValueError, RecursionError) as error:
        yield Problem(index, _not_json(error))


def _element(index: int, element: Any) -> Iterator[Entry]:
    try:
        yield index, prompt_of(element)
    except EntryError as error:
        yield Problem(index, str(error))


def _elements(text: str) -> Iterator[Any]:
    """Those of a JSON list, parsed one at a time. ValueError where it is broken."""
    place = _past_white(text, 1)
    if text.startswith("]", place):
        place += 1
    else:
        while True:
            element, place = DECODER.raw_decode(text, place)
            yield element
            place = _past_white(text, place)
            if text.startswith("]", place):
                place += 1
                break
            if not text.startswith(",", place):
                raise json.JSONDecodeError("expecting , or ]", text, place)
            place = _past_white(text, place + 1)
    if place != len(text):
        raise json.JSONDecodeError("extra data", text, place)


def _past_white(text: str, place: int) -> int:
    while place < len(text) and text[place] in WHITE:
        place += 1
    return place


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes | None]:
    """None for one that is too long."""
    line = b""
    skipping = False
    for piece in pieces:
        *ended, rest = piece.split(b"\n")
        for end in ended:
            line += end
            yield None if skipping or len(line) > LIMIT_BYTES else line
            line, skipping = b"", False
        line += rest
        if len(line) > LIMIT_BYTES:
            line, skipping = b"", True
    if line or skipping:
        yield None if skipping else line


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    while piece := stream.read(PIECE_BYTES):
        yield piece


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise EntryError(f"byte {error.start} is not UTF-8; save the file as UTF-8") from None


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


DECODER = json.JSONDecoder(parse_constant=_refused)


def _not_json(error: Exception) -> str:
    match error:
        case json.JSONDecodeError():
            return f"not JSON: {error.msg.lower()} at character {error.pos}; correct it"
        case RecursionError():
            return "not JSON that can be read: it is nested too deep; flatten it"
        case _:
            # Python's own words for NaN and for numbers of thousands of digits.
            return "not JSON that can be read: it has a number that JSON does not know; correct it"


def _too_large(what: str) -> Problem:
    return Problem(
        None,
        f"{what} has more than {LIMIT_BYTES} bytes; such a file has to be JSONL, an entry a line; "
        "split it",
    )
