"""The description of a call: what it was made from, what it says, what was asked while it was made.

State by call id, which `tool` shows. The input that was described stands beside the text and is
compared with what the approval shows: a text made from anything else is never shown. Not here: who
describes and when (`describer`), the arguments that run (`tool`, `approval`).
"""

from __future__ import annotations

from msgspec.structs import replace

from assembler.engine.definition import START, Definition, Match, Reader, Role
from assembler.engine.events import Delta, Event
from assembler.engine.values import Object, same
from definitions.events import named
from definitions.shared import DescriptionState, Question

__all__ = ["Description"]

_QUESTIONS = {"inquiry/answered": "answered", "inquiry/withdrawn": "withdrawn"}


class Description(Definition):
    """What is described of one call. The id is its call id.

    Any of its events may be the first that is known: a window may begin anywhere.
    """

    kind = "description"
    takes = frozenset(
        {
            "description/started",
            "description/ready",
            "description/withdrawn",
            "inquiry/opened",
            "inquiry/answered",
            "inquiry/withdrawn",
            "permission/request",
        }
    )

    def match(self, item: Event | Delta) -> tuple[str, Role] | None:
        call_id = named(item.data, "call_id")
        return None if call_id is None else (call_id, START)

    def start(self, match: Match, reader: Reader) -> DescriptionState:
        return self.update(DescriptionState(), match)

    def update(self, state: DescriptionState, match: Match) -> DescriptionState:
        return _FOLD[match.type](state, match)


def _request(state: DescriptionState, match: Match) -> DescriptionState:
    """Remember what the newest question shows: an approval shows that, and nothing else."""
    return replace(state, is_requested=True, requested=match.data.get("input"))


def _started(state: DescriptionState, match: Match) -> DescriptionState:
    """Begin anew: what was asked for an older description went with it."""
    return DescriptionState(
        "describing",
        match.data.get("input"),
        is_requested=state.is_requested,
        requested=state.requested,
    )


def _ready(state: DescriptionState, match: Match) -> DescriptionState:
    """Take the text of the description that goes on, or of one whose start is not loaded."""
    text = match.data.get("text")
    if not _is_of(state, match.data) or state.status in ("ready", "withdrawn"):
        return state
    given = match.data.get("input", state.input)
    return replace(state, status="ready", input=given, text=text if type(text) is str else "")


def _withdrawn(state: DescriptionState, match: Match) -> DescriptionState:
    if not _is_of(state, match.data):
        return state
    questions = tuple([_ended(each) for each in state.questions])
    given = match.data.get("input", state.input)
    return replace(state, status="withdrawn", input=given, text=None, questions=questions)


def _is_of(state: DescriptionState, data: Object) -> bool:
    """Whether an event speaks of the description that is known, and not of one before it."""
    return state.status is None or "input" not in data or same(data["input"], state.input)


def _question(state: DescriptionState, match: Match) -> DescriptionState:
    """Add a question, or what became of it; its first end counts."""
    data = match.data
    name = named(data, "inquiry_id")
    if name is None:
        return state
    status = _QUESTIONS.get(match.type, "open")
    old = next((each for each in state.questions if each.inquiry_id == name), None)
    if old is None:
        answer = data.get("answer")
        new = Question(name, data.get("question"), status, answer)
        return replace(state, questions=(*state.questions, new))
    if status == "open" or old.status != "open":
        return state
    new = replace(old, status=status, answer=data.get("answer"))
    return replace(
        state, questions=tuple([new if each is old else each for each in state.questions])
    )


def _ended(question: Question) -> Question:
    return replace(question, status="withdrawn") if question.status == "open" else question


_FOLD = {
    "permission/request": _request,
    "description/started": _started,
    "description/ready": _ready,
    "description/withdrawn": _withdrawn,
    "inquiry/opened": _question,
    "inquiry/answered": _question,
    "inquiry/withdrawn": _question,
}
