"""Input that waits in a queue and is taken from it: one State for each splice, shown by nobody.

Each State goes on from the splice before it, so that the nearest one answers for those just before
it too: a splice that claims is often followed by others before its messages are written. Not here:
what a claim makes of a message (`message`).
"""

from __future__ import annotations

from assembler.engine.definition import START, Definition, Match, Reader, Role
from assembler.engine.events import Event
from definitions.events import named
from definitions.shared import InboxState

__all__ = ["Inbox"]

_CLAIMS_MAX = 32
"""So many claims are looked back at. What lies further back is no claim of a message that comes
now, and a State that kept all would make every page change all that follows."""


class Inbox(Definition):
    """One splice. The id is its seq."""

    kind = "inbox"
    takes = frozenset({"inbox/spliced"})

    def match(self, item: Event) -> tuple[str, Role] | None:
        return (str(item.seq), START) if type(item) is Event else None

    def start(self, match: Match, reader: Reader) -> InboxState:
        before = reader.previous("inbox")
        state: InboxState = InboxState() if before is None else before[1]
        queue, claimed = named(match.data, "queue"), match.data.get("claimed")
        if queue is None or type(claimed) is not tuple:
            return state
        new = [(name, queue) for name in claimed if type(name) is str and name]
        return InboxState((*state.claims, *new)[-_CLAIMS_MAX:]) if new else state

    def update(self, state: InboxState, match: Match) -> InboxState:
        return state
