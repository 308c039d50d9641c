"""What every adapter is: fed what a provider sends, it gives pieces, and at the end a response.

Not here: what the chunks of a format mean (each has a file), how an answer adds up (`answer`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Mapping
from typing import Any, ClassVar

from definitions.ids import CallIds
from definitions.providers.answer import Answer
from definitions.providers.chunks import Chunk, Chunks
from definitions.providers.outcome import Hint, Piece, Response

__all__ = ["Adapter"]


class Adapter(ABC):
    """Reads one response. Pure: no I/O, no clock; the same input gives the same output.

    `in_use` answers, with `in`, whether a call id belongs to a call of the conversation outside
    this attempt. Subclasses say what a chunk means (`take`) and what its end does (`close`); they
    may rely on nothing in it, and raise for nothing in it.
    """

    provider: ClassVar[str]
    """The name it has, also in blocks that are kept as they came."""

    def __init__(
        self, *, conversation: str = "", attempt: str = "", in_use: Container[str] = ()
    ) -> None:
        self.answer = Answer(self.provider, CallIds(conversation, attempt, in_use))
        self._chunks = Chunks()
        self._response: Response | None = None

    def feed(self, given: object) -> list[Piece]:
        """Take bytes or text of the stream, cut anywhere, a decoded chunk, or an SDK's object.

        Gives the pieces to emit, in order. Linear in what is given; never raises for what a
        provider sends. `TypeError` for what nobody can have sent; behind `finish` it gives nothing.
        """
        if self._response is not None:
            return []
        self._take(self._chunks.feed(given))
        pieces, self.answer.pieces = self.answer.pieces, []
        return pieces

    def hints(self) -> list[Hint]:
        """Give the calls whose arguments have become complete since this was asked."""
        hints, self.answer.hints = self.answer.hints, []
        return hints

    def finish(self) -> Response:
        """No more comes: what the response was. Asked again, it says the same."""
        if self._response is None:
            self._take(self._chunks.rest())
            self.close()
            self._response = self.answer.settle()
        return self._response

    @abstractmethod
    def take(self, chunk: Mapping[str, Any], event: str | None) -> None:
        """Say to `answer` what a chunk means; `event` is its name in an event stream."""

    def done(self) -> None:  # noqa: B027 - most formats say the same in a chunk
        """Say to `answer` what it means that the stream has said its last word (`[DONE]`)."""

    def close(self) -> None:  # noqa: B027 - most formats close each block by itself
        """Say to `answer` what the end of the stream means."""

    def _take(self, chunks: Iterator[Chunk]) -> None:
        for chunk in chunks:
            if chunk.data is None:
                self.answer.lose()
            elif chunk.is_last_word:
                self.done()
            else:
                self.take(chunk.data, chunk.event)
