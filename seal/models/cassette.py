"""Model answers on disk: requests that were made before are replayed instead of being made.

A cassette holds answers and hashes of requests. It never sees a key, a header or an address, so it
may be shared, and it replays wherever the model's server is or is not.
"""

import threading
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from seal.records import JsonLines
from seal.types import Record, Sampling, ToolCall, Usage, content_hash


class RecordedAnswer(Record):
    """One answer of a model, under the hash of the request."""

    key: str
    model: str
    content: str
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    """What it cost when it was recorded; a replay costs nothing."""


def request_key(
    model: str,
    messages: list[dict[str, Any]],
    tools: list[dict[str, Any]],
    sampling: Sampling,
    seed: int | None,
) -> str:
    """The hash of everything that an answer depends on; where the server is does not count."""
    return content_hash([model, messages, tools, sampling.model_dump(), seed], 64)


class Cassette:
    """A JSONL file of recorded answers; use one object per file, from any thread.

    Raises:
        ConfigError: The file is no cassette, or is of another schema version.
    """

    def __init__(self, path: Path) -> None:
        self._lines = JsonLines(path, RecordedAnswer)
        self._answers: dict[str, RecordedAnswer] = {}
        self._lock = threading.Lock()
        for answer in self._lines.read():
            self._answers.setdefault(answer.key, answer)

    def find(self, key: str) -> RecordedAnswer | None:
        """The answer recorded for this request, None if it was never made."""
        with self._lock:
            return self._answers.get(key)

    def record(self, answer: RecordedAnswer) -> RecordedAnswer:
        """Keep an answer; the one that counts.

        Where two threads made the same request at once, the first answer is the one that a replay
        will give, so both must go on with it.
        """
        with self._lock:
            kept = self._answers.setdefault(answer.key, answer)
            if kept is answer:
                self._lines.append(answer)
            return kept


_open: WeakValueDictionary[Path, Cassette] = WeakValueDictionary()
_opening = threading.Lock()


def open_cassette(path: Path) -> Cassette:
    """The cassette of a file, the same object for as long as anyone holds it.

    Raises:
        ConfigError: The file is no cassette, or is of another schema version.
    """
    with _opening:
        where = path.resolve()
        cassette = _open.get(where)
        if cassette is None:
            cassette = _open[where] = Cassette(path)
        return cassette
