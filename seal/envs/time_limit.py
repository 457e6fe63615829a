"""How long an author's code may run: what loops is ended, in whichever thread it runs.

Signals reach the main thread alone, and rollouts run in many. So a watching thread raises an
exception in the one whose time is up; it arrives at the next step of Python there. What waits
inside a library's own code is ended in the main thread only, by a signal.
"""

import ctypes
import math
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from seal.errors import EnvironmentFailure

Result = TypeVar("Result")
WORK_S = 20.0
"""Seconds of processor time for an author's code that is no call of a policy's."""
WAIT_S = 120.0
"""The same in seconds that pass: what waits does no work."""
_PATIENCE_S = 2.0
"""Seconds of work where nobody waits for an answer but to learn that there is one."""
_ENDED = 3
"""Calls that are ended one by one, before all that would make more of them is."""
_TICK_S = 0.25


class TimeIsUp(BaseException):
    """Not an `Exception`: no tool that catches those can go on."""


class OutOfPatience(BaseException):
    """Too many calls were ended. Not an `Exception`, for the same reason."""


class TookTooLong(Exception):  # noqa: N818 - what happened, said of a call
    """A call was ended; its traceback is that of the code that was at work."""


@dataclass(slots=True)
class Patience:
    """What is known of the calls of one `patience` block."""

    source: str | None
    """The file whose functions are named."""
    ended: int = 0
    failure: EnvironmentFailure | None = None
    """What is said of the first call that was ended."""

    def failed(self, cause: TookTooLong) -> EnvironmentFailure:
        """What is said of a call that was ended.

        Raises:
            OutOfPatience: It was one too many.
        """
        self.ended += 1
        if self.ended > _ENDED:
            raise OutOfPatience
        frames = traceback.extract_tb(cause.__traceback__)
        names = [frame.name for frame in frames if frame.filename == self.source]
        said = str(cause).replace("it", names[-1], 1) if names else str(cause)
        failure = EnvironmentFailure(said).with_traceback(cause.__traceback__)
        self.failure = self.failure or failure
        return failure


_PATIENCE: ContextVar[Patience | None] = ContextVar("patience", default=None)


@contextmanager
def patience(source: str | None) -> Iterator[Patience]:
    """End every call that takes more than two seconds of work; after some, the whole block.

    Args:
        source: The author's file.
    """
    found = Patience(source)
    before = _PATIENCE.set(found)
    try:
        yield found
    except OutOfPatience:
        pass
    finally:
        _PATIENCE.reset(before)


@dataclass(slots=True, eq=False)
class _Running:
    """One call under watch."""

    thread: int
    wait: float
    """Seconds that may pass."""
    work: float
    """Seconds that the thread may work."""
    began: float
    outer: "_Running | None" = None
    """The call that it was made in."""
    ended: int = 0
    """How often it was told to end."""
    _clock: int | None = None
    """The clock that runs while the thread works."""
    _worked: float = 0.0
    """What it said when the call was first looked at: to ask at once would slow every call down."""

    def late(self) -> bool:
        """Whether its time is up; to be asked while its thread cannot end."""
        passed = time.monotonic() - self.began
        if passed > self.wait or self.work == math.inf:
            return passed > self.wait
        if not hasattr(time, "pthread_getcpuclockid"):
            return passed > self.work
        if self._clock is None:
            self._clock = time.pthread_getcpuclockid(self.thread)
            self._worked = time.clock_gettime(self._clock)
        return time.clock_gettime(self._clock) - self._worked > self.work


class _Watch:
    """Ends what runs beyond its time."""

    def __init__(self) -> None:
        self._running: dict[int, _Running] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self, running: _Running) -> None:
        """Watch a call of this thread."""
        if self._thread is None or not self._thread.is_alive():
            self._start()
        running.outer = self._running.get(running.thread)
        self._running[running.thread] = running

    def end(self, running: _Running) -> None:
        """The call is over; nothing that was meant for it arrives after this."""
        with self._lock:
            if self._running.get(running.thread) is not running:
                return
            if running.outer is None:
                del self._running[running.thread]
            else:
                self._running[running.thread] = running.outer
            if running.ended:
                _raise_in(running.thread, None)

    def of(self, thread: int) -> _Running | None:
        """The call of a thread that is watched."""
        return self._running.get(thread)

    def _start(self) -> None:
        _listen()
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="time limit", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(_TICK_S)
            for thread, running in list(self._running.items()):
                with self._lock:
                    # By now it may be done, or at its next call.
                    here = self._running.get(thread) is running
                    if here and (running.ended or running.late()):
                        _interrupt(running)


def _interrupt(running: _Running) -> None:
    """Tell a call to end, and again at every tick until it does."""
    running.ended += 1
    main = threading.main_thread().ident == running.thread
    if main and running.ended > 1 and _WAKES and signal.getsignal(_WAKES) is _wake:
        # It waits for something outside of Python, which a signal ends. One exception is enough,
        # since a second one could arrive after the call.
        _raise_in(running.thread, None)
        signal.pthread_kill(running.thread, _WAKES)
    else:
        _raise_in(running.thread, TimeIsUp)


_WAKES: signal.Signals | None = getattr(signal, "SIGVTALRM", None)
"""The signal that ends what waits in the main thread: not the user's, which a shell may have made
that its background ignores."""


def _listen() -> None:
    """Be ready for that signal; only the main thread can, and an author's own handler stays."""
    main = threading.current_thread() is threading.main_thread()
    if main and _WAKES and signal.getsignal(_WAKES) is signal.SIG_DFL:
        signal.signal(_WAKES, _wake)


def _wake(_signal: int, _frame: object) -> None:
    running = _WATCH.of(threading.get_ident())
    if running is not None and running.ended:
        raise TimeIsUp


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    raised = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)


_WATCH = _Watch()


def within(call: Callable[[], Result], *, wait: float = WAIT_S, work: float = WORK_S) -> Result:
    """What a call returns or raises, if it does so in time.

    Args:
        call: What to run, in this thread.
        wait: Seconds that may pass.
        work: Seconds of this thread's processor time, which do not depend on what else a machine
            does; where a system does not tell them, seconds that pass.

    Raises:
        TookTooLong: It did not.
        EnvironmentFailure: The same, where patience is short.
    """
    block = _PATIENCE.get()
    if block is not None:
        work = min(work, _PATIENCE_S)
        if block.failure is not None:
            # What gets stuck in the same way gets less time.
            wait, work = wait / 8, work / 8
    running = _Running(threading.get_ident(), wait, work, time.monotonic())
    trace = None
    try:
        try:
            _WATCH.begin(running)
            result = call()
        finally:
            _WATCH.end(running)
        if not running.ended:
            return result
    except BaseException as cause:
        # It may have been raised on the way to the end of the watch, or within it.
        _settle(running)
        if not running.ended:
            raise
        trace = cause.__traceback__
    said = f"it was still at work after {min(wait, work):g} s; a loop in it may not end"
    failure = TookTooLong(said).with_traceback(trace)
    raise failure if block is None else block.failed(failure)


def _settle(running: _Running) -> None:
    """End the watch, however often it interrupts that."""
    while True:
        try:
            _WATCH.end(running)
        except (TimeIsUp, KeyboardInterrupt):
            if not running.ended:
                raise
        else:
            return
