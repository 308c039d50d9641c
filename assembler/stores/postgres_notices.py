"""What other processes wrote, heard over one listening connection (`LISTEN`).

A notice says which conversation and up to which seq. When the connection was made again, and now
and then, it is asked how far each conversation is, so that a notice that was missed does no harm.
Not here: who listens (`base`), and the transaction that gives notice (`postgres`).
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from selectors import EVENT_READ, DefaultSelector
from threading import Event, Thread
from urllib.parse import quote, unquote

import psycopg

from assembler.stores.base import StoreError
from assembler.stores.postgres_database import Connection, Database

__all__ = ["Notices", "notice"]

_RETRY_S = 0.1
_END_S = 2.0
_log = logging.getLogger("assembler.stores")


def notice(writer: str, seq: int, conversation: str) -> str:
    """The payload that tells of the events up to `seq`."""
    return f"{writer} {seq} {quote(conversation, safe='')}"


class Notices:
    """A thread that listens until it is ended.

    `hear(conversation, seq)` is called for each notice but those of `writer`; `catch_up` is given
    the connection whenever something may have been missed.
    """

    def __init__(
        self,
        database: Database,
        writer: str,
        hear: Callable[[str, int], None],
        catch_up: Callable[[Connection], None],
        check_ms: int,
    ) -> None:
        self._database = database
        self._writer = writer
        self._hear = hear
        self._catch_up = catch_up
        self._check_s = check_ms / 1000
        self._ended = Event()
        self._wake, self._woken = socket.socketpair()
        self._thread = Thread(target=self._run, name="assembler-store-notices", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Listen no more. It waits for the thread, but not for a server that does not answer."""
        self._ended.set()
        self._wake.close()  # which the other end sees
        self._thread.join(_END_S)

    def _run(self) -> None:
        wait_s = _RETRY_S
        while not self._ended.is_set():
            try:
                with self._listening() as connection:
                    wait_s = _RETRY_S
                    self._follow(connection)
            except (psycopg.Error, StoreError, OSError) as error:
                if not self._ended.is_set():
                    _log.warning("no news of other processes: %s", type(error).__name__)
            self._ended.wait(wait_s)
            wait_s = min(2 * wait_s, self._check_s)
        self._woken.close()

    @contextmanager
    def _listening(self) -> Iterator[Connection]:
        connection = self._database.connect()
        try:
            connection.add_notify_handler(lambda told: self._told(told.payload))
            with suppress(psycopg.errors.ReadOnlySqlTransaction):
                # (a standby gives no notice: what is new is found when it is checked)
                connection.execute(f'LISTEN "{self._database.channel}"'.encode())
            self._catch_up(connection)
            yield connection
        finally:
            connection.close()

    def _follow(self, connection: Connection) -> None:
        with DefaultSelector() as selector:
            selector.register(connection.fileno(), EVENT_READ)
            selector.register(self._woken, EVENT_READ)
            while not self._ended.is_set():
                if selector.select(self._check_s):
                    self._receive(connection)
                else:
                    self._catch_up(connection)

    def _receive(self, connection: Connection) -> None:
        connection.pgconn.consume_input()
        while told := connection.pgconn.notifies():
            self._told(told.extra.decode())

    def _told(self, payload: str) -> None:
        writer, _, rest = payload.partition(" ")
        seq, _, conversation = rest.partition(" ")
        if writer != self._writer and seq.isdecimal():
            self._hear(unquote(conversation), int(seq))
