"""The types on the wire in the words of TypeScript, made from their JSON Schema.

Covers what `schemas` uses and nothing else: what it does not know raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from assembler.engine.errors import InputError
from assembler.server.schemas import schemas

__all__ = ["typescript"]

_PLAIN = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_SCALARS = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}


def typescript(defined: Mapping[str, Any] | None = None) -> str:
    """A module that exports one type for each schema (those of the wire when left out)."""
    known = schemas() if defined is None else defined
    return "\n\n".join([_HEAD, *(_declared(name, known[name]) for name in sorted(known))]) + "\n"


_HEAD = "// Made by `assembler types`. Change the types it is made from, not this file."


def _declared(name: str, schema: Mapping[str, Any]) -> str:
    said = "\n".join(_comment(schema.get("description"), ""))
    return f"{said}\nexport type {name} = {_type(schema)};".lstrip("\n")


def _comment(text: str | None, indent: str) -> Iterator[str]:
    if text:
        yield f"{indent}/** {' '.join(text.split()).replace('*/', '* /')} */"


def _type(schema: Mapping[str, Any], indent: str = "") -> str:
    """One schema as a type."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " | ".join(dict.fromkeys(_type(each, indent) for each in schema[several]))
    if "enum" in schema:
        return " | ".join(json.dumps(each) for each in schema["enum"])
    return _of_type(schema, indent)


def _of_type(schema: Mapping[str, Any], indent: str) -> str:
    kind = schema.get("type")
    if kind is None and not schema.keys() - {"description", "default"}:
        return "unknown"
    if kind == "array":
        return _array(schema, indent)
    if kind == "object":
        return _object(schema, indent)
    if kind not in _SCALARS:
        raise InputError(f"schema: expected a type that TypeScript has, got {kind!r:.80}")
    return _SCALARS[kind]


def _array(schema: Mapping[str, Any], indent: str) -> str:
    item = _type(schema["items"], indent) if "items" in schema else "unknown"
    length = schema.get("minItems")
    if length and length == schema.get("maxItems"):
        return f"[{', '.join([item] * length)}]"
    return f"({item})[]" if " | " in item else f"{item}[]"


def _object(schema: Mapping[str, Any], indent: str) -> str:
    fields = schema.get("properties")
    if not fields:
        more = schema.get("additionalProperties")
        return f"Record<string, {_type(more, indent) if isinstance(more, Mapping) else 'unknown'}>"
    required = frozenset(schema.get("required", ()))
    inner = indent + "  "
    lines = ["{"]
    for name, each in fields.items():
        lines += _comment(each.get("description"), inner)
        key = name if _PLAIN.fullmatch(name) else json.dumps(name)
        lines.append(f"{inner}{key}{'' if name in required else '?'}: {_type(each, inner)};")
    if "additionalProperties" not in schema:
        lines.append(f"{inner}[more: string]: unknown;")
    return "\n".join([*lines, indent + "}"])
