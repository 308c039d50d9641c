"""What of a conversation is harmless: `assembler anonymize` keeps it and replaces everything else.

Data: words of our vocabulary, of protocols and of arguments that every tool has. A name belongs
here only when it tells nothing about who wrote it, and a value only when it is one of a few. Not
here: how a text is replaced (`assembler.sharing`).
"""

from __future__ import annotations

from assembler.plugins import Harmless
from definitions.events import VOCABULARY
from definitions.families import FAMILIES
from definitions.quiet import QUIET_FORMATS, QUIET_TYPES

__all__ = ["HARMLESS"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BLOCKS = _words("text reasoning tool-call file json provider image")

_FIELDS = _words(
    """
    added after answer arguments attempt attempts before_seq block block_type call_id claimed code
    command_id compaction_id content data decision delay_ms error from_model id input inquiry_id
    interrupted is_error kind media_type message message_id meta model name number output
    parent_call_id provider provider_call_id question questions queue ran_by raw reason remember
    request_id retry_id signature source status step stop_detail stop_reason synthetic text title
    to_model turn type updated_input url usage value
    input_tokens output_tokens cache_read_tokens cache_write_tokens reasoning_tokens total_tokens
    """
)
"""Fields of events, deltas and their blocks."""

_ARGUMENTS = _words(
    """
    args arguments cwd workdir timeout timeout_ms offset limit start end line lines start_line
    end_line insert_line view_range old_string new_string old_str new_str old_text new_text oldText
    newText edits replace_all allow_multiple content contents file_text insert_text text glob regex
    case_sensitive head_limit output_mode include exclude recursive depth background
    run_in_background activeForm priority options header label multiSelect language format mode
    encoding count max_results
    """
) | frozenset(field for family in FAMILIES for field in (*family.fields, *family.others))
"""Arguments that tools of every product have."""

_STATES = _words(
    "pending in_progress completed cancelled running failed error success succeeded done"
)

HARMLESS = Harmless(
    types=VOCABULARY | QUIET_TYPES | _BLOCKS | {"ag-ui/interrupt", "ag-ui/resume"},
    formats=QUIET_FORMATS,
    fields=_FIELDS | _ARGUMENTS,
    words={
        "type": VOCABULARY | _BLOCKS,
        "block_type": _BLOCKS,
        "kind": _words("user person human agent system tool context hook file"),
        "reason": _words(
            "completed cancelled error limit interrupted retry fallback cancel overloaded "
            "rate_limit timeout network"
        ),
        "stop_reason": _words(
            "end_turn tool_use length content_filter refusal pause cancelled error other"
        ),
        "decision": _words("allow deny"),
        "queue": _words("next-turn next-step"),
        "ran_by": _words("provider host"),
        "name": _words("denied aborted timeout interrupted"),
        "status": _STATES,
        "command": _words("view create str_replace insert undo_edit"),
        "media_type": _words(
            "text/plain image/png image/jpeg image/gif image/webp application/pdf application/json"
        ),
    },
    numbers=_words("before_seq delay_ms request_id block"),
    names={
        "tool/call": _words("name"),
        "tool-call": _words("name"),
        "command/run": _words("name"),
        "command/done": _words("name"),
    },
    json_texts=_words("arguments"),
    free=_words("input updated_input raw meta value arguments"),
    pieces={"text": "text", "reasoning": "text", "tool-output": "text", "tool-call": "arguments"},
    wholes=("block", "call_id"),
)
