"""Arguments as fields: typed ones where there are any, extraArgs for the rest."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from pydantic.alias_generators import to_camel, to_snake

from sglang_controllers.api.cache import Slru, Tlru
from sglang_controllers.api.flags import FLAGS, Takes
from sglang_controllers.api.model import Model
from sglang_controllers.api.settings import DRAFTING, NGRAM, SETTINGS, Kind, Setting
from sglang_controllers.convert.arguments import Given
from sglang_controllers.convert.sources import NoSourceError, is_hub_id, last_part, source_of

ON_BY_PRESENCE = (
    ("cache.hiCache.storage", "hicache-storage-backend"),
    ("cache.hiCache", "enable-hierarchical-cache"),
    ("scheduling.priority", "enable-priority-scheduling"),
)
"""Objects whose presence switches something on, and the flag that does it."""

SUFFIXES = {
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
"""SGLang's, sglang/srt/utils/common.py, human_readable_int. Case matters."""


FOLDERS = ("speculative-draft-model-path", "speculative-draft-model", "tokenizer-path")
"""Flags that take a folder or a hub id, where no field mounts it."""


class NotTakenError(ValueError):
    """Why an argument has no place in a spec, in a sentence without its name."""


@dataclass(slots=True)
class Fields:
    """A spec while it is written. `spelled` tells by field which argument set it."""

    spec: dict[str, Any] = field(default_factory=dict)
    spelled: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def put(self, path: str, value: Any, given: Given) -> None:
        *parents, last = path.split(".")
        target = self.spec
        for part in parents:
            target = target.setdefault(part, {})
        target[last] = value
        self.spelled[path] = given.spelled


def take(given: Sequence[Given], fields: Fields) -> None:
    """Write each argument that no other part of the conversion has taken into `fields`."""
    # The last one counts, as in SGLang.
    said = _with_draft_revision({one.flag: one for one in given})
    placed = [(_setting(one, said), one) for one in said.values()]
    # In the order of the fields: what switches an object on comes before what is in it.
    for setting, one in sorted(placed, key=lambda pair: _place(pair[0])):
        try:
            if setting is None:
                _extra(one, fields)
            elif switch := _off(setting, said):
                fields.warnings.append(f"{one.spelled}: has no effect without {switch}; left out")
            else:
                _typed(setting, one, fields)
        except NotTakenError as error:
            fields.problems.append(f"{one.spelled}: {error}")


def _with_draft_revision(said: dict[str, Given]) -> dict[str, Given]:
    """A draft model of a hub takes its revision along; a folder has none."""
    revision = said.get("speculative-draft-model-revision")
    flags = (flag for flag in ("speculative-draft-model-path", "speculative-draft-model"))
    model = next((said[flag] for flag in flags if flag in said), None)
    if revision is None or model is None or not is_hub_id(model.values[0]) or not _member(said):
        return said
    pinned = replace(model, values=(f"{model.values[0]}@{revision.values[0]}",))
    return {flag: one for flag, one in said.items() if one is not revision} | {model.flag: pinned}


def _place(setting: Setting | None) -> int:
    return len(SETTINGS) if setting is None else SETTINGS.index(setting)


def _setting(one: Given, said: dict[str, Given]) -> Setting | None:
    """The field that takes an argument; None for extraArgs."""
    for setting in SETTINGS:
        if one.flag not in (setting.flag, *setting.aliases):
            continue
        if setting.claims:
            if one.values[0].upper() in setting.claims:
                return setting
        elif not setting.within or setting.within == _active(setting.within, said):
            return setting
    return None


def _active(within: str, said: dict[str, Given]) -> str:
    if within in (NGRAM, *DRAFTING):
        return _member(said)
    policy = said.get("radix-eviction-policy")
    return f"cache.eviction.{policy.values[0]}" if policy else ""


def _member(said: dict[str, Given]) -> str:
    """The member of the union `speculative` that the command switches on; empty for none."""
    algorithm = said.get("speculative-algorithm")
    setting = _setting(algorithm, said) if algorithm else None
    return setting.within if setting else ""


def _off(setting: Setting, said: dict[str, Given]) -> str | None:
    """What would have to be there for an argument to matter; None when it does."""
    flags = {flag for one in said for flag in _names(one)}
    for path, flag in ON_BY_PRESENCE:
        if setting.field.startswith(f"{path}.") and flag not in flags:
            return f"--{flag}"
    if setting.field.startswith(f"{NGRAM}.") and _member(said) != NGRAM:
        return "--speculative-algorithm NGRAM"
    return None


def _names(flag: str) -> Iterator[str]:
    yield flag
    yield from (s.flag for s in SETTINGS if flag in s.aliases)


def _typed(setting: Setting, one: Given, fields: Fields) -> None:
    match setting.kind:
        case Kind.VALUE:
            value = _value(one.flag, one.values[0])
            if one.flag in FOLDERS:
                _warn_of_hub(one, fields)
            # SGLang takes names of algorithms in small letters, too.
            fields.put(setting.field, value.upper() if setting.claims else value, one)
        case Kind.LIST:
            fields.put(setting.field, [_whole(value) for value in one.values], one)
        case Kind.SWITCH:
            fields.put(setting.field, setting.value, one)
        case Kind.PRESENCE:
            _present(setting.field, one, fields)
        case Kind.JSON:
            fields.put(setting.field, _policy_settings(setting, one.values[0], fields), one)
        case Kind.FOLDER:
            fields.put(setting.field, _source(setting.field, one.values[0], fields), one)
        case Kind.FOLDERS:
            fields.put(setting.field, [_adapter(value, fields) for value in one.values], one)
        case _:
            assert_never(setting.kind)


def _present(path: str, one: Given, fields: Fields) -> None:
    """An object that is there already keeps what is in it."""
    there: Any = fields.spec
    for part in path.split("."):
        there = there.get(part, {}) if isinstance(there, dict) else {}
    fields.put(path, there, one)


POLICY_SETTINGS: dict[str, type[Model]] = {"slru": Slru, "tlru": Tlru}


def _policy_settings(setting: Setting, text: str, fields: Fields) -> dict[str, Any]:
    policy = fields.spec.get("cache", {}).get("eviction", {}).get("policy")
    if policy is None or not setting.field.endswith(policy):
        raise NotTakenError("only the eviction policies slru and tlru take settings; remove it")
    settings, known = _object(text), POLICY_SETTINGS[policy].model_fields
    for key in settings:
        if to_snake(key) not in known:
            raise NotTakenError(f'{policy} has no "{to_snake(key)}"; it takes {", ".join(known)}')
    return settings


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise NotTakenError(f"got {text}; must be JSON ({error})") from error
    if not isinstance(value, dict):
        raise NotTakenError(f"got {text}; must be a JSON object")
    return {to_camel(key): item for key, item in value.items()}


def _adapter(text: str, fields: Fields) -> dict[str, Any]:
    """SGLang's forms: NAME=PATH, a JSON object, or a path that is the name as well."""
    path_name, equals, path = text.partition("=")
    if text.startswith("{"):
        parts = _object(text)
        name, path = str(parts.get("loraName", "")), str(parts.get("loraPath", ""))
        if parts.get("pinned"):
            fields.warnings.append(f"--lora-paths: {name} is not pinned; there is no field for it")
    elif equals:
        name = path_name
    else:
        name, path = last_part(text), text
        fields.warnings.append(
            f"--lora-paths: clients ask for the adapter {text} as {name} from now on"
        )
    return {"name": name, "source": _source(f"model.loraAdapters[{name}].source", path, fields)}


def _source(path: str, text: str, fields: Fields) -> str:
    try:
        return source_of(text, f"spec.{path}", fields.warnings.append)
    except NoSourceError as error:
        raise NotTakenError(str(error)) from error


def _value(flag: str, text: str) -> Any:
    match FLAGS[flag]:
        case Takes.WHOLE:
            return int(text)
        case Takes.DECIMAL:
            return float(text)
        case _:
            return _human_number(text) if flag == "context-length" else text


def _whole(text: str) -> int:
    """An item of a list: all lists with a field are of batch sizes."""
    try:
        return int(text)
    except ValueError as error:
        raise NotTakenError(f'got "{text}"; the flag takes whole numbers; write digits') from error


def _human_number(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(Ki|Mi|Gi|Ti|k|M|G|T)?", text.strip())
    if not match or ("." in match[1] and match[2] not in ("k", "M", "G", "T")):
        raise NotTakenError(f'got "{text}"; the flag takes one whole number; write it as digits')
    return round(float(match[1]) * SUFFIXES[match[2]]) if match[2] else int(match[1])


def _extra(one: Given, fields: Fields) -> None:
    takes = FLAGS[one.flag]
    value: Any = [_plain(text) for text in one.values]
    if takes is Takes.SWITCH or not one.values:
        value = True
    elif takes not in (Takes.LIST, Takes.OPTIONAL):
        value = value[0]
    if one.flag in FOLDERS:
        _warn_of_hub(one, fields)
    fields.spec.setdefault("engine", {}).setdefault("extraArgs", {})[one.flag] = value
    fields.spelled[f"engine.extraArgs.{one.flag}"] = one.spelled


def _warn_of_hub(one: Given, fields: Fields) -> None:
    if not one.values[0].startswith("/"):
        fields.warnings.append(
            f"{one.spelled}: engines download nothing themselves; mount {one.values[0]} with "
            "spec.podTemplate and write its folder"
        )


def _plain(text: str) -> Any:
    """A number where it is written back as it was, else the text itself."""
    for number in (int, float):
        try:
            value = number(text)
        except ValueError:
            continue
        if json.dumps(value) == text:
            return value
    return text
