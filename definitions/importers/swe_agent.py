"""Trajectories of SWE-agent, made into recordings: one document with all steps of a run.

The prompts stand in its `history`, what came of each action, whole, in its `trajectory`; the calls
are in the history when the model made calls, and else an action is a line for a shell. Not here:
how a message of the model is spelled (`chat_messages`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from assembler.plugins import Importer, Sample
from definitions.importers.chat_messages import Block, answer_blocks, content_blocks
from definitions.importers.errors import ImportFault
from definitions.importers.reading import document
from definitions.importers.transcript import Operation, Transcript, arguments_text, text_block
from definitions.providers.reading import array, mapping, text

__all__ = ["SWE_AGENT", "swe_agent"]

Record = Mapping[str, Any]

_SHELL = "bash"
"""What an action is called that is no call: a line for SWE-agent's shell."""

_LIMITS = ("exit_cost", "exit_context", "exit_total_execution_time")


def swe_agent(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn one run into the operations of a recording, the header first. Holds the document."""
    told = document(lines, name)
    run = mapping(told)
    if not isinstance(run.get("trajectory"), list):
        raise ImportFault(name, 1, "trajectory", "the steps of a run of SWE-agent, as a list")
    transcript = Transcript()
    yield transcript.header(name, "Imported from a trajectory of SWE-agent.")
    transcript.at("run")
    about = {key: each for key, each in run.items() if key not in ("trajectory", "history")}
    yield transcript.kept("swe-agent/run", about)
    before, rounds = _rounds([mapping(each) for each in array(run.get("history"))])
    for number, message in enumerate(before, 1):
        transcript.at(f"history-{number}")
        yield from _prompt(transcript, message)
    steps = [mapping(each) for each in run["trajectory"]]
    for number, step in enumerate(steps, 1):
        transcript.at(f"step-{number}")
        answer, *behind = rounds[number - 1] if number <= len(rounds) else ({},)
        usage = _usage(run) if number == len(steps) else None
        yield from _step(transcript, step, answer, behind, f"call-{number}", usage)
    for number, messages in enumerate(rounds[len(steps) :], 1):
        transcript.at(f"rest-{number}")
        yield from _untried(transcript, messages, f"rest-{number}")
    transcript.at("end")
    yield from _ended(transcript, text(mapping(run.get("info")).get("exit_status")))
    yield transcript.finish()


def _rounds(history: Sequence[Record]) -> tuple[list[Record], list[list[Record]]]:
    """Part the history: what stands before the first answer, then each answer and what follows."""
    before: list[Record] = []
    rounds: list[list[Record]] = []
    for message in history:
        if message.get("role") == "assistant" and not message.get("is_demo"):
            rounds.append([message])
        else:
            (rounds[-1] if rounds else before).append(message)
    return before, rounds


def _prompt(transcript: Transcript, message: Record) -> Iterator[Operation]:
    more = {key: each for key, each in message.items() if key not in ("role", "content")}
    blocks = content_blocks(message.get("content"))
    if message.get("is_demo"):
        yield transcript.message(blocks, source={"kind": "demonstration"}, more=more)
    elif message.get("role") == "user":
        yield from transcript.user(blocks, more=more)
    else:
        kind = text(message.get("role")) or "odd"
        yield transcript.message(blocks, source={"kind": kind}, more=more)


def _step(
    transcript: Transcript,
    step: Record,
    answer: Record,
    behind: Sequence[Record],
    minted: str,
    usage: Block | None,
) -> Iterator[Operation]:
    """Write an answer, and what came of its action; SWE-agent takes one call of an answer."""
    blocks = _answer(step, answer, minted)
    yield from transcript.answer(blocks, usage=usage)
    calls = [block["call_id"] for block in blocks if block["type"] == "tool-call"]
    observed = content_blocks(step.get("observation"))
    shown = [each.get("content") for each in behind]
    if calls:
        more = {"meta": {"shown": shown}} if shown else {}
        yield transcript.result(calls[-1], observed, more=more)
    elif observed:
        yield transcript.message(observed, source={"kind": "environment"})
    used = ("observation", "thought", "action")
    yield transcript.kept("swe-agent/step", {k: each for k, each in step.items() if k not in used})


def _answer(step: Record, answer: Record, minted: str) -> list[Block]:
    """Say an answer in blocks: what the model thought, and its calls or its action."""
    thought = step.get("thought", answer.get("thought"))
    calls = answer.get("tool_calls") or step.get("tool_calls")
    kept = ("thinking_blocks", "reasoning_content")
    told = {key: answer.get(key, step.get(key)) for key in kept}
    blocks = answer_blocks({**told, "content": thought, "tool_calls": calls}, minted)
    action = text(step.get("action", answer.get("action")))
    if action.strip() and not any(block["type"] == "tool-call" for block in blocks):
        arguments = arguments_text({"command": action.removesuffix("\n")})
        named = {"call_id": minted, "name": _SHELL, "arguments": arguments}
        blocks.append({"type": "tool-call", **named})
    return blocks or [text_block(text(step.get("response")))]


def _untried(
    transcript: Transcript, messages: Sequence[Record], minted: str
) -> Iterator[Operation]:
    """Write an answer that has no step: nothing came of it."""
    answer, *behind = messages
    yield from transcript.answer(_answer({}, answer, minted), hands_over=False)
    for message in behind:
        blocks = content_blocks(message.get("content"))
        yield transcript.message(blocks, source={"kind": text(message.get("role")) or "odd"})


def _usage(run: Record) -> Block | None:
    """Say what the whole run used; the document tells it of no single answer."""
    raw = mapping(mapping(run.get("info")).get("model_stats"))
    named = {"input_tokens": raw.get("tokens_sent"), "output_tokens": raw.get("tokens_received")}
    counts = {ours: count for ours, count in named.items() if type(count) is int}
    return counts | {"raw": raw} if any(counts.values()) else None


def _ended(transcript: Transcript, status: str) -> Iterator[Operation]:
    """Close the run as its exit status says; without one it is not over."""
    if status.startswith("submitted"):
        yield from transcript.end_turn()
    elif status.startswith(_LIMITS):
        yield from transcript.end_turn("limit")
    elif status:
        yield from transcript.end_turn("error", {"name": status, "message": status})


def _recognises(sample: Sample) -> bool:
    first = sample.records[0] if len(sample.values) == 1 and sample.records else {}
    steps = first.get("trajectory")
    if not isinstance(steps, list) or not isinstance(first.get("history"), list):
        return False
    return all("action" in mapping(step) and "observation" in mapping(step) for step in steps[:1])


SWE_AGENT = Importer("trajectories of SWE-agent", swe_agent, _recognises)
