"""A loop that does not end in an author's code would hang a check, which could not say why."""

import inspect
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from seal.envs.template import EnvironmentTemplate
from seal.errors import EnvironmentFailure

_TICK = 0.25
"""Seconds of processor time; how long a busy machine lets us wait does not count."""
_TICKS = 8
"""Ticks that one call may take."""
_ENDED = 3
"""Calls that are ended one by one, before the whole block is."""


class OutOfPatience(BaseException):
    """Goes through every `except Exception`, the author's included."""


class Patience:
    """Looks at every tick whether the same call of the author's code is still at work."""

    def __init__(self, template: EnvironmentTemplate) -> None:
        self._file = inspect.getsourcefile(template.world)
        self._call: FrameType | None = None
        self._ticks = 0
        self._ended = 0
        self.failure: EnvironmentFailure | None = None
        """The first call that was ended."""

    def tick(self, _signal: int, frame: FrameType | None) -> None:
        """End a call that takes too long.

        Raises:
            EnvironmentFailure: In the midst of the author's code.
            OutOfPatience: The same, after some such calls.
        """
        frames = [one for one in _stack(frame) if one.f_code.co_filename == self._file]
        call = frames[-1] if frames else None
        self._ticks = self._ticks + 1 if call is not None and call is self._call else 0
        self._call = call
        # Once a call was ended, others that get stuck in the same way get less time.
        if self._ticks >= (1 if self.failure else _TICKS):
            self._ticks = 0
            self._ended += 1
            if self._ended > _ENDED:
                raise OutOfPatience
            name = frames[0].f_code.co_name
            failure = EnvironmentFailure(
                f"{name} was still at work after {_TICKS * _TICK:g} s; a loop in it does not end"
            )
            self.failure = self.failure or failure
            raise failure


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame and those that it was called from, itself first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


@contextmanager
def patience(template: EnvironmentTemplate) -> Iterator[Patience]:
    """End every call of the environment's own code that takes more than two seconds of work.

    After some such calls the whole block ends there. Signals come to the main thread alone, and not
    on every system: elsewhere nothing is ended.
    """
    watch = Patience(template)
    timer = getattr(signal, "SIGVTALRM", None)
    if timer is None or threading.current_thread() is not threading.main_thread():
        yield watch
        return
    before = signal.signal(timer, watch.tick)
    signal.setitimer(signal.ITIMER_VIRTUAL, _TICK, _TICK)
    try:
        yield watch
    except OutOfPatience:
        pass
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(timer, before or signal.SIG_DFL)
