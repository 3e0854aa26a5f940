"""The part of JSON Schema that images/agent/openapi.yaml uses."""

from typing import Any

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
    "array": (list,),
}
KNOWN = {
    *("type", "enum", "minimum", "required", "additionalProperties", "properties", "items"),
    *("description", "examples"),
}


def problems(value: Any, schema: dict[str, Any], at: str = "answer") -> list[str]:
    """What of the value the schema does not allow."""
    assert schema.keys() <= KNOWN, f"this checks no {schema.keys() - KNOWN}"
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    # Python's booleans are integers, JSON's are not.
    fits = [
        name
        for name in types
        if isinstance(value, TYPES[name]) and isinstance(value, bool) == (name == "boolean")
    ]
    if not fits:
        return [f"{at}: {value!r} is none of {types}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at}: {value!r} is none of {schema['enum']}")
    if "minimum" in schema and value is not None and value < schema["minimum"]:
        found.append(f"{at}: {value!r} is below {schema['minimum']}")
    if isinstance(value, list):
        for place, item in enumerate(value):
            found += problems(item, schema["items"], f"{at}[{place}]")
    if isinstance(value, dict):
        properties = schema["properties"]
        found += [f"{at}: no {name}" for name in schema["required"] if name not in value]
        found += [f"{at}: {name} is unknown" for name in value if name not in properties]
        for name in value.keys() & properties.keys():
            found += problems(value[name], properties[name], f"{at}.{name}")
    return found
