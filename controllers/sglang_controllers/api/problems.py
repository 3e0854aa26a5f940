"""Why a spec is refused, in words: field, value seen, rule, fix."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from sglang_controllers.api.model import BrokenRulesError
from sglang_controllers.api.spec import ClusterSpec

MAX_SHOWN = 80
"""Characters of a value that a message repeats."""

_KINDS = {
    "int_type": "must be a whole number",
    "string_type": "must be text; put it in quotes",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
}


class InvalidSpec(ValueError):  # noqa: N818  it carries findings, it is not a failure
    """A spec that the API server would have refused."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def parse_spec(raw: Mapping[str, Any]) -> ClusterSpec:
    """The typed form of a raw `spec`. InvalidSpec when it breaks a rule of the CRD."""
    try:
        return ClusterSpec.model_validate(dict(raw))
    except ValidationError as error:
        details = error.errors(include_url=False)
        raise InvalidSpec(tuple(p for d in details for p in _sentences(d))) from error


def shown(value: Any) -> str:
    """`value` as JSON, shortened."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def field_path(location: tuple[str | int, ...]) -> str:
    """`spec.engine.env[0].name` for a location below `spec`."""
    return "spec" + "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in location
    )


def _sentences(detail: ErrorDetails) -> Iterator[str]:
    path = field_path(detail["loc"])
    cause = detail.get("ctx", {}).get("error")
    if not isinstance(cause, BrokenRulesError):
        yield f"{path}: {_sentence(detail)}"
        return
    for rule in cause.rules:
        where = f"{path}.{rule.field}" if rule.field else path
        value = _value_at(detail["input"], rule.field)
        got = "" if value is None else f"got {shown(value)}; "
        yield f"{where}: {got}{rule.message}"


def _sentence(detail: ErrorDetails) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "missing":
        return "is missing; add it"
    got = f"got {shown(detail['input'])}; "
    if kind in _KINDS:
        return got + _KINDS[kind]
    if kind == "enum":
        return f"{got}must be one of {context['expected']}".replace("'", '"')
    if kind == "value_error":
        return f"{got}{context['error']}"
    return got + detail["msg"].replace("Input should be", "must be").replace("should", "must")


def _value_at(value: Any, path: str) -> Any:
    for key in filter(None, path.split(".")):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
