"""Two calls that are slow to describe, with hints and without.

Run it by `python -m definitions.describer.example`. The provider asks for one call after the other,
as some do: the second request comes when the first is answered. Time is a clock that nobody waits
for. Not here: the rules (`core`).
"""

from __future__ import annotations

import asyncio
from selectors import DefaultSelector
from typing import Any

from assembler.engine.events import Draft
from definitions.describer.shell import Describer, Job

__all__ = ["main", "run"]

CALLS = {"c1": {"title": "Mend the gate"}, "c2": {"title": "Paint the gate"}}
BETWEEN_HINTS_S = 1
REQUEST_S = 3
"""When the first request comes."""
DESCRIBE_S = 8
READ_S = 10
"""How long a person looks at each prompt."""


class _Selector(DefaultSelector):
    """Sleeps by moving the clock."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now += timeout or 0
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


async def _describe(job: Job) -> str:
    await asyncio.sleep(DESCRIBE_S)
    return f"Opens the ticket “{job.input['title']}”."


async def _conversation(*, hints: bool) -> list[float]:
    waited = []
    log: list[Draft] = []

    async def write(draft: Draft) -> None:
        log.append(draft)

    clock = asyncio.get_running_loop().time
    async with Describer(_describe, allows=lambda _: True, write=write) as describer:
        for call_id, arguments in CALLS.items():
            if hints:
                describer.hint(call_id, "create_ticket", arguments, "a1")
            await asyncio.sleep(BETWEEN_HINTS_S)
        await asyncio.sleep(REQUEST_S - clock())
        for call_id, arguments in CALLS.items():
            asked = clock()
            shown = await describer.request(call_id, "create_ticket", arguments)
            waited.append(clock() - asked)
            print(f"{clock():4.0f} s  {call_id}: {shown.text} ({shown.verdict})")
            await asyncio.sleep(READ_S)
    print(f"{clock():4.0f} s  both are answered")
    return waited


def run(*, hints: bool) -> list[float]:
    """Have the conversation; how long each prompt was waited for, in seconds."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(_conversation(hints=hints))


def main() -> None:
    """Have it twice, and say what the hints save."""
    print("Described when it is asked about:")
    late = run(hints=False)
    print("Described from its hint:")
    early = run(hints=True)
    print(f"Waited for prompts: {sum(late):.0f} s and {sum(early):.0f} s, ", end="")
    print(f"{sum(late) / sum(early):.1f} times less; for the second {early[1]:.0f} s.")


if __name__ == "__main__":
    main()
