"""What a conversation is made of, how providers spell it and how clients show it.

The public names. Not here: anything else. `catalog` and `model_context` are the functions, not the
modules of those names, which is why they are imported at once: a submodule imported later would
take their place. The facade
(`Conversations` and what belongs to it) is imported when it is first asked for: who only shows
conversations needs neither a loop nor a store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from definitions.arguments import PartialArguments, partial, same_json
from definitions.catalog import catalog
from definitions.model_context import model_context

if TYPE_CHECKING:
    from definitions.backend import (
        Attempt,
        AttemptLost,
        Call,
        Conversation,
        Conversations,
        Dispatch,
        Step,
        Turn,
    )
    from definitions.describer import Describer
    from definitions.providers import AcpAgent, ClaudeCodeAgent

__all__ = [
    "AcpAgent",
    "Attempt",
    "AttemptLost",
    "Call",
    "ClaudeCodeAgent",
    "Conversation",
    "Conversations",
    "Describer",
    "Dispatch",
    "PartialArguments",
    "Step",
    "Turn",
    "catalog",
    "model_context",
    "partial",
    "same_json",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from definitions import backend, describer, providers  # noqa: PLC0415 - see above

    homes = {"Describer": describer, "AcpAgent": providers, "ClaudeCodeAgent": providers}
    return getattr(homes.get(name, backend), name)
