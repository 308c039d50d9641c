"""Why two ways of looking at a recorded file may say something else: a word and a sentence each.

What has one of these words is a finding, and no difference. Each stands for something that can be
seen in the file, in its listing or in its history. Not here: when a word is given (beside what is
compared), and one file's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["REASONS"]

REASONS: Mapping[str, str] = MappingProxyType(
    {
        # of the file itself
        "not-whole": "the answer broke off, failed or was cut, so none of its calls is ready",
        "not-ready": "the arguments of a call are no JSON, or the stream disagrees about them",
        "incident": "two places of the stream disagree, and the answer says so",
        "unrecognised": "its content does not say what it is; it was read as what it is said to be",
        "lost-chunk": "a chunk is no JSON; whoever is fed decoded chunks never sees it",
        "last-word": "only the last word [DONE] says that it is whole, and it is no chunk",
        "only-streamed": "a call was streamed, and nothing was stored of it",
        "unread-line": "nobody reads the format of some of the answers yet",
        # of the listing
        "minted": "the provider gave the call no id; it has one that was made for it",
        "pieces": "the listing counts each piece of a call whose arguments come in pieces",
        "item-type": "the listing has the type of the item for the name of what the provider ran",
        "approval": "the listing counts a question whether a call may run as a call",
        "ran-by-provider": "the listing leaves out what the provider ran",
        "first-answer": "several answers stand in the file; the listing has the calls of the first",
        "order": "the listing has the same calls in another order; here they stand as they came",
        "empty-arguments": "no arguments at all are an empty object here, no JSON in the listing",
        "whole-answer": "the listing does not look into answers that were not streamed",
        "unread-listing": "the listing counts the events of that format and does not read them",
        "failed": "an answer that failed has no finish of its own here",
        "nested": "the listing leaves out calls that were made by another call",
        "title": "the listing has the title of a call for its name",
        "first-title": "the listing has a title of a call for its name, which another one replaced",
        "beside": "the listing leaves out calls of the conversations beside the main one",
        "same-id": "the listing counts calls that share an id as one",
        "only-asked": "the listing leaves out a call that is only asked leave for",
        "told-again": "the listing counts a call each time that the file tells it",
        "told-whole": "the listing counts the calls alone that came in pieces",
        "without-id": "the listing leaves out actions that have no id, such as a line for a shell",
        "own-words": "the listing finds no calls where a format has words of its own for them",
        "insides": "the listing took messages inside of frames for the frames, and saw no calls",
        # of what a client sent back
        "other-loop": "the requests behind it belong to another conversation or another try",
        "not-sent-back": "the client left it out, or put something of its own in its place",
        "rewritten": "the client sent back something else; two readings of the file agree",
        "other-id": "the client keeps the call under another id, or under none",
        "spelling": "the client's text has other blanks or quotation marks",
        "provider-call": "the client does not send back what the provider ran",
        # of a history that a client sends, against ours
        "says-nothing": "a field is null, empty or its default here, and left out there",
        "unmarked": "the client leaves out a mark of the provider: an id, a signature, a source",
        "base64": "the client writes the same bytes in base64's other alphabet",
        "same-json": "the client writes the same arguments as other JSON text, none at all as {}",
        "result-shape": "the client puts the same result into other fields",
        "cache-mark": "the client marks how far the provider shall cache",
        "stream-index": "the client sends back the place that a call had in the stream",
        "no-reasoning": "the client does not send the reasoning back",
        "no-result": "the client sends no result of a call; we say that there is none",
        "thought-as-text": "the client sends the reasoning back as text",
        "reasoning-field": "the reasoning came in two fields; the client sends back the other one",
        "failed-answer": "the answer failed, and the client made one of its own in its place",
        "earlier": "the loop began before its first line; that answer stands in none",
        "unrecorded": "an answer in between was not recorded; only the client's request has it",
        "no-event": "the client lets the provider run a call; no event says that",
    }
)
