"""What `redact` takes out is in no view, no patch and no group."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from assembler import Assembler, DefinitionError, Node, codec
from assembler.live import Publisher, redacted
from tests.engine.support import Band, Toy, event
from tests.live.support import Client, Clock, Said, say

PRIVATE = "between us"


def build(context: Any, _scope: Any) -> Node:
    return Node("toy", context.id, {"v": context.state, "band": "b"})


def without_secrets(node: Node) -> Node | None:
    if node.id == "hidden":
        return None
    return replace(node, data={**node.data, "v": [v for v in node.data["v"] if v != PRIVATE]})


def test_a_secret_reaches_nobody() -> None:
    async def main() -> None:
        assembler = Assembler(redacted([Said(build=build), Band()], without_secrets))
        live = Publisher(assembler, scheduler=Clock(), queue_patches_max=2)
        say(live, 1, v=PRIVATE)
        async with live.subscribe() as view:
            client = Client(view)
            say(live, 2, v="seen")
            say(live, 3, id="hidden", v=PRIVATE)
            for seq in range(4, 9):
                say(live, seq, id=f"n{seq % 2}", v=PRIVATE)
                live.flush()
            client.catch_up()
            assert client.shown == assembler.view().snapshot().to_json()
            sent = [view.snapshot.encoded, *(patch.encoded for patch in client.patches)]
            assert PRIVATE not in b"\n".join(sent).decode()
            assert PRIVATE not in codec.encode(client.shown).decode()
            assert [node["data"]["v"] for node in client.shown["nodes"]] == [["seen"], [], []]
            assert [group["members"] for group in client.shown["groups"]] == [
                ["toy:x", "toy:n0", "toy:n1"]
            ]

    asyncio.run(main())


def test_only_what_was_made_again_is_looked_at() -> None:
    looked: list[str] = []

    def look(node: Node) -> Node:
        looked.append(node.id)
        return node

    toys = [Toy()]
    assembler = Assembler(redacted(toys, look))
    for seq, id_ in enumerate("abc", 1):
        assembler.append(event(seq, id=id_))
    assembler.flush()
    assembler.append(event(4, "toy/more", id="b"))
    assembler.flush()
    assembler.flush()
    assert looked == ["a", "b", "c", "b"]
    plain = Assembler(toys)
    plain.append(event(1))
    plain.flush()
    assert len(looked) == 4  # the Definitions that were given are as they were


def test_what_is_not_shown_is_not_looked_at() -> None:
    assembler = Assembler(redacted([Toy(build=lambda _context, _scope: None)], without_secrets))
    assembler.append(event(1))
    assembler.flush()
    assert (assembler.view().nodes, assembler.findings()) == ([], [])


def test_when_redacting_fails_the_node_is_not_shown() -> None:
    def fail(_node: Node) -> Node:
        raise ZeroDivisionError(PRIVATE)

    assembler = Assembler(redacted([Toy()], fail))
    assembler.append(event(1, v=PRIVATE))
    assembler.flush()
    (node,) = assembler.view().nodes
    assert node.data == {"error": {"name": "ZeroDivisionError", "in": "build"}}
    strict = Assembler(redacted([Toy()], fail), strict=True)
    strict.append(event(1))
    with pytest.raises(DefinitionError):
        strict.flush()
