"""How the report says figures and kinds, for readers who have not met SEAL before."""

import re

from seal.types import Kind

MEANING: dict[Kind, str] = {
    Kind.MALFORMED_CALL: "A call was attempted, but no tool name and arguments could be read.",
    Kind.UNKNOWN_TOOL: "The tool that was called does not exist here.",
    Kind.ARGUMENT_MISSING: "A call left out an argument that it needs.",
    Kind.ARGUMENT_UNEXPECTED: "A call gave an argument that the tool does not have.",
    Kind.ARGUMENT_TYPE: "A value was of the wrong type, such as text for a number.",
    Kind.ARGUMENT_VALUE: "A value was outside what the tool's schema allows.",
    Kind.REFUSED: "The tool understood the call and said no.",
    Kind.WRONG_ARGUMENT: "The right tool was called with a wrong value, and the outcome shows it.",
    Kind.WRONG_TOOL: "Calls went through, but none was to a tool that the turn needs.",
    Kind.MISSING_CALL: "A call that the turn needs was never made.",
    Kind.NO_CALL: "No call was made in a turn that needs some.",
    Kind.SPURIOUS_CALL: "A call was made where the agent should have asked or declined.",
    Kind.STATE_MISMATCH: "The world was left in another state than it should be.",
    Kind.OUTPUT_MISSING: "Information that the turn needs was never looked up.",
    Kind.ANSWER_MISMATCH: "The agent's answer does not say what it has to say.",
    Kind.RECOVERY_FAILURE: "An error was shown, and the turn ended without getting past it.",
    Kind.LIMIT_REACHED: "The turn ran out of steps, calls or time.",
    Kind.CASCADE: "The calls were right, but an earlier turn had already gone wrong.",
    Kind.PASS: "The turn went as it should.",
    Kind.CORRECT_ABSTENTION: "The agent rightly made no call.",
    Kind.UNSCORABLE: "The turn could not be judged.",
}
"""One sentence for each kind of diagnosis."""

_POLICIES = {
    "sim": (
        "Simulated policy",
        "A seeded reader stands in for the agent. Its figures test the plumbing; "
        "they say nothing about any language model.",
    ),
    "gold": (
        "Reference solution",
        "The recorded gold calls were replayed; no agent decided anything.",
    ),
    "replay": ("Replayed policy", "The calls of an earlier run were made again."),
}


def policy_note(policy: str) -> tuple[str, str] | None:
    """A label and a sentence for a policy that is no language model, None for one that is."""
    return _POLICIES.get(policy.partition(":")[0])


def figure(value: float | None, digits: int = 2) -> str:
    """A score, or a word where there is none; unscored is never shown as zero.

    >>> figure(0.905, 3), figure(None)
    ('0.905', 'none')
    """
    return "none" if value is None else f"{value:.{digits}f}".replace("-", "\N{MINUS SIGN}")


def signed(value: float, digits: int = 2) -> str:
    """A difference with its sign, and one more digit where it would look like zero.

    >>> signed(0.685), signed(-0.001), signed(0.0)
    ('+0.69', '−0.001', '0.00')
    """
    for more in (digits, digits + 1):
        if round(value, more) != 0:
            return f"{value:+.{more}f}".replace("-", "\N{MINUS SIGN}")
    return f"{0:.{digits}f}"


def tick(value: float) -> str:
    """The end of an axis of differences.

    >>> tick(-0.25), tick(1.0), tick(-0.0)
    ('−0.25', '+1', '0')
    """
    return f"{value:+g}".replace("-", "\N{MINUS SIGN}") if value else "0"


def percent(share: float) -> str:
    """A share of the whole.

    >>> percent(0.408602), percent(0.004), percent(0.0)
    ('41%', '<1%', '0%')
    """
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"


def amount(value: float) -> str:
    """A count that may have decayed, or an e-value: no more digits than it needs.

    >>> amount(38.0), amount(2.707107), amount(56.7608), amount(1200000.0)
    ('38', '2.7', '56.8', '1,200,000')
    """
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def money(dollars: float) -> str:
    """Dollars, in cents where they are many and finer where they are few.

    >>> money(0.0), money(1.234), money(0.00123)
    ('$0', '$1.23', '$0.0012')
    """
    if dollars == 0:
        return "$0"
    return f"${dollars:,.2f}" if dollars >= 0.1 else f"${dollars:.2g}"


def clipped(text: str, most: int) -> str:
    """A text, and where it is long its beginning, with what is left out said.

    >>> clipped("abcdef", 4)
    'abcd … (2 more characters)'
    """
    left = len(text) - most
    return text if left <= 0 else f"{text[:most]} … ({left:,} more characters)"


def name_parts(name: str) -> list[str]:
    """The parts of a name, between which a line may break.

    >>> name_parts("book_room.day")
    ['book_', 'room.', 'day']
    """
    return re.findall(r"[^._]*[._]+|[^._]+", name)
