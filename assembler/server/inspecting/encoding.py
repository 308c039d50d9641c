"""Snapshots and Patches of a Travel as JSON text, each Node of which is encoded once.

Who travels asks for the same Nodes again and again. Not here: what was shown (`shown`).
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from assembler.codec import encode, encode_plain, plain
from assembler.engine.definition import Node
from assembler.engine.patches import Op, Patch, Put, Snapshot

__all__ = ["Encoding"]


class Encoding:
    """Encodes what one Travel shows; the Nodes given must live as long as this does.

    Keeps the texts of Nodes until they are `kept_bytes_max`, then makes the others each time.
    For any number of threads: two of them may make one text twice, which is the same.
    """

    def __init__(self, kept_bytes_max: int = 32 << 20) -> None:
        self._kept: dict[int, Raw] = {}
        self._room = kept_bytes_max

    def snapshot(self, snapshot: Snapshot) -> bytes:
        """What `codec.encode` gives. O(size)."""
        nodes = [self._node(each) for each in snapshot.nodes]
        return encode_plain({**replace(snapshot, nodes=()).to_json(), "nodes": nodes})

    def patch(self, patch: Patch) -> bytes:
        """What `codec.encode` gives. O(size)."""
        ops = [self._op(each) for each in patch.ops]
        return encode_plain({**replace(patch, ops=()).to_json(), "ops": ops})

    def _op(self, op: Op) -> Any:
        if type(op) is Put:
            return {"op": "put", "node": self._node(op.node), "after": op.after}
        return plain(op)

    def _node(self, node: Node) -> Raw:
        kept = self._kept.get(id(node))
        if kept is None:
            text = encode(node)
            kept = Raw(text)
            if len(text) <= self._room:
                self._room -= len(text)
                self._kept[id(node)] = kept
        return kept
