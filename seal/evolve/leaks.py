"""Gold values in a text: what they are, and finding them however they are written."""

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from seal.types import Task

_ANY_CASE = 6
"""Letters from which a word is looked for in any case: `may` is not the month."""
_SPLIT = 4
"""Letters and digits from which a code is also looked for with blanks in it: `a 5` is no code."""
_WORDS = (
    "a about after again all also an and any are as at back be before below between both but by "
    "call can do down each else every first for from give has have if in into is it its last left "
    "less like list long make may more most name new next no none not now of off on once one only "
    "open or other out over own per same see set so some such than that the their them then there "
    "these they this those time to too two type under until up use user value was what when where "
    "which while with within without write yes yet you your"
)
_ORDINARY = frozenset(_WORDS.split())
"""Words that stand in any text; as a value they are looked for in quotes or after `=` alone."""
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def gold_values(tasks: Iterable[Task]) -> dict[str, set[str]]:
    """Every value that gold sends or an answer must hold, with the scenarios it is in.

    Short numbers, single letters and short words of an answer are left out: they prove nothing.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for task in tasks:
        for turn in task.turns:
            for call in turn.gold or ():
                for value in call.arguments.values():
                    for leaf in _leaves(value):
                        found[leaf].add(task.scenario)
            for text in turn.answer:
                if len(text) >= _SPLIT or any(letter.isdigit() for letter in text[1:]):
                    found[text].add(task.scenario)
    return dict(found)


def _leaves(value: JsonValue) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, str):
        if len(value) >= 2:
            yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        shown = json.dumps(value)
        if abs(value) >= 1000 or (not float(value).is_integer() and len(shown) >= _SPLIT):
            yield shown


class Reading:
    """A text in which values are looked for."""

    def __init__(self, text: str) -> None:
        self.text = unicodedata.normalize("NFKC", text)
        self._bare = bare(text)

    def find(self, value: str) -> re.Match[str] | None:
        """Where a value stands, in whatever case and with whatever punctuation inside.

        >>> bool(Reading("such as k 90.210").find("K-90210"))
        True
        >>> Reading("a 5 minute walk, 13020 steps").find("A5")
        """
        # Any way to write a value keeps its letters and digits: most values end here.
        if not (letters := bare(value)) or letters not in self._bare:
            return None
        return _pattern(unicodedata.normalize("NFKC", value)).search(self.text)


def bare(text: str) -> str:
    """The letters and digits of a text, case folded."""
    return "".join(
        letter for letter in unicodedata.normalize("NFKC", text).casefold() if letter.isalnum()
    )


def _pattern(value: str) -> re.Pattern[str]:
    if _NUMBER.fullmatch(value):
        whole, point, rest = value.partition(".")
        grouped = re.sub(r"(?<=\d)(?=(?:\d{3})+$)", "[,_' ]?", whole)
        tail = re.escape(point + rest) if point else r"(?:\.0+)?"
        return re.compile(rf"(?<!\d)(?<!\d\.){grouped}{tail}(?!\d)(?!\.\d)")
    if not any(letter.isdigit() for letter in value):
        if value.casefold() in _ORDINARY:
            return re.compile(rf"(?<=[\"'`=]){re.escape(value)}(?!\w)", re.IGNORECASE)
        words = r"\s+".join(re.escape(word) for word in value.split())
        case = re.IGNORECASE if len(value) >= _ANY_CASE else 0
        return re.compile(rf"(?<!\w){words}(?!\w)", case)
    letters = [re.escape(letter) for letter in value if letter.isalnum()]
    between = r"[\W_]{0,3}" if len(letters) >= _SPLIT else r"(?:[^\w\s]|_){0,2}"
    return re.compile(rf"(?<![^\W_]){between.join(letters)}(?![^\W_])", re.IGNORECASE)
