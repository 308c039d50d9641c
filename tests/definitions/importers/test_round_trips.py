"""What our own encoders write is read as what was shown, as far as the protocol can say it.

Not said by a protocol, and left out here: retries, compactions and commands, usage and times, a
result that comes when its turn is over, what a person said in the AI SDK's stream; in ACP
permissions, where turns end, and that a text was given up.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assembler import codec, plugins
from assembler.cli.dispatch import dispatch
from assembler.recordings import Run
from assembler.recordings.expecting import is_expectation
from assembler.recordings.transcripts import read_any

Json = dict[str, Any]
Row = tuple[Any, ...]

RECORDINGS = Path(__file__).parents[3] / "recordings"
TOLD_TO_ONE_CLIENT = (
    "cancel",
    "describe-before-asked",
    "every-kind",
    "ids-reused-across-turns",
    "parallel-writes",
    "retry-in-mid-call",
)
"""Recordings in which nobody reconnects."""


def rows(path: Path, *kinds: str) -> list[Row]:
    """What a person reads at the end of a file: of each row its kind, how it stands, its words."""
    recording = next(read_any(path))
    run = Run(recording, plugins.catalog())
    for operation in recording.operations:
        if not is_expectation(operation):
            run.do(operation)
    nodes = run.assembler.view(run.views[0]).snapshot().nodes
    return [row(node.kind, codec.plain(node.data)) for node in nodes if node.kind in kinds]


def row(kind: str, data: Json) -> Row:
    if kind == "tool":
        return (kind, data["name"], data["stage"], data["outcome"])
    if kind in ("user", "steering", "assistant"):
        parts = data.get("content") or data.get("blocks") or []
        words = [part["text"] for part in parts if part.get("type") in ("text", "reasoning")]
        return (kind, data.get("status"), *words)
    return (kind, data.get("decision") or data.get("status"))


def exported(recording: str, protocol: str, folder: Path) -> Path:
    target = folder / f"{recording}.{protocol}"
    source = RECORDINGS / f"{recording}.jsonl"
    assert dispatch(["export", "--to", protocol, str(source), "-o", str(target)]) == 0
    return target


SAID = (
    *("user", "steering", "assistant", "tool", "permission"),
    *("turn-error", "turn-limit", "turn-tail"),
)
LATE = ("tool", "list_files", "result", "succeeded")
UNSETTLED = ("tool", "list_files", "start", "unsettled")


@pytest.mark.parametrize("recording", TOLD_TO_ONE_CLIENT)
def test_ag_ui_says_what_was_shown(recording: str, tmp_path: Path) -> None:
    shown = rows(RECORDINGS / f"{recording}.jsonl", *SAID)
    told = [UNSETTLED if row == LATE and recording == "cancel" else row for row in shown]
    assert rows(exported(recording, "ag-ui", tmp_path), *SAID) == told


@pytest.mark.parametrize(
    "recording", [each for each in TOLD_TO_ONE_CLIENT if each != "ids-reused-across-turns"]
)  # there one turn has a prompt alone
def test_the_ai_sdk_says_what_was_shown_but_the_prompts(recording: str, tmp_path: Path) -> None:
    shown = rows(RECORDINGS / f"{recording}.jsonl", *SAID[1:])
    told = [UNSETTLED if row == LATE and recording == "cancel" else row for row in shown]
    assert rows(exported(recording, "ai-sdk", tmp_path), *SAID[1:]) == told


@pytest.mark.parametrize("recording", TOLD_TO_ONE_CLIENT)
def test_acp_says_what_became_of_the_calls(recording: str, tmp_path: Path) -> None:
    shown = rows(RECORDINGS / f"{recording}.jsonl", "tool")
    told = [UNSETTLED if row == LATE and recording == "cancel" else row for row in shown]
    assert rows(exported(recording, "acp", tmp_path), "tool") == told


@pytest.mark.parametrize("protocol", ["ag-ui", "ai-sdk", "acp"])
def test_who_comes_in_the_middle_is_told_each_thing_once(protocol: str, tmp_path: Path) -> None:
    """A file that goes on with what the next client was sent has the calls once, and whole."""
    shown = rows(RECORDINGS / "answer-with-calls.jsonl", "tool")
    assert rows(exported("answer-with-calls", protocol, tmp_path), "tool") == shown


def test_a_text_told_to_two_clients_is_there_once(tmp_path: Path) -> None:
    shown = rows(RECORDINGS / "answer-with-calls.jsonl", "assistant")
    for protocol in ("ag-ui", "ai-sdk"):
        assert rows(exported("answer-with-calls", protocol, tmp_path), "assistant") == shown
