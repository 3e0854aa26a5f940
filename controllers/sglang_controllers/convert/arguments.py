"""SGLang's part of a launch command, read as its own parser reads it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sglang_controllers.api.flags import FLAGS, Takes
from sglang_controllers.api.settings import ENGINE_VERSION
from sglang_controllers.convert.renamed import RENAMED
from sglang_controllers.offers import choice_problem
from sglang_controllers.unknown_flags import contrary, meant

NEGATIVE = re.compile(r"-\d+|-\d*\.\d+")


@dataclass(frozen=True, slots=True)
class Given:
    """One argument: `flag` as SGLang calls it, `spelled` as the command does, with its dashes."""

    flag: str
    spelled: str
    values: tuple[str, ...]


class UnreadableError(ValueError):
    """Why an argument cannot be read, in a sentence that begins with it."""


def arguments_given(tokens: Sequence[str]) -> tuple[list[Given], list[str]]:
    """What is given, and what cannot be: one problem for each argument that SGLang refuses."""
    given: list[Given] = []
    problems: list[str] = []
    for spelled, written in _groups(tokens):
        try:
            given.append(_read(spelled, written))
        except UnreadableError as error:
            problems.append(str(error))
    return given, problems


def _groups(tokens: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Each flag and the tokens up to the next one. What comes before the first has no flag."""
    spelled, written = "", list[str]()
    for token in tokens:
        if token.startswith("-") and not NEGATIVE.fullmatch(token) and " " not in _name(token):
            if spelled or written:
                yield spelled, written
            spelled, written = token, []
        else:
            written.append(token)
    if spelled or written:
        yield spelled, written


def _name(token: str) -> str:
    return token.partition("=")[0]


def _read(spelled: str, written: list[str]) -> Given:
    if not spelled:
        raise UnreadableError(f"{written[0]}: no flag before it takes it; remove it")
    dashed, equals, value = spelled.partition("=")
    flag = _flag(dashed)
    if equals and written:
        raise UnreadableError(f"{dashed}: no flag takes {written[0]}; remove it")
    values = [value] if equals else written
    _check_count(flag, dashed, values)
    for one in values:
        if problem := _unlike(flag, one):
            raise UnreadableError(f"{dashed}: {problem}")
    return Given(flag, dashed, tuple(values))


def _flag(dashed: str) -> str:
    """The whole flag: SGLang's parser takes a beginning that only one flag has."""
    name = dashed.lstrip("-")
    if name in FLAGS:
        return name
    if name == "h":
        return "help"
    if name in RENAMED:
        raise UnreadableError(
            f"{dashed}: SGLang {ENGINE_VERSION} has no such argument any more; write "
            f'"--{RENAMED[name]}"'
        )
    begun = sorted(flag for flag in FLAGS if name and flag.startswith(name))
    if len(begun) == 1:
        return begun[0]
    if begun:
        raise UnreadableError(
            f"{dashed}: could be --{', --'.join(begun[:4])}; write the whole name"
        )
    plain = name.replace("_", "-")
    if other := contrary(plain):
        fix = f"it is the default, for --{other} changes it; remove it"
    else:
        close = meant(plain)
        fix = f'write "--{close}"' if close else "remove it"
    raise UnreadableError(f"{dashed}: SGLang {ENGINE_VERSION} has no such argument; {fix}")


def _check_count(flag: str, dashed: str, values: list[str]) -> None:
    match FLAGS[flag]:
        case Takes.SWITCH:
            if values:
                raise UnreadableError(
                    f'{dashed}: got "{values[0]}"; the flag takes no value; remove it'
                )
        case Takes.WHOLE | Takes.DECIMAL | Takes.TEXT:
            if not values:
                raise UnreadableError(f"{dashed}: the flag takes {FLAGS[flag]}; write it")
            if len(values) > 1:
                raise UnreadableError(f'{dashed}: no flag takes "{values[1]}"; remove it')
        case Takes.LIST:
            if not values:
                raise UnreadableError(f"{dashed}: the flag takes {FLAGS[flag]}; write them")
        case Takes.OPTIONAL:
            pass


def _unlike(flag: str, value: str) -> str | None:
    takes = FLAGS[flag]
    if takes in (Takes.WHOLE, Takes.DECIMAL):
        try:
            int(value) if takes is Takes.WHOLE else float(value)
        except ValueError:
            return f'got "{value}"; the flag takes {takes}; write it as digits'
    return choice_problem(flag, value)
