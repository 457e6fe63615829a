"""Texts of strangers, made safe to look at: words, tool output and model output."""

import unicodedata


def legible(text: str) -> str:
    """A text with its control and direction marks spelt out.

    Left as they are, they could steer a terminal, or show a text other than it is.
    """
    return "".join(
        f"\\u{ord(char):04x}"
        if unicodedata.category(char) in ("Cc", "Cf", "Cs") and char not in "\n\t"
        else char
        for char in text
    )
