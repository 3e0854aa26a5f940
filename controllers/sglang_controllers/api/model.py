"""What every API model shares: names in camelCase, strict types, and rules said once."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
)
from pydantic import model_validator as validator
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition between fields, checked by the API server (`cel`) and by us (`holds`).

    `field` is the path below the model, which the answer names, and `message` says rule and fix.
    `seen` is a text field whose value the answer repeats; empty: it shows none, for the API server
    estimates the cost of turning a number into text as unbounded.
    """

    field: str
    message: str
    cel: str
    holds: Callable[[Any], bool]
    seen: str = ""

    def validation(self) -> dict[str, str]:
        """The rule as an entry of `x-kubernetes-validations`."""
        entry = {"rule": self.cel, "message": self.message}
        if self.seen:
            # JSON's notation of text is CEL's too.
            before, after = json.dumps('got "'), json.dumps(f'"; {self.message}')
            entry["messageExpression"] = f"{before} + self.{self.seen} + {after}"
        if self.field:
            entry["fieldPath"] = f".{self.field}"
        return entry


@dataclass(frozen=True, slots=True)
class Worded:
    """A text whose rule is said in words, where a pattern would be answered with itself.

    `pattern` has its ^ and $; `message` says rule and fix.
    """

    pattern: str
    message: str
    max_length: int

    def __get_pydantic_core_schema__(self, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        text = core_schema.str_schema(max_length=self.max_length)
        return core_schema.no_info_after_validator_function(self._checked, text)

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        rule = {"rule": f"self.matches(r'{self.pattern}')", "message": self.message}
        schema = handler(core_schema.str_schema(max_length=self.max_length))
        return schema | {"x-kubernetes-validations": [rule]}

    def _checked(self, text: str) -> str:
        if not re.fullmatch(self.pattern, text, re.ASCII):
            raise ValueError(self.message)
        return text


def above_zero(field: str, example: str) -> Rule:
    """A rule and no minimum: the API server lets a whole 0 pass a minimum like 0.01."""
    return Rule(
        field=to_camel(field),
        message=f"must be more than 0; write {example} or remove it",
        cel=f"!has(self.{to_camel(field)}) || self.{to_camel(field)} > 0.0",
        holds=lambda model: getattr(model, field) is None or getattr(model, field) > 0,
    )


class BrokenRulesError(ValueError):
    """Rules that a value breaks, in the order in which the model lists them."""

    def __init__(self, rules: list[Rule]) -> None:
        super().__init__("; ".join(rule.message for rule in rules))
        self.rules = rules


def as_stored(raw: dict[str, Any]) -> dict[str, Any]:
    """`raw` as the API server stores it: without nulls, and 2.0 is 2. Files are read alike."""
    return {
        key: int(value) if isinstance(value, float) and value.is_integer() else value
        for key, value in raw.items()
        if value is not None
    }


def each_once(key: str) -> AfterValidator:
    """No two items of a list share their `key`, as `list_map` has it in the schema."""

    def check(items: list[Any]) -> list[Any]:
        seen = [item[key] if isinstance(item, dict) else getattr(item, key) for item in items]
        for one in seen:
            if seen.count(one) > 1:
                raise ValueError(f'two items have the {key} "{one}"; remove one')
        return items

    return AfterValidator(check)


class Model(BaseModel):
    """An object of the API. Unknown fields are ignored: the API server has pruned them."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="ignore",
        alias_generator=to_camel,
        use_attribute_docstrings=True,
    )

    rules: ClassVar[tuple[Rule, ...]] = ()

    @validator(mode="before")
    @classmethod
    def _as_stored(cls, raw: Any) -> Any:
        return as_stored(raw) if isinstance(raw, dict) else raw

    @validator(mode="after")
    def _follows_rules(self) -> Self:
        broken = [rule for rule in self.rules if not rule.holds(self)]
        if broken:
            raise BrokenRulesError(broken)
        return self

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        json_schema = handler(schema)
        if cls.rules:
            handler.resolve_ref_schema(json_schema)["x-kubernetes-validations"] = [
                rule.validation() for rule in cls.rules
            ]
        return json_schema


def list_map(key: str) -> JsonDict:
    """Schema of a list whose items are told apart by `key`: server-side apply merges them."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


@dataclass(frozen=True, slots=True)
class ShapedBy:
    """Marks a dict that stays a dict, but is checked and documented as `model`.

    For pieces of Kubernetes' own API that are passed on as they came.
    """

    model: type[Model]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(self.model.__pydantic_core_schema__)

    def _checked(self, raw: dict[str, Any]) -> dict[str, Any]:
        self.model.model_validate(raw)
        return raw
