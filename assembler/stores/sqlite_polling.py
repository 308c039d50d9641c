"""What other processes wrote into a SQLite file, found by asking now and then.

SQLite gives no notice. `PRAGMA data_version` changes with every commit of another connection, and
costs a few microseconds to ask, since it is read from memory that the processes share. Not here:
what is done when there is something new (`sqlite`), and who listens (`base`).
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from threading import Event, Thread

__all__ = ["Polling"]

_log = logging.getLogger("assembler.stores")


class Polling:
    """A thread that looks every `poll_ms`, until it is ended or nobody wants it any more.

    It has a connection of its own (`connect`). `look` is given it first, and whenever the file has
    changed; `wanted` is asked before each look.
    """

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        look: Callable[[sqlite3.Connection], None],
        wanted: Callable[[], bool],
        poll_ms: int,
    ) -> None:
        self._connect = connect
        self._look = look
        self._wanted = wanted
        self._poll_s = poll_ms / 1000
        self._ended = Event()
        self._thread = Thread(target=self._run, name="assembler-store-polling", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Look no more, and wait for the thread."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        told = False
        while not self._ended.is_set():
            try:
                with closing(self._connect()) as connection:
                    self._follow(connection)
                    return
            except sqlite3.Error as error:
                if not told:  # once: it may go on for long
                    _log.warning("no news of other processes: %s", error.sqlite_errorname)
                told = True
            self._ended.wait(self._poll_s)

    def _follow(self, connection: sqlite3.Connection) -> None:
        seen = None
        while self._wanted():
            version = connection.execute("PRAGMA data_version").fetchone()[0]
            if version != seen:
                self._look(connection)
                seen = version
            if self._ended.wait(self._poll_s):
                return
