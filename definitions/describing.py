"""The operations of recordings that describe calls: a hint, a request, a description, none.

They drive the coordinator's core (`describer`), with every tool described unattended and any number
at once; nothing is appended. Here lives what these lines do and what is expected of it
(`described`). Not here: the rules (`describer`), what attempts are (`driving`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from sys import maxsize
from typing import Any

from assembler.engine.values import same, thaw
from definitions.describer import Core, Shown, Start, Stop
from definitions.driving import given_up_in

__all__ = ["EXPECTATIONS", "RUNNERS"]


class _Describing:
    """What a run remembers of its descriptions between two lines."""

    def __init__(self) -> None:
        self.core = Core(lambda _: True, at_once=maxsize)
        self.jobs: dict[str, tuple[Start, str | None]] = {}
        """By call: the description that is being made of it, and the attempt of its hint."""
        self.shown: list[dict[str, Any]] = []
        self.heard = 0

    def catch_up(self, run: Any) -> None:
        """Learn what the recording said meanwhile: events, and attempts that are given up."""
        for event in run.facts().events:
            if event.seq > self.heard:
                self.heard = event.seq
                self.core.hear(event)
        for attempt in given_up_in(run):
            self.core.abandon(attempt)
        self.act(None)

    def act(self, attempt: str | None) -> None:
        for action in self.core.actions():
            if isinstance(action, Start):
                self.jobs[action.call_id] = action, attempt
            elif isinstance(action, Stop):
                self.jobs = {
                    call_id: made
                    for call_id, made in self.jobs.items()
                    if made[0].job != action.job
                }
            elif isinstance(action, Shown):
                self.show(action)

    def show(self, shown: Shown) -> None:
        """Enter what a request was told, and what became of one that had to wait."""
        if shown.after not in (None, "wait"):
            return
        verdict = shown.verdict
        if verdict == "none":
            if shown.after is None:
                return  # nothing is described, and nobody is prompted
            verdict = "again"
        entry: dict[str, Any] = {"call_id": shown.call_id, "verdict": verdict}
        self.shown.append(entry if shown.text is None else {**entry, "text": shown.text})


def _describing(run: Any) -> _Describing:
    describing: _Describing = run.memory.setdefault("describing", _Describing())
    describing.catch_up(run)
    return describing


def _input(fields: Mapping[str, Any]) -> Any:
    return thaw(fields.get("input", {}))


def _hint(run: Any, fields: Mapping[str, Any]) -> None:
    describing, attempt = _describing(run), fields.get("attempt")
    describing.core.hint(fields["call_id"], fields.get("tool"), _input(fields), attempt)
    describing.act(attempt)


def _request(run: Any, fields: Mapping[str, Any]) -> None:
    describing, attempt = _describing(run), fields.get("attempt")
    describing.core.request(fields["call_id"], fields.get("tool"), _input(fields), attempt=attempt)
    describing.act(attempt)


def _describe(run: Any, fields: Mapping[str, Any]) -> None:
    """A description ends. It is the one that is being made if it is of the same input (and
    attempt, where both are known); any other was let go before."""
    describing = _describing(run)
    start, attempt = describing.jobs.get(fields["call_id"], (None, None))
    if start is None or ("input" in fields and not same(fields["input"], start.input)):
        return
    told = fields.get("attempt")
    if None not in (told, attempt) and told != attempt:
        return
    del describing.jobs[fields["call_id"]]
    if fields.get("is_error", False):
        describing.core.failed(start.job)
    else:
        describing.core.finished(start.job, fields.get("text", ""))
    describing.act(None)


def _withdraw(run: Any, fields: Mapping[str, Any]) -> None:
    describing = _describing(run)
    describing.core.withdraw(fields["call_id"])
    describing.act(None)


def _described(run: Any, value: Any) -> list[tuple[str, Any, Any]]:
    """What requests came to since the last such line."""
    describing = _describing(run)
    shown, describing.shown = describing.shown, []
    differences: list[tuple[str, Any, Any]] = run.missing_from(shown, value)
    return differences


RUNNERS: Mapping[str, Callable[[Any, Mapping[str, Any]], None]] = {
    "hint": _hint,
    "request": _request,
    "describe": _describe,
    "withdraw": _withdraw,
}

EXPECTATIONS: Mapping[str, Callable[[Any, Any], list[tuple[str, Any, Any]]]] = {
    "described": _described,
}
