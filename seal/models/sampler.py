"""Sampling many dialogues at once: token in, token out, each at its own pace.

Keys and values are kept across steps and turns, and those of a prompt across dialogues, so that a
token is computed once however many turns and dialogues follow. Sampled ids are never turned into
text and back: what was sampled is what is remembered and what a trainer learns from.
"""

import random
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from seal.errors import ModelFailure
from seal.models.store import Chunk, Plan, Prompt, Step, Store, our_attention, unlike_ours

if TYPE_CHECKING:
    import torch

CHUNK = 512
"""Tokens that a row hears at most in a step."""
PROMPTS = 6
"""Distinct prompts that are kept, the latest used."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Tokens that came in one go: a message the policy sampled, or what it was told."""

    ids: Sequence[int]
    log_probs: Sequence[float] = ()
    """Of each token, under the distribution it was drawn from; empty if it was told."""
    turn: int | None = None
    """The turn it was sampled in; None if it was told."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """A rollout as the ids that went through the model; no text was tokenised twice."""

    prompt_ids: list[int]
    """The system message with the tools."""
    stretches: list[Stretch]
    """All that was heard and sampled after it, in order."""


@dataclass(slots=True, eq=False)
class Row:
    """One dialogue's place in the store."""

    index: int
    prompt: Prompt
    ids: list[int] = field(default_factory=list)
    """Every token so far, given and sampled, the prompt's first."""
    cached: int = 0
    """How many of them there are keys and values of."""
    sampled: list[int] = field(default_factory=list)
    """The tokens of the reply at work."""
    log_probs: list[float] = field(default_factory=list)
    """Of each of them, under the distribution it was drawn from."""
    temperature: float = 0.0
    most: int = 0
    """Tokens that the reply may have."""
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    """Where the draws of the reply come from."""


class Sampler:
    """Draws replies for many rows of one model.

    Args:
        model: A causal language model of transformers whose layers all have full attention, plain
            or with PEFT's layers in it. Dropout is the caller's to switch off (`model.eval()`).
        rows: How many dialogues it holds at once.
        end: The id that ends a reply.

    Raises:
        ConfigError: The model computes attention in a way of its own.
    """

    def __init__(self, model: Any, rows: int, end: int) -> None:  # noqa: ANN401
        self._model = model.get_base_model() if hasattr(model, "get_base_model") else model
        if not self._model._supports_attention_backend:
            raise unlike_ours(self._model)
        self._end = end
        self._store = Store(rows)
        self._free = list(range(rows))
        self._live: list[Row] = []
        self._prompts: dict[tuple[int, ...], Prompt] = {}

    @property
    def free(self) -> int:
        """How many more dialogues there is room for."""
        return len(self._free)

    def open(self, ids: Sequence[int], count: int = 1) -> list[Row]:
        """Rows that begin with the same tokens, which are computed once and kept for later rows."""
        prompt = self._prompt(tuple(ids))
        indices = [self._free.pop(0) for _ in range(count)]
        return [Row(index, prompt, list(ids), len(ids)) for index in indices]

    def close(self, row: Row) -> None:
        """Give a row's place back, whatever it was at."""
        if row in self._live:
            self._live.remove(row)
        # The lowest place comes first: rows that lie next to each other are the fastest.
        insort(self._free, row.index)

    def forget(self) -> None:
        """Drop the prompts, once the model has other weights. No row may be open."""
        self._prompts = {}

    def submit(
        self,
        row: Row,
        ids: Sequence[int],
        *,
        most: int,
        temperature: float = 0.0,
        chance: random.Random | None = None,
    ) -> None:
        """Let a row hear these tokens and begin its next reply.

        Args:
            row: An open row whose last reply is over.
            ids: At least one token.
            most: Tokens that the reply may have.
            temperature: 0 takes the likeliest token.
            chance: Where the draws come from: one number a token, so that what a row says does not
                depend on which others share its batch.
        """
        row.ids += ids
        row.sampled, row.log_probs = [], []
        row.temperature, row.most = temperature, most
        row.chance = chance or random.Random(0)
        self._live.append(row)

    def step(self) -> list[Row]:
        """Let every live row hear what it has to, and draw a token for those that have heard all.

        Returns:
            The rows whose reply is over, end token included.

        Raises:
            ModelFailure: The model computes no numbers.
        """
        groups: dict[object, list[Row]] = {}
        for row in sorted(self._live, key=lambda row: (len(row.ids) - row.cached > 1, row.index)):
            # Rows that begin with the same words hear them as one.
            fresh = row.cached == row.prompt.tokens
            key = (row.prompt, *row.ids[row.cached :]) if fresh else row
            groups.setdefault(key, []).append(row)
        logits = self._forward(list(groups.values()))
        ready = [row for rows in groups.values() for row in rows if row.cached == len(row.ids)]
        if ready:
            self._draw(ready, logits)
        ended = [
            row
            for row in self._live
            if row.sampled and (row.ids[-1] == self._end or len(row.sampled) >= row.most)
        ]
        self._live = [row for row in self._live if row not in ended]
        return ended

    def _forward(self, groups: Sequence[Sequence[Row]]) -> "torch.Tensor":
        """Compute a chunk of tokens for the first row of each group, and copy it to the others.

        Returns:
            Logits for the rows that have then heard all, in order.
        """
        firsts = [rows[0] for rows in groups]
        starts = [row.cached for row in firsts]
        chunks = [row.ids[row.cached : row.cached + CHUNK] for row in firsts]
        parts = [
            Chunk(row.index, row.prompt, start - row.prompt.tokens, len(chunk))
            for row, start, chunk in zip(firsts, starts, chunks, strict=True)
        ]
        wanted: list[int] = []
        for rows, chunk, end in zip(groups, chunks, accumulate(map(len, chunks)), strict=True):
            for row in rows:
                row.cached += len(chunk)
                if row.cached == len(row.ids):
                    wanted.append(end - 1)
        logits = self._call(
            Step(self._store, parts, self._model.device),
            [token for chunk in chunks for token in chunk],
            [
                at
                for row, start in zip(firsts, starts, strict=True)
                for at in range(start, row.cached)
            ],
            wanted,
        )
        for (first, *others), chunk in zip(groups, chunks, strict=True):
            if others:
                self._store.copy(first.index, [row.index for row in others], len(chunk))
        return logits

    def _prompt(self, ids: tuple[int, ...]) -> Prompt:
        prompt = self._prompts.pop(ids, None)
        if prompt is None:
            prompt = Prompt(len(ids))
            self._call(prompt, ids, range(len(ids)), [len(ids) - 1])
        self._prompts[ids] = prompt
        while len(self._prompts) > PROMPTS:
            del self._prompts[next(iter(self._prompts))]
        return prompt

    def _call(
        self, plan: Plan, ids: Sequence[int], positions: Sequence[int], wanted: Sequence[int]
    ) -> "torch.Tensor":
        """The logits after some of the tokens of one sequence."""
        import torch

        device = self._model.device
        with torch.no_grad(), our_attention(self._model):
            logits: torch.Tensor = self._model(
                input_ids=torch.tensor([[*ids]], device=device),
                position_ids=torch.tensor([[*positions]], device=device),
                # A mask of four dimensions is taken as it is, and ours is not looked at.
                attention_mask=torch.zeros((1, 1, 1, 1), device=device),
                logits_to_keep=torch.tensor([*wanted], dtype=torch.long, device=device),
                use_cache=False,
                plan=plan,
            ).logits[0]
        return logits

    def _draw(self, rows: Sequence[Row], logits: "torch.Tensor") -> None:
        import torch

        device = logits.device
        heat = torch.tensor([[row.temperature] for row in rows], device=device)
        # A row without temperature takes the likeliest token; its scores are the model's own.
        likely = (logits.float() / torch.where(heat > 0, heat, 1.0)).softmax(-1)
        # One score that is no number leaves none in its row.
        if likely[:, 0].isnan().any():
            raise ModelFailure(
                "the model's scores of the next token are NaN: its weights are broken.\n"
                "Where training broke them, start over with --fresh and a lower train.rate."
            )
        tokens = torch.zeros_like(heat, dtype=torch.long)
        if any(row.temperature > 0 for row in rows):
            chances = torch.tensor([[_chance(row)] for row in rows], device=device)
            # The first token up to which the probabilities add up to more than the chance.
            totals = likely.cumsum(-1)
            tokens = torch.searchsorted(totals, chances * totals[:, -1:], right=True)
        if any(row.temperature == 0 for row in rows):
            tokens = torch.where(heat > 0, tokens, likely.argmax(-1, keepdim=True))
        scores = likely.gather(-1, tokens).log()
        for row, token, score in zip(rows, tokens.tolist(), scores.tolist(), strict=True):
            row.ids += token
            row.sampled += token
            row.log_probs += score


def _chance(row: Row) -> float:
    """A number in [0, 1) of as many digits as single precision has; more could round to 1."""
    return row.chance.getrandbits(24) / 2**24 if row.temperature > 0 else 0.0
