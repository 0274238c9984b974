# SPDX-License-Identifier: Apache-2.0
"""Does a document follow a JSON schema? Of schemas: type, enum, required, properties, additionalProperties, items, and $ref to one of the schema's own $defs;
anything else in one is refused."""
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "enum", "required", "properties", "additionalProperties", "items"}
OWN = "#/$defs/"


def is_of(value, name):
    return isinstance(value, TYPES[name]) and not (isinstance(value, bool) and name in ("integer", "number"))


def complaints(schema, value, place="$", whole=None):
    """What is wrong, as lines. `whole` is the schema that `schema` is a part of, if it is not all."""
    whole = schema if whole is None else whole
    for word in set(schema) - KNOWN:
        yield f"{place}: the schema says '{word}', which this does not know"
    if "$ref" in schema:
        to = schema["$ref"]
        if not to.startswith(OWN) or to[len(OWN):] not in whole.get("$defs", {}):
            yield f"{place}: the schema has no '{to}'"
            return
        yield from complaints(whole["$defs"][to[len(OWN):]], value, place, whole)
    names = schema.get("type", list(TYPES))
    if not any(is_of(value, name) for name in ([names] if isinstance(names, str) else names)):
        yield f"{place}: {value!r} is no {names}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place}: {value!r} is none of {schema['enum']}"
    if isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        for name in schema.get("required", []):
            if name not in value:
                yield f"{place}: no '{name}'"
        for name, member in value.items():
            if name in properties:
                yield from complaints(properties[name], member, f"{place}.{name}", whole)
            elif others is False:
                yield f"{place}: '{name}' is not in the schema"
            elif others is not True:
                yield from complaints(others, member, f"{place}.{name}", whole)
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            yield from complaints(schema["items"], item, f"{place}[{number}]", whole)
