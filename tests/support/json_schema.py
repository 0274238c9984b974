# SPDX-License-Identifier: Apache-2.0
"""Does a document follow a JSON schema? Of schemas: type, enum, required, properties, additionalProperties, items; anything else in one is refused."""
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "title", "description", "type", "enum", "required", "properties", "additionalProperties", "items"}


def is_of(value, name):
    return isinstance(value, TYPES[name]) and not (isinstance(value, bool) and name in ("integer", "number"))


def complaints(schema, value, place="$"):
    """What is wrong, as lines."""
    for word in set(schema) - KNOWN:
        yield f"{place}: the schema says '{word}', which this does not know"
    names = schema.get("type", list(TYPES))
    if not any(is_of(value, name) for name in ([names] if isinstance(names, str) else names)):
        yield f"{place}: {value!r} is no {names}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place}: {value!r} is none of {schema['enum']}"
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        for name in schema.get("required", []):
            if name not in value:
                yield f"{place}: no '{name}'"
        for name, member in value.items():
            if name in properties:
                yield from complaints(properties[name], member, f"{place}.{name}")
            elif schema.get("additionalProperties") is False:
                yield f"{place}: '{name}' is not in the schema"
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            yield from complaints(schema["items"], item, f"{place}[{number}]")
