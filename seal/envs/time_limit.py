"""How long one call of a tool may run: one that loops is ended, in whichever thread it runs.

Signals reach the main thread alone, and rollouts run in many. So a watching thread raises an
exception in the one whose time is up; it arrives at the next step of Python there. What hangs
inside a library's own code is not ended by it.
"""

import ctypes
import threading
import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")
_TICK_S = 0.5


class _TimeIsUp(BaseException):
    """Not an `Exception`: no tool that catches those can go on."""


class TookTooLong(Exception):  # noqa: N818 - what happened, said of a call
    """A call was ended."""


class _Watch:
    """Ends what runs beyond its deadline."""

    def __init__(self) -> None:
        self._deadlines: dict[int, float] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self, seconds: float) -> None:
        """The calling thread has so many seconds from now."""
        if self._thread is None or not self._thread.is_alive():
            self._start()
        self._deadlines[threading.get_ident()] = time.monotonic() + seconds

    def end(self) -> bool:
        """The calling thread is done; whether it was ended before that."""
        own = threading.get_ident()
        with self._lock:
            if self._deadlines.pop(own, None) is not None:
                return False
            # It was just now, and the exception may still be on its way.
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(own), None)
            return True

    def _start(self) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="time limit", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(_TICK_S)
            now = time.monotonic()
            for thread, deadline in list(self._deadlines.items()):
                if now > deadline:
                    self._interrupt(thread, deadline)

    def _interrupt(self, thread: int, deadline: float) -> None:
        with self._lock:
            # By now it may be done, or at its next call.
            if self._deadlines.get(thread) == deadline:
                del self._deadlines[thread]
                raised = ctypes.py_object(_TimeIsUp)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)


_WATCH = _Watch()


def within(seconds: float, call: Callable[[], Result]) -> Result:
    """What a call returns or raises, if it does so in time.

    Raises:
        TookTooLong: It did not.
    """
    try:
        _WATCH.begin(seconds)
        try:
            result = call()
        finally:
            ended = _WATCH.end()
        if not ended:
            return result
    except _TimeIsUp:
        pass
    raise TookTooLong
