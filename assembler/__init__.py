"""Turn what happens in an LLM conversation into what people see.

Durable events and transient deltas go into an `Assembler`; Definitions (`match`, `start`,
`update`) say what they add up to; Views of Nodes, and the Patches between them, come out.
Here stand the public names of the engine; what a conversation is made of is `definitions`.
"""

from __future__ import annotations

from assembler.engine.assembler import Assembler
from assembler.engine.definition import (
    FRAME,
    NONE,
    NOW,
    START,
    UNNAMED,
    UPDATE,
    Anomaly,
    Cadence,
    Context,
    Definition,
    Group,
    GroupDefinition,
    Match,
    Members,
    Node,
    Reader,
    Role,
    Scope,
)
from assembler.engine.errors import (
    AssemblerError,
    ConflictError,
    DefinitionError,
    GapError,
    InputError,
    LimitError,
    RecordingError,
)
from assembler.engine.events import Delta, Draft, Event, Outcome, Position
from assembler.engine.locations import Location, Status
from assembler.engine.patches import Patch, Snapshot, apply, merge
from assembler.engine.values import Text
from assembler.engine.views import View
from assembler.engine.window import WindowView as Window

__version__ = "0.1.0"

__all__ = [
    "FRAME",
    "NONE",
    "NOW",
    "START",
    "UNNAMED",
    "UPDATE",
    "Anomaly",
    "Assembler",
    "AssemblerError",
    "Cadence",
    "ConflictError",
    "Context",
    "Definition",
    "DefinitionError",
    "Delta",
    "Draft",
    "Event",
    "GapError",
    "Group",
    "GroupDefinition",
    "InputError",
    "LimitError",
    "Location",
    "Match",
    "Members",
    "Node",
    "Outcome",
    "Patch",
    "Position",
    "Reader",
    "RecordingError",
    "Role",
    "Scope",
    "Snapshot",
    "Status",
    "Text",
    "View",
    "Window",
    "__version__",
    "apply",
    "merge",
]
