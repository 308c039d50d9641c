"""`check_encoder`: a protocol tells the same story, whenever its client came.

The conversations are made up here; what a client makes of frames is the caller's `Client`, best
one on top of the protocol's own published package. Not here: encoders (`protocols`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from assembler.engine.assembler import Assembler
from assembler.engine.definition import Node
from assembler.engine.events import Delta, Event
from assembler.engine.patches import Patch, Snapshot, merge
from assembler.engine.values import same
from assembler.testing import Conversation, Operation, Spot, conversations
from definitions.catalog import catalog
from definitions.protocols import Encoder, Frame

__all__ = ["ANEW", "About", "Client", "check_encoder"]

_HIDDEN = "hush"
"""The tool that is hidden. Its name, and the beginning of its call ids, stand nowhere else."""
_CALLS = ("open1", "open2", _HIDDEN + "1")
_NAMES = {"open1": "read", "open2": "bash", _HIDDEN + "1": _HIDDEN}


class About(NamedTuple):
    """Which call a frame is about, and whether it is the last one that a client gets of it.

    A frame that withdraws a preparation is not the last one: the call may come again.
    """

    call: str
    is_last: bool = False


ANEW = About("")
"""What `take` gives for a frame that takes back what a client has, or says all of it anew: it may
speak of several calls, and what it took away may be told again."""


class Client(Protocol):
    """What a client has on its screen, from the frames that it was sent."""

    def take(self, frame: Frame) -> About | None:
        """Take a frame, and say which call it is about. What a client refuses it raises."""
        ...

    @property
    def calls(self) -> Mapping[str, Any]:
        """What is shown of each call, by its id; nothing of those that were withdrawn."""
        ...

    @property
    def texts(self) -> Mapping[str, Any]:
        """What is shown of each message, by anything that names it after a reload too."""
        ...


def check_encoder(
    make: Callable[[frozenset[str]], Encoder],
    client: Callable[[], Client],
    *,
    max_examples: int = 50,
    smallest: bool = True,
) -> None:
    """Fail when an encoder of a protocol breaks what it promises; one line in a test, seconds.

    `make(hidden)` gives a new encoder that hides the tools of those names, and shows what persons
    said also while it happens; `client()` a new client. Conversations of calls, permissions,
    retries, answers and messages are told live, and again from a Snapshot at every cut. Checked:

    - a client that comes at any cut is shown the same, then and at the end (except that a protocol
      may not be able to take back text, or tell of a call what comes behind its last frame);
    - patches that were merged on the way, or came as JSON, lead to the same;
    - a call gets nothing behind its last frame;
    - a hidden tool makes no frame at any stage: neither its name nor a call id of it is sent;
    - a frame speaks of one call, so that each withdrawal is a frame of its own (unless the protocol
      can only say everything `ANEW`);
    - frames are plain JSON, and whoever gets one may change it.

    Raises `AssertionError` with the smallest conversation found, which may take a minute or two;
    with `smallest` false with the first one.

        def test_my_protocol():
            check_encoder(lambda hidden: MyProtocol(hidden=hidden), MyClient)
    """
    phases = [phase for phase in Phase if smallest or phase is not Phase.shrink]

    @settings(
        phases=phases,
        max_examples=max_examples,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(_conversations(), st.integers(2, 4), st.booleans())
    @example(_tour(), 3, True)
    def check(conversation: Conversation, pace: int, on_wire: bool) -> None:
        story = _Story(conversation, on_wire=on_wire)
        _check(story, pace, lambda: _Session(make(frozenset({_HIDDEN})), client()))

    check()


# -- what happens --------------------------------------------------------------------------


def _placed(fields: Mapping[str, Any], **optional: Any) -> Callable[[Spot], Any]:
    """Data that name the open step; between steps one that is not there."""

    def at(spot: Spot) -> Any:
        place = {"turn": st.just(spot.turn or 1), "step": st.just(spot.step or 1)}
        return st.fixed_dictionaries({**place, **fields}, optional=optional)

    return at


def _gives_up(spot: Spot) -> Any:
    place = {"turn": st.just(spot.turn or 1), "step": st.just(spot.step or 1)}
    attempt = {"attempt": st.sampled_from(spot.attempts), "number": st.integers(1, 2)}
    return st.fixed_dictionaries({**place, **attempt, "retry_id": st.sampled_from(["r1", "r2"])})


def _named(call_id: str) -> dict[str, Any]:
    return {"call_id": call_id, "name": _NAMES[call_id]}


def _conversations() -> Any:
    call = st.sampled_from(_CALLS)
    word = st.sampled_from(["a", "b", "ab", " "])
    block = st.sampled_from([0, 1])
    text = st.builds(lambda text: {"type": "text", "text": text}, word)
    content = st.lists(text, max_size=2)
    asked = {"call_id": call, "request_id": st.sampled_from(["q1", "q2"])}
    arguments = st.sampled_from(["{}", '{"path":"/a"}', "no object"])

    def with_call(spot: Spot) -> Any:
        place = {"turn": spot.turn or 1, "step": spot.step or 1}
        return st.builds(
            lambda call_id, text: {**place, **_named(call_id), "arguments": text}, call, arguments
        )

    pieces = st.builds(
        lambda call_id, text, at: {"block": at, **_named(call_id), "arguments": text},
        call,
        st.sampled_from(["", "{", '"path":']),
        block,
    )
    flow = st.fixed_dictionaries({"block": block, "text": word})
    events: dict[str, Any] = {
        "tool/call": with_call,
        "tool/result": st.fixed_dictionaries(
            {"call_id": call, "content": content}, optional={"is_error": st.booleans()}
        ),
        "permission/request": st.fixed_dictionaries(
            {**asked, "input": st.sampled_from([{}, {"path": "/a"}])}
        ),
        "permission/answer": st.fixed_dictionaries(
            {**asked, "decision": st.sampled_from(["allow", "deny"])},
            optional={"updated_input": st.just({"path": "/b"})},
        ),
        "assistant/message": _placed({"content": content}, interrupted=st.booleans()),
        "llm/retry": _gives_up,
        "user/message": st.fixed_dictionaries(
            {"message_id": st.sampled_from(["m1", "m2"]), "content": content}
        ),
    }
    deltas = {
        "tool-call": pieces,
        "text": flow,
        "reasoning": flow,
        "tool-output": st.fixed_dictionaries({"call_id": call, "text": word}),
    }
    return conversations(events, deltas, turns=2, moments=9).filter(_has_turns)


def _has_turns(conversation: Conversation) -> bool:
    """Whether each turn begins, as a backend writes it; its end may be missing, as of a crash."""
    turns = {event.data["turn"] for event in conversation.log if event.type == "turn/start"}
    return all(event.data.get("turn", 1) in turns for event in conversation.log)


def _tour() -> Conversation:
    """What has to be seen in any case: every loss of several calls at once, every way to end."""
    script: list[Operation] = []
    facts = 0

    def append(type_: str, **data: Any) -> None:
        nonlocal facts
        facts += 1
        script.append(Operation("append", (Event(facts, type_, data, time=facts),)))

    def emit(attempt: int, pieces: Iterable[tuple[str, dict[str, Any]]]) -> None:
        for ordinal, (type_, data) in enumerate(pieces):
            place = {"ordinal": ordinal, "after": facts, "index": attempt * 10 + ordinal}
            delta = Delta(f"t{attempt}", 1, 1, type_, data, number=attempt, **place)
            script.append(Operation("emit", (delta,)))

    calls = [("tool-call", {"block": 1, **_named(call), "arguments": "{"}) for call in _CALLS]
    words = [("reasoning", {"block": 0, "text": text}) for text in ("so", " then")]
    append("turn/start", turn=1)
    append("step/start", turn=1, step=1)
    emit(1, [*words, *calls])
    script.append(Operation("settle", ("t1", "abandoned")))
    emit(2, [*words, *calls])
    content = [{"type": "reasoning", "text": "so then"}]
    append("assistant/message", turn=1, step=1, message_id="a1", content=content)
    for call in _CALLS:
        append("tool/call", turn=1, step=1, **_named(call), arguments='{"path":"/a"}')
        append("permission/request", call_id=call, request_id="q1", input={"path": "/a"})
    append("permission/answer", call_id="open1", request_id="q1", decision="allow")
    append("tool/result", call_id="open1", content=[{"type": "text", "text": "done"}])
    append("turn/end", turn=1, reason="cancelled")
    append("tool/result", call_id="open2", content=[{"type": "text", "text": "late"}])
    return Conversation(tuple(script))


class _Story:
    """A conversation as its view told it: Snapshots and the Patches between them.

    `fickle[n]` are the calls that, up to the n-th flush, changed behind their outcome; `lost[n]`
    says whether text was given up until then.
    """

    def __init__(self, conversation: Conversation, *, on_wire: bool) -> None:
        assembler = Assembler(catalog())
        assembler.flush()
        view = assembler.view()
        self.snapshots = [view.snapshot()]
        self.patches: list[Patch] = []
        self.fickle: list[frozenset[str]] = [frozenset()]
        self.lost = [False]
        for operation in conversation.script:
            operation.perform(assembler)
            patch = assembler.flush()["chat"]
            if not patch:
                continue
            self.patches.append(Patch.from_json(_again(patch.to_json())) if on_wire else patch)
            before, after = self.snapshots[-1], view.snapshot()
            self.snapshots.append(Snapshot.from_json(_again(after.to_json())) if on_wire else after)
            old = {node.key: node for node in before.nodes}
            new = {node.key: node for node in after.nodes}
            changed = {node.id for node in old.values() if _is_fickle(node, new.get(node.key))}
            self.fickle.append(self.fickle[-1] | changed)
            gave_up = any(_is_lost(node, new.get(node.key)) for node in old.values())
            self.lost.append(self.lost[-1] or gave_up)


def _again(wire: Any) -> Any:
    """A value as it comes out of JSON."""
    return json.loads(json.dumps(wire))


def _is_fickle(old: Node, new: Node | None) -> bool:
    if old.kind != "tool" or old.data["outcome"] is None:
        return False
    return new is None or not same(old.data, new.data)


def _is_lost(old: Node, new: Node | None) -> bool:
    """Whether an answer no longer says what it said."""
    if old.kind != "assistant":
        return False
    if new is None or len(new.data["blocks"]) < len(old.data["blocks"]):
        return True
    pairs = zip(old.data["blocks"], new.data["blocks"], strict=False)
    return any(
        before.get("type") != after.get("type")
        or not str(after.get("text")).startswith(str(before.get("text")))
        for before, after in pairs
    )


# -- what is told of it --------------------------------------------------------------------


class _Session:
    """An encoder and its client, and what must hold of every frame between them."""

    def __init__(self, encoder: Encoder, client: Client) -> None:
        self._encoder = encoder
        self.client = client
        self._over: set[str] = set()

    def feed(self, updates: Iterable[Snapshot | Patch]) -> None:
        for update in updates:
            try:
                frames = self._encoder.feed(update)
            except Exception as fault:
                raise AssertionError(f"feed raised {type(fault).__name__}: {fault}") from fault
            for frame in frames:
                self._take(frame)

    def _take(self, frame: Frame) -> None:
        sent = _plain(frame)
        text = json.dumps(sent)
        assert _HIDDEN not in text, f"a frame speaks of a hidden tool: {text}"
        calls = [call for call in _CALLS if json.dumps(call) in text]
        about = self.client.take(sent)
        _scribble(frame)
        if about == ANEW:
            self._over &= set(self.client.calls)
            return
        assert len(calls) <= 1, f"a frame speaks of several calls: {text}"
        if about is not None:
            assert about.call not in self._over, f"a frame behind the last one of its call: {text}"
            if about.is_last:
                self._over.add(about.call)


def _plain(frame: Frame) -> Frame:
    """The frame as JSON gives it back, which must be what it was."""
    try:
        sent: Frame = json.loads(json.dumps(frame, allow_nan=False))
    except (TypeError, ValueError) as fault:
        raise AssertionError(f"a frame is no JSON ({fault}): {frame}") from None
    assert _is_plain(frame), f"a frame holds what JSON has no word for: {frame}"
    return sent


def _is_plain(value: Any) -> bool:
    if type(value) is dict:
        return all(type(key) is str and _is_plain(item) for key, item in value.items())
    if type(value) is list:
        return all(map(_is_plain, value))
    return value is None or type(value) in (str, int, float, bool)


def _scribble(value: Any) -> None:
    """Do to a frame what its owner may do."""
    inner = value.values() if type(value) is dict else value if type(value) is list else ()
    for item in list(inner):
        _scribble(item)
    if type(value) in (dict, list):
        value.clear()


def _check(story: _Story, pace: int, connect: Callable[[], _Session]) -> None:
    live = connect()
    _compare("at the start", story, 0, live, story.snapshots[:1], connect)
    for at, patch in enumerate(story.patches, 1):
        live.feed([patch])
        _compare(f"at flush {at}", story, at, live, story.snapshots[at : at + 1], connect)
    last = len(story.patches)
    for at, snapshot in enumerate(story.snapshots):
        told: list[Snapshot | Patch] = [snapshot, *story.patches[at:]]
        _compare(f"since flush {at}", story, last, live, told, connect)
    _compare("with merged patches", story, last, live, _merged(story.patches, pace), connect)


def _merged(patches: Sequence[Patch], pace: int) -> list[Patch]:
    merged: list[Patch] = []
    for at, patch in enumerate(patches):
        if at % pace:
            merged[-1] = merge(merged[-1], patch)
        else:
            merged.append(patch)
    return merged


def _compare(
    when: str,
    story: _Story,
    at: int,
    live: _Session,
    told: Sequence[Snapshot | Patch],
    connect: Callable[[], _Session],
) -> None:
    """A client that was told this shows what the live one shows."""
    other = connect()
    other.feed(told)
    theirs, ours = _calls(other, story, at), _calls(live, story, at)
    assert theirs == ours, f"{when}: calls are {theirs}, live {ours}"
    shown, known = dict(other.client.texts), dict(live.client.texts)
    if story.lost[at]:
        # What was given up may still be there; what is there now is compared.
        fresh = connect()
        fresh.feed([story.snapshots[at]])
        shown, known = (
            {key: each.get(key) for key in fresh.client.texts} for each in (shown, known)
        )
    assert shown == known, f"{when}: messages are {shown}, live {known}"


def _calls(session: _Session, story: _Story, at: int) -> dict[str, Any]:
    return {
        key: value for key, value in session.client.calls.items() if key not in story.fickle[at]
    }
