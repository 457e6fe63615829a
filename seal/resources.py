"""Where the files that ship beside the code are: a checkout's folders, or the wheel's data."""

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def resource_folder(name: str) -> Path:
    """`env_templates` or `prompts`, from the wheel or, in an editable install, the checkout."""
    packaged = _PACKAGE / "_data" / name
    return packaged if packaged.is_dir() else _PACKAGE.parent / name


def cache_folder() -> Path:
    """Where fetched data lives: `$SEAL_CACHE`, else the user's cache folder."""
    if own := os.environ.get("SEAL_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seal"
