"""One conversation of Claude Code as it is written: prompts, answers, attempts, turns.

An answer is one message of the model. It is fed to the adapter of one answer (`claude_code`), which
gives its deltas; it is stored when it is over. With partial messages its own events say so; without
them, whatever shows that one of its calls runs, another message, or the end of the turn. Not here:
calls (`claude_code_calls`), which frame is of which conversation (`claude_code_agent`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from assembler.codec import encode
from assembler.engine.events import Outcome
from definitions.providers.agent_turns import AgentTurns
from definitions.providers.claude_code import ClaudeCode
from definitions.providers.claude_code_calls import ClaudeCodeCalls
from definitions.providers.claude_code_words import blocks_of, content_of, rest_of, source_of
from definitions.providers.outcome import Response
from definitions.providers.reading import array, is_object, mapping, natural, plain, text
from definitions.providers.settling import message_data

__all__ = ["ClaudeCodeChat"]

Frame = Mapping[str, Any]
GivenUp = Literal["retry", "cancel", "error"]

_OUTCOMES = {
    "retry": Outcome.ABANDONED,
    "cancel": Outcome.INTERRUPTED,
    "error": Outcome.FAILED,
}
_STOP_REASONS = {"cancel": "cancelled", "error": "error"}
_QUEUE = "next-step"


class _Answer:
    """The message of the model that is being told."""

    def __init__(self, told: str, model: str, number: int, reader: ClaudeCode) -> None:
        self.told = told
        self.model = model
        self.number = number
        self.reader = reader
        self.is_streamed = False
        self.has_shown = False
        self.has_stopped = False
        """Whether it said why it stopped."""
        self.calls: set[str] = set()
        self.uuids: set[str] = set()
        """The names of its frames."""
        self.blocks: list[bytes] = []
        """What was told of it without being streamed."""
        self.waiting: list[tuple[Frame, Frame]] = []
        """Results that came while it was still streamed, each with its frame."""


class ClaudeCodeChat:
    """Writes one conversation behind turn `turn`; `name` makes ids that the program does not give.

    Memory: the answer at hand, and the ids of calls.
    """

    def __init__(self, turn: int = 0, name: str = "") -> None:
        self.turns = AgentTurns(turn)
        self.calls = ClaudeCodeCalls(self.turns)
        self._name = name
        self._answer: _Answer | None = None
        self._told: tuple[str, bool, list[bytes]] | None = None
        """The answer that was stored last: its message, whether it was streamed, its blocks."""
        self._number = 0
        """Of the last attempt of the open step."""
        self._is_answered = False
        self._lost: tuple[str, str, str] | None = None
        """The attempt that was given up and not followed: its name, model, and why."""
        self._counted: list[Frame] | None = []
        """The usage of each answer of the turn; None: they are streamed, and told in full."""
        self._waiting: list[dict[str, Any]] = []
        """Messages to the agent that it has not taken."""

    # -- prompts -----------------------------------------------------------------------------

    def prompt(self, frame: Frame) -> None:
        """Write a message to the agent. While it works, the message waits for the next step."""
        content = blocks_of(content_of(frame))
        told, source = text(frame.get("uuid")) or None, source_of(frame)
        if not self.turns.is_in_turn or not self.turns.step:
            self._begin_turn()
            self.turns.user(content, told, source)
            return
        name = self.turns.named(told or f"user-{self.turns.turn}.{self.turns.step}")
        message: dict[str, Any] = {"message_id": name, "content": content}
        message |= {} if source is None else {"source": source}
        self._waiting.append(message)
        queue = {"queue": _QUEUE, "added": [name], "claimed": [], "messages": [message]}
        self.turns.event("inbox/spliced", queue)

    def claim(self) -> None:
        """The agent takes what waits."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            names = [message["message_id"] for message in waiting]
            claimed = {"queue": _QUEUE, "added": [], "claimed": names}
            self.turns.event("inbox/spliced", claimed)
        for message in waiting:
            self.turns.event("user/message", message)

    # -- turns and steps ---------------------------------------------------------------------

    def _begin_turn(self) -> None:
        if not self.turns.is_in_turn:
            self.turns.begin_turn()
            self.claim()

    def begin_step(self) -> None:
        """Open the step of the next answer, when it is not open."""
        if self.turns.is_in_step and not self._is_answered:
            return
        self._begin_turn()
        self.turns.end_step()
        self.claim()
        self.turns.begin_step()
        self._number, self._is_answered = 0, False

    def end_turn(self, reason: str, error: Frame | None = None) -> None:
        """End the turn that is open, if one is, and the answer at hand before it."""
        if reason in ("completed", "limit"):
            self.end_answer()
        else:
            self.give_up("error" if reason == "error" else "cancel")
        self.calls.end_tasks()
        self._lost = None
        self.turns.end_turn(reason, error)
        self._number, self._is_answered = 0, False
        self._counted = []

    # -- answers -----------------------------------------------------------------------------

    def event(self, frame: Frame) -> None:
        """Take an event of a message that is streamed."""
        event = mapping(frame.get("event"))
        kind = event.get("type")
        if kind == "message_start":
            message = mapping(event.get("message"))
            told = text(message.get("id"))
            if self._answer is None or self._answer.told != told:
                self._end_broken("no-terminal")
                self._begin(told, text(message.get("model")))
        elif self._answer is None:
            if kind not in ("content_block_start", "content_block_delta"):
                return
            self._begin("", "")  # its beginning was not seen
        answer = self._answer
        if answer is None:
            return
        answer.is_streamed = True
        block = mapping(event.get("content_block"))
        if block.get("type") == "tool_use":
            answer.calls.add(text(block.get("id")))
        self._feed(frame)
        if kind == "message_stop":
            self.end_answer()

    def message(self, frame: Frame) -> None:
        """Take a frame with finished blocks of a message."""
        message = mapping(frame.get("message"))
        told, blocks = text(message.get("id")), content_of(frame)
        answer = self._answer
        if answer is None or answer.told != told:
            fresh = self._fresh(told, blocks)
            if not fresh:
                return  # its events have told it, or another frame has
            if self.is_one_of(frame.get("supersedes")):
                self._lose("superseded")
            self._end_broken("no-terminal")
            if self._is_told(told):
                frame = {**frame, "message": {**message, "content": fresh, "usage": None}}
            blocks = fresh
            answer = self._begin(told, text(message.get("model")))
        for block in map(mapping, blocks):
            if block.get("type") == "tool_use":
                answer.calls.add(text(block.get("id")))
        answer.uuids.add(text(frame.get("uuid")))
        answer.blocks += map(_key, blocks)
        answer.has_stopped = answer.has_stopped or bool(message.get("stop_reason"))
        self._feed(frame)
        if frame.get("aborted") is True:
            self.give_up("cancel")

    def is_one_of(self, uuids: object) -> bool:
        """Whether the answer at hand has a frame among those that are named."""
        told = set(map(text, array(uuids)))
        return self._answer is not None and bool(self._answer.uuids & told)

    def _is_told(self, told: str) -> bool:
        return self._told is not None and bool(told) and self._told[0] == told

    def _fresh(self, told: str, blocks: list[Any]) -> list[Any]:
        """Give the blocks that were not told in the message that was stored last."""
        if self._told is None or not self._is_told(told):
            return blocks
        if self._told[1]:
            return []
        return [block for block in blocks if _key(block) not in self._told[2]]

    def _begin(self, told: str, model: str) -> _Answer:
        self.begin_step()
        self._number += 1
        self._follow(model)
        attempt = f"{self.turns.turn}.{self.turns.step}.{self._number}"
        reader = ClaudeCode(conversation=self._name, attempt=attempt, in_use=self.calls)
        self._answer = answer = _Answer(told, model, self._number, reader)
        return answer

    def _feed(self, frame: Frame) -> None:
        answer = self._answer
        if answer is None:
            return
        # The adapter reads the main conversation alone; this is the one that it reads.
        for piece in answer.reader.feed({**frame, "parent_tool_use_id": None}):
            answer.has_shown = True
            self.turns.delta(self._attempt(answer), piece.type, piece.data, answer.number)

    def _attempt(self, answer: _Answer) -> str:
        return f"{self.turns.turn}.{self.turns.step}.{answer.number}"

    def runs(self, told: str) -> None:
        """Something shows that a call runs: an answer whose end nothing else tells is over."""
        if self.tells(told):
            self.end_told()

    def result(self, block: Frame, frame: Frame) -> None:
        """Take what came of a call; while its answer is still streamed, it waits for that."""
        told = text(block.get("tool_use_id"))
        self.runs(told)
        if self._answer is not None and told in self._answer.calls:
            self._answer.waiting.append((block, frame))
        else:
            self._write_result(block, frame)

    def _write_result(self, block: Frame, frame: Frame) -> None:
        alone = sum(is_object(each) for each in content_of(frame)) == 1
        self.calls.result(block, frame.get("tool_use_result") if alone else None)

    def _end_broken(self, why: str) -> None:
        """Another message begins: what was streamed and did not end is given up for it, unless
        something came of it."""
        answer = self._answer
        if answer is None:
            return
        if answer.is_streamed and not answer.waiting:
            self._lose(why)
        else:
            self.end_answer()

    def end_answer(self, stop: str = "", usage: object = None) -> None:
        """Store the answer at hand, if there is one: it is over.

        `stop` says why it stopped, `usage` what the whole turn came to: without partial messages
        the frames of an answer do not count what was said, so the last one has the rest.
        """
        answer = self._answer
        if answer is None:
            return
        if not answer.is_streamed:
            last: dict[str, Any] = {"id": answer.told}
            if not answer.has_stopped:
                last["stop_reason"] = stop or ("tool_use" if answer.calls else "end_turn")
            if self._counted is not None and is_object(usage):
                last["usage"] = rest_of(usage, self._counted)
            self._feed({"type": "assistant", "message": last})
        for _, frame in answer.waiting:
            self._feed(frame)
        self._feed({"type": "result"})
        response = answer.reader.finish()
        if not (response.whole or response.cut):
            self.give_up("error")
            return
        self._answer, self._is_answered = None, True
        self._told = (answer.told, answer.is_streamed, answer.blocks)
        step = (self.turns.turn, self.turns.step)
        self._lost = None
        self.turns.event("assistant/message", message_data(response, *step))
        self._count(answer, response)
        for ran in response.ran:
            place = dict(zip(("turn", "step"), step, strict=True)) if "name" in ran.data else {}
            self.turns.event(ran.type, {**place, **ran.data})
        if answer.has_shown:
            self.turns.settle(self._attempt(answer), Outcome.COMPLETED)
        self._hand_over(response, step)
        for block, frame in answer.waiting:
            self._write_result(block, frame)

    def _count(self, answer: _Answer, response: Response) -> None:
        """Add up what the answers of the turn have told of their usage."""
        if answer.is_streamed:
            self._counted = None
        elif self._counted is not None:
            self._counted.append(mapping(mapping(response.usage).get("raw")))

    def _hand_over(self, response: Response, step: tuple[int, int]) -> None:
        for call in response.calls:
            if call.ran_by == "host":
                self.calls.hand_over(call, step)

    def give_up(self, reason: GivenUp) -> None:
        """The answer at hand is given up: nothing of it runs. What people have read stays, unless
        another attempt follows."""
        answer, self._answer = self._answer, None
        if answer is None:
            return
        response = answer.reader.finish()
        if reason != "retry":
            self._is_answered = True
            self._told = (answer.told, answer.is_streamed, answer.blocks)
            if response.said:
                data = message_data(response, self.turns.turn, self.turns.step)
                stop = {"stop_reason": _STOP_REASONS[reason], "interrupted": True}
                self.turns.event("assistant/message", {**data, "content": response.said, **stop})
        if answer.has_shown:
            self.turns.settle(self._attempt(answer), _OUTCOMES[reason])
        for block, frame in answer.waiting:
            self._write_result(block, frame)

    # -- attempts ----------------------------------------------------------------------------

    def retry(self, frame: Frame) -> None:
        """The program says that it tries again: the attempt at hand is given up."""
        self.end_told()
        self.begin_step()
        why = text(frame.get("error")) or f"status {natural(frame.get('error_status')) or 0}"
        if self._answer is None:
            self._number += 1
            lost = self._number
        else:
            lost = self._answer.number
            self.give_up("retry")
        more = {"delay_ms": natural(frame.get("retry_delay_ms")), "raw": plain(frame)}
        self._write_retry(lost, why, {key: each for key, each in more.items() if each is not None})

    def _lose(self, why: str) -> None:
        """A message that was streamed broke off, and another one begins in its place."""
        answer = self._answer
        if answer is not None:
            self._lost = (self._attempt(answer), answer.model, why)
            self.give_up("retry")

    def _follow(self, model: str) -> None:
        """Another attempt begins: say why the one before it was given up, if that was not said."""
        lost, self._lost = self._lost, None
        if lost is None or self._number == 1:
            return
        attempt, before, why = lost
        if before and model and before != model:
            place = {"turn": self.turns.turn, "step": self.turns.step, "attempt": attempt}
            models = {"from_model": before, "to_model": model, "reason": why}
            self.turns.event("llm/fallback", {**place, **models})
        else:
            self._write_retry(self._number - 1, why, {})

    def _write_retry(self, number: int, why: str, more: Frame) -> None:
        place = f"{self.turns.turn}.{self.turns.step}"
        self.turns.event(
            "llm/retry",
            {
                **more,
                "turn": self.turns.turn,
                "step": self.turns.step,
                "retry_id": f"retry-{place}",
                "attempt": f"{place}.{number}",
                "number": number,
                "reason": why,
            },
        )

    def tell(self, said: str) -> None:
        """Write a text as an answer of its own: what a turn came to, where no answer was told."""
        content = [{"type": "text", "text": said}]
        self.message({"type": "assistant", "message": {"content": content}})
        self.end_answer()

    def end_told(self) -> None:
        """Store the answer at hand, if nothing else tells its end."""
        if not self.is_streaming:
            self.end_answer()

    @property
    def is_streaming(self) -> bool:
        """Whether a message is told by its events, and goes on."""
        return self._answer is not None and self._answer.is_streamed

    def tells(self, call: str) -> bool:
        """Whether the answer at hand makes that call."""
        return self._answer is not None and call in self._answer.calls

    @property
    def has_answered(self) -> bool:
        """Whether anything was said in the turn that is open."""
        return bool(self.turns.step) or self._answer is not None

    def calls_in(self, frame: Frame) -> list[Frame]:
        """Give the calls that a frame of a message tells."""
        blocks = map(mapping, array(mapping(frame.get("message")).get("content")))
        return [block for block in blocks if block.get("type") == "tool_use"]


def _key(block: object) -> bytes:
    return encode(plain(block))
