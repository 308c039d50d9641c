"""Describes calls before they are requested; an approval never shows what was made of other input.

`Core` decides (no loop), `Describer` runs it in one. Not here: how a description is kept and shown
(`definitions/description.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from definitions.describer.core import Core
from definitions.describer.values import Action, Counts, Shown, Start, Stop, Verdict, Write

if TYPE_CHECKING:
    from definitions.describer.shell import Described, Describer, Job

__all__ = [
    "Action",
    "Core",
    "Counts",
    "Described",
    "Describer",
    "Job",
    "Shown",
    "Start",
    "Stop",
    "Verdict",
    "Write",
]


def __getattr__(name: str) -> Any:
    """Import the shell when it is first asked for: who only decides needs no loop."""
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from definitions.describer import shell  # noqa: PLC0415 - see above

    return getattr(shell, name)
