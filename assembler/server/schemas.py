"""The JSON Schema of everything on the wire, made from the types of `wire`."""

from __future__ import annotations

from typing import Any

import msgspec

from assembler.server import wire

__all__ = ["schemas"]

_TYPES = (
    wire.Snapshot,
    wire.Patch,
    wire.End,
    wire.Listing,
    wire.Shown,
    wire.Older,
    wire.Appending,
    wire.Appended,
    wire.Emitting,
    wire.Settling,
    wire.Taken,
    wire.Draft,
    wire.Delta,
    wire.Refusal,
    wire.Health,
)


def schemas(template: str = "#/$defs/{name}") -> dict[str, Any]:
    """The schema of every type on the wire, by name, referring to each other by `template`."""
    return msgspec.json.schema_components(_TYPES, ref_template=template)[1]
