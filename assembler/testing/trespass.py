"""What a Definition must not ask: clocks, randomness, the environment, files, addresses.

`watch_for_trespass` does a call and names what it asked, however it was imported and however deep
it lies. It hears of calls of functions, through `sys.setprofile`; it does not hear of a value
that C code fetches itself (`numpy.datetime64("now")`, an unseeded `random.Random()`): there the
answers differ, which `watching` sees. Not here: what the Definition answers.
"""

from __future__ import annotations

import builtins
import datetime as dt
import os
import random
import socket
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, TypeVar

__all__ = ["watch_for_trespass"]

T = TypeVar("T")

CLOCK, CHANCE, SURROUNDINGS, PROCESS = "clock", "randomness", "surroundings", "process"

_CLOCKS = (
    *("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"),
    *("process_time", "process_time_ns", "thread_time", "thread_time_ns"),
    *("clock_gettime", "clock_gettime_ns", "localtime", "ctime", "sleep"),
)
_AROUND = (
    *("getpid", "getppid", "getcwd", "getlogin", "uname", "cpu_count", "getloadavg"),
    *("open", "stat", "lstat", "listdir", "scandir", "readlink", "get_terminal_size"),
)
_NOW = frozenset(("now", "utcnow", "today"))

# By identity: a builtin is one object, whichever name it was imported under.
_ASKED: dict[int, tuple[str, str]] = {
    id(getattr(time, name)): (CLOCK, f"time.{name}") for name in _CLOCKS if hasattr(time, name)
}
_ASKED |= {
    id(os.urandom): (CHANCE, "os.urandom"),
    id(socket.gethostname): (SURROUNDINGS, "socket.gethostname"),
    id(threading.get_ident): (PROCESS, "threading.get_ident"),
    id(builtins.open): (SURROUNDINGS, "open"),
    id(builtins.hash): (PROCESS, "hash"),
    id(builtins.id): (PROCESS, "id"),
}
_ASKED |= {
    id(getattr(os, name)): (SURROUNDINGS, f"os.{name}") for name in _AROUND if hasattr(os, name)
}
_DICE = random.random.__self__  # type: ignore[attr-defined] # the one generator that all share
_ENVIRON: tuple[CodeType, str] = (type(os.environ).__getitem__.__code__, "os.environ")

# Who may do so on the way: the engine, a collector's callback, a log line, an import. `__hash__`
# has to call `hash`, and the `__repr__` that attrs writes knows by `id` what it is in already.
_OTHERS = frozenset(
    (
        *("assembler", "hypothesis", "_pytest", "pytest", "coverage"),
        *("logging", "importlib", "linecache"),
    )
)
_HASHES = "__hash__"
_WRITTEN_BY_ATTRS = "<attrs generated"


def watch_for_trespass(call: Callable[[], T]) -> tuple[T, tuple[str, str] | None]:
    """What `call` gives, and the first thing it asked that it must not: `(what, name)`.

    `what` is "clock", "randomness", "surroundings" or "process". Where somebody else profiles
    already nothing is watched. Costs a Python call for each call inside.
    """
    found: list[tuple[str, str]] = []

    def hear(frame: FrameType, event: str, asked: Any) -> None:
        if event == "c_call":
            what = _ASKED.get(id(asked)) or _method(asked)
        elif event == "call" and frame.f_code is _ENVIRON[0]:
            what = SURROUNDINGS, _ENVIRON[1]
        else:
            return
        if what is not None and _is_theirs(frame, what[0]):
            found.append(what)

    if sys.getprofile() is not None:
        return call(), None
    sys.setprofile(hear)
    try:
        given = call()
    finally:
        sys.setprofile(None)
    return given, found[0] if found else None


def _method(asked: Any) -> tuple[str, str] | None:
    """Whether a method of C is one that asks the clock or the shared generator."""
    owner = getattr(asked, "__self__", None)
    if owner is _DICE:
        return CHANCE, f"random.{asked.__name__}"
    if isinstance(owner, type) and asked.__name__ in _NOW and issubclass(owner, dt.date):
        return CLOCK, f"datetime.{asked.__name__}"
    return None


def _is_theirs(frame: FrameType, what: str) -> bool:
    module = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    if module in _OTHERS:
        return False
    if what == PROCESS:  # a library's own book-keeping by address is harmless
        if frame.f_code.co_filename.startswith(_WRITTEN_BY_ATTRS):
            return False
        return frame.f_code.co_name != _HASHES and module not in sys.stdlib_module_names
    return True
