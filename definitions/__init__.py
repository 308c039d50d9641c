"""What a conversation is made of, how providers spell it and how clients show it.

The public names. Not here: anything else. `catalog` is the function, not the module of that name,
which is why it is imported at once: a submodule imported later would take its place.
"""

from __future__ import annotations

from definitions.arguments import PartialArguments, partial, same_json
from definitions.catalog import catalog

__all__ = ["PartialArguments", "catalog", "partial", "same_json"]
