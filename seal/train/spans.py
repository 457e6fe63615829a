"""Which tokens the policy sampled, and in which turn: what a gradient may touch.

Every sampled token belongs to exactly one turn; tokens of tools and users belong to none.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from seal.models.sampler import Stretch


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """One rollout in tokens, as they were fed and sampled: no text was tokenised again.

    Raises:
        ValueError: The lists do not fit each other.
    """

    prompt_ids: list[int]
    """What every rollout of the task begins with."""
    completion_ids: list[int]
    """All that came after it, sampled or told."""
    sampled: list[bool]
    """Of each completion token."""
    log_probs: list[float]
    """Of each completion token; 0 where it was told."""
    turn_of_stretch: list[int]
    """The turn of each unbroken run of sampled tokens, in order."""

    def __post_init__(self) -> None:
        tokens = len(self.completion_ids)
        if len(self.sampled) != tokens or len(self.log_probs) != tokens:
            raise ValueError(
                f"{tokens} completion tokens, {len(self.sampled)} marks of what was sampled, "
                f"{len(self.log_probs)} log-probs: there must be one of each per token"
            )
        runs = sum(is_sampled for is_sampled, _ in groupby(self.sampled))
        if runs != len(self.turn_of_stretch):
            raise ValueError(
                f"{runs} runs of sampled tokens and {len(self.turn_of_stretch)} turns of them"
            )
        if (
            self.turn_of_stretch != sorted(self.turn_of_stretch)
            or min(self.turn_of_stretch, default=0) < 0
        ):
            raise ValueError(f"turns {self.turn_of_stretch} are not in order from 0")


def token_record(prompt_ids: Sequence[int], stretches: Iterable[Stretch]) -> TokenRecord:
    """The record of a rollout from its stretches in order; empty ones are left out.

    Raises:
        ValueError: A sampled stretch has not one log-prob per token, or two of different turns
            touch: a user message lies between turns.
    """
    ids: list[int] = []
    sampled: list[bool] = []
    log_probs: list[float] = []
    turns: list[int] = []
    for stretch in stretches:
        if not stretch.ids:
            continue
        wanted = 0 if stretch.turn is None else len(stretch.ids)
        if len(stretch.log_probs) != wanted:
            raise ValueError(f"{len(stretch.log_probs)} log-probs in a stretch that needs {wanted}")
        if stretch.turn is not None:
            touches = bool(sampled) and sampled[-1]
            if touches and turns[-1] != stretch.turn:
                raise ValueError(f"nothing was heard between turns {turns[-1]} and {stretch.turn}")
            if not touches:
                turns.append(stretch.turn)
        ids += stretch.ids
        sampled += [stretch.turn is not None] * len(stretch.ids)
        log_probs += stretch.log_probs or [0.0] * len(stretch.ids)
    return TokenRecord(list(prompt_ids), ids, sampled, log_probs, turns)


def token_turns(record: TokenRecord) -> list[int | None]:
    """The turn of each completion token, None for what was told."""
    return list(_turns(record))


def _turns(record: TokenRecord) -> Iterator[int | None]:
    turns = iter(record.turn_of_stretch)
    for is_sampled, run in groupby(record.sampled):
        turn = next(turns) if is_sampled else None
        yield from (turn for _ in run)


def turn_tokens(record: TokenRecord, turns: int) -> list[int]:
    """How many tokens were sampled in each of a task's turns.

    Raises:
        ValueError: Tokens were sampled in a turn that the task does not have.
    """
    counts = [0] * turns
    for turn in _turns(record):
        if turn is not None:
            if turn >= turns:
                raise ValueError(f"tokens were sampled in turn {turn} of a task of {turns} turns")
            counts[turn] += 1
    return counts


def per_token(record: TokenRecord, of_turn: Sequence[float]) -> list[float]:
    """A figure of each turn, spread over its sampled tokens; 0 where a token was told."""
    return [0.0 if turn is None else of_turn[turn] for turn in _turns(record)]
