"""What can go wrong, and whose it is.

```
SealError
  ConfigError            an option, a file or a name is wrong         exit 2
    MissingExtra         an optional dependency is not installed      exit 2
  TemplateError          an environment template is wrong             exit 2
  EnvironmentFailure     an environment's own code failed             exit 3
  ModelFailure           a model could not be called                  exit 3
  StorageFailure         a run folder could not be written            exit 3
ToolError                a tool says no to the policy; never a crash
```

A message says where and what, then what would be right, then the command that fixes or shows it.
`ToolError` stands apart: it is speech to the policy, not a failure of ours.
"""

import difflib
from collections.abc import Iterable
from typing import ClassVar

RULE_KEYS = ("allowed", "format", "unit", "minimum", "maximum", "requires")
"""What a rule may say of a tool or an argument."""


class SealError(Exception):
    """Anything SEAL tells its user in one message, without a traceback."""

    exit_code: ClassVar[int] = 2


class ConfigError(SealError):
    """An option, a file or a name that the user gave is wrong."""


class MissingExtra(ConfigError):  # noqa: N818 - the design's word for it
    """A command needs packages that the core install leaves out."""


class TemplateError(SealError):
    """A file of an environment template is wrong."""


class EnvironmentFailure(SealError):  # noqa: N818 - a failure is recorded, not blamed on the user
    """An environment's own code raised something that is no `ToolError`."""

    exit_code = 3


class ModelFailure(SealError):  # noqa: N818
    """A model could not be called, or answered something unusable."""

    exit_code = 3


class StorageFailure(SealError):  # noqa: N818
    """A run folder could not be written, for want of space or rights."""

    exit_code = 3


class ToolError(Exception):
    """A tool's "no" to the policy, with the rules it wants to cite.

    Args:
        code: A short identifier, the same for every refusal of this sort.
        message: What the tool says, in the author's words.
        argument: The argument at fault, if it is one.
        masked: The message with all its values masked, from where an adapter knows it: only this of
            a message may be shown to a rewriter.
        rules: Rule values beyond the declared ones, such as `allowed=self.free_hours`.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        argument: str | None = None,
        masked: str = "",
        **rules: object,
    ) -> None:
        unknown = [key for key in rules if key not in RULE_KEYS]
        if unknown:
            raise TypeError(
                f"ToolError({code!r}) cites {unknown[0]!r}, which is no rule. "
                f"Rules: {', '.join(RULE_KEYS)}.{did_you_mean(unknown[0], RULE_KEYS)}"
            )
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.argument = argument
        self.masked = masked
        self.rules = {key: value for key, value in rules.items() if value is not None}


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A last line that guesses what a user meant, empty if nothing is close.

    >>> did_you_mean("dya", ["day", "hour"]).strip()
    "Did you mean 'day'?"
    """
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"\nDid you mean '{close[0]}'?" if close else ""


def missing_extra(what: str, extra: str) -> MissingExtra:
    """The error for a command whose extra is not installed."""
    return MissingExtra(
        f"{what} needs packages that the core install leaves out.\n"
        f"Install them with: pip install 'seal-coevolve[{extra}]'"
    )


class blame:  # noqa: N801 - reads as a word of a `with`
    """Turn any exception inside the block into `error`; speech and nearer blame pass through."""

    # A generator would read better; every call of a tool goes through this, and it is much slower.
    __slots__ = ("_error", "_what")

    def __init__(self, error: type[SealError], what: str) -> None:
        self._error, self._what = error, what

    def __enter__(self) -> None:
        """Begin to watch."""

    def __exit__(self, _kind: object, cause: BaseException | None, _trace: object) -> None:
        """Say whose fault it was."""
        if isinstance(cause, Exception) and not isinstance(cause, SealError | ToolError):
            raise self._error(f"{self._what}: {type(cause).__name__}: {cause}") from cause
