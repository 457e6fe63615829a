"""The files of an author, as text."""

import os
from pathlib import Path

from seal.errors import TemplateError


def author_text(path: Path) -> str | None:
    """What a file says, without the mark that some editors begin UTF-8 with; None: there is none.

    Raises:
        TemplateError: Something else is there, such as a folder or a link to nothing.
    """
    if not os.path.lexists(path):
        return None
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as cause:
        raise TemplateError(f"{path}: cannot be read ({cause.strerror}).") from cause
    except UnicodeDecodeError as cause:
        raise TemplateError(
            f"{path}: not UTF-8 (byte {cause.start} is {cause.object[cause.start]:#04x}).\n"
            "Save it as UTF-8."
        ) from cause
