"""What conversations are called in a list: their title, else the first words of a person."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from assembler import Draft
from assembler.server.titles import Titles
from definitions.catalog import TITLES, opening
from tests.server.support import desk, inside, local
from tests.server.test_files import listed, reading

CALLED = Titles(TITLES, opening)
BLOCKS = [{"type": "image", "url": "x"}, {"type": "text", "text": "What is\nin   this folder?"}]


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"message_id": f"m{text}", "content": [{"type": "text", "text": text}], **more}


def transcript(*texts: str) -> str:
    lines = []
    for number, text in enumerate(texts):
        told: dict[str, Any] = {
            "uuid": f"u{number}",
            "parentUuid": None if number == 0 else f"u{number - 1}",
        }
        message = {"role": "user", "content": text}
        when = f"2026-01-02T03:04:0{number}.000Z"
        told |= {"type": "user", "sessionId": "s", "timestamp": when, "message": message}
        lines.append({**told, "isSidechain": False, "cwd": "/", "version": "1.0"})
    return "".join(json.dumps(line) + "\n" for line in lines)


def test_a_transcript_is_known_by_its_first_words_and_a_recording_by_its_own_title(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.jsonl").write_text(transcript("Paint the shed", "red"))
    (tmp_path / "b.jsonl").write_text(
        '{"recording":1,"title":"Ours","about":""}\n'
        + json.dumps({"op": "append", "event": {"type": "user/message", "data": said("Hi")}})
    )

    @inside
    async def test() -> None:
        async with reading(tmp_path, titles=CALLED) as client:
            found = {name: each["title"] for name, each in (await listed(client)).items()}
            assert found == {"a.jsonl": "Paint the shed", "b.jsonl": "Ours"}
            assert [*await listed(client, search="shed")] == ["a.jsonl"]

    test()


@inside
async def test_a_stored_conversation_is_known_by_its_first_words_until_it_has_a_title() -> None:
    async with desk(source={"titles": CALLED}) as here, local(here.app) as client:
        await here.store.append("c", [Draft("user/message", said("Paint the shed"))], 0)
        assert (await listed(client))["c"]["title"] == "Paint the shed"
        assert (await listed(client))["c"]["title"] == "Paint the shed"
        await here.store.append("c", [Draft("conversation/title", {"title": "The shed"})], 1)
        assert (await listed(client))["c"]["title"] == "The shed"


def test_the_first_words_are_one_short_line_of_a_person() -> None:
    assert opening("user/message", {"content": BLOCKS}) == "What is in this folder?"
    assert opening("user/message", said("x" * 200)) == "x" * 79 + "…"
    assert not opening("user/message", said("hook output", source={"kind": "hook"}))
    assert not opening("user/message", {"content": "no blocks"})
    assert opening("assistant/message", said("Hi")) is None
