"""Sampling many dialogues at once: token in, token out, each at its own pace.

Every dialogue has a row of one key-value store that is kept across steps and turns, so that a token
is computed once however many turns follow. Sampled ids are never turned into text and back: what
was sampled is what is remembered and what a trainer learns from.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

GROWTH = 256
"""Tokens by which the store grows when a row is full."""


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


@dataclass(slots=True)
class Row:
    """One dialogue's place in the store."""

    index: int
    ids: list[int] = field(default_factory=list)
    """Every token so far, given and sampled."""
    cached: int = 0
    """How many of them the store has keys and values of."""
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
        model: A causal language model of transformers, with full attention.
        rows: How many dialogues it holds at once.
        end: The id that ends a reply.
    """

    def __init__(self, model: Any, rows: int, end: int) -> None:  # noqa: ANN401
        self._model = model
        self._end = end
        self._store = _Store(model, rows)
        self._free = [Row(index) for index in reversed(range(rows))]
        self._live: list[Row] = []

    @property
    def free(self) -> int:
        """How many more dialogues there is room for."""
        return len(self._free)

    def open(self, ids: Sequence[int], count: int = 1) -> list[Row]:
        """Rows that begin with the same tokens, computed once for all of them."""
        import torch

        rows = [self._free.pop() for _ in range(count)]
        first, *others = rows
        for row in rows:
            row.ids, row.cached = list(ids), 0
        if others and len(ids) > 1:
            with torch.no_grad():
                self._forward([first], [first.ids[:-1]])
            self._store.copy(first.index, [row.index for row in others], first.cached)
            for row in others:
                row.cached = first.cached
        return rows

    def close(self, row: Row) -> None:
        """Give a row's place back, whatever it was at."""
        self._live = [live for live in self._live if live is not row]
        self._free.append(Row(row.index))

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
        """Draw one token for every live row; the rows whose reply is over, end token included.

        Rows that have many tokens to hear are computed apart from those that have one.
        """
        import torch

        with torch.no_grad():
            hearing = [row for row in self._live if len(row.ids) - row.cached > 1]
            speaking = [row for row in self._live if len(row.ids) - row.cached == 1]
            for rows in (hearing, speaking):
                if rows:
                    self._draw(rows, self._forward(rows, [row.ids[row.cached :] for row in rows]))
        ended = [r for r in self._live if r.ids[-1] == self._end or len(r.sampled) >= r.most]
        over = {row.index for row in ended}
        self._live = [row for row in self._live if row.index not in over]
        return ended

    def _draw(self, rows: Sequence[Row], logits: "torch.Tensor") -> None:
        import torch

        heat = torch.tensor([row.temperature for row in rows])[:, None]
        # A row without temperature takes the likeliest token; its scores are the model's own.
        scores = (logits.float() / torch.where(heat > 0, heat, 1.0)).log_softmax(-1)
        tokens = scores.argmax(-1, keepdim=True)
        if any(row.temperature > 0 for row in rows):
            chances = torch.tensor([[_chance(row)] for row in rows])
            # The first token up to which the probabilities add up to more than the chance.
            totals = scores.exp().cumsum(-1)
            drawn = torch.searchsorted(totals, chances * totals[:, -1:], right=True)
            tokens = torch.where(heat > 0, drawn, tokens)
        picked = scores.gather(-1, tokens)
        for row, token, score in zip(rows, tokens.tolist(), picked.tolist(), strict=True):
            row.ids += token
            row.sampled += token
            row.log_probs += score

    def _forward(self, rows: Sequence[Row], chunks: Sequence[Sequence[int]]) -> "torch.Tensor":
        """Compute a chunk of tokens for each row; the logits after the last of each.

        Chunks of unequal length are padded at their end. What a pad writes lies behind its row's
        last token, where it is masked now and overwritten by what comes next.
        """
        import torch

        store = self._store
        longest = max(len(chunk) for chunk in chunks)
        starts = torch.tensor([row.cached for row in rows])
        lengths = torch.tensor([len(chunk) for chunk in chunks])
        ids = torch.tensor([[*chunk, *[0] * (longest - len(chunk))] for chunk in chunks])
        positions = starts[:, None] + torch.arange(longest)[None]
        store.aim([row.index for row in rows], positions)
        visible = torch.arange(store.length)[None, None] <= positions[:, :, None]
        mask = torch.zeros(visible.shape, dtype=self._model.dtype)
        mask.masked_fill_(~visible, torch.finfo(self._model.dtype).min)
        hidden = self._model.model(
            input_ids=ids,
            attention_mask=mask[:, None],
            position_ids=positions,
            cache=store,
            use_cache=True,
        ).last_hidden_state
        for row, chunk in zip(rows, chunks, strict=True):
            row.cached += len(chunk)
        logits: torch.Tensor = self._model.lm_head(hidden[torch.arange(len(rows)), lengths - 1])
        return logits


def _chance(row: Row) -> float:
    """A number in [0, 1) of as many digits as single precision has; more could round to 1."""
    return row.chance.getrandbits(24) / 2**24 if row.temperature > 0 else 0.0


class _Store:
    """Keys and values of all rows; the cache that a transformers model writes to and reads from."""

    def __init__(self, model: Any, rows: int) -> None:  # noqa: ANN401 - a transformers model
        config = model.config
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self._shape = [rows, config.num_key_value_heads, 0, size]
        self._dtype = model.dtype
        self._layers: int = config.num_hidden_layers
        self._keys: list[torch.Tensor] = []
        self._values: list[torch.Tensor] = []
        self._rows: Any = None
        self._all = False
        self._positions: Any = None
        self.length = 0

    def aim(self, rows: Sequence[int], positions: "torch.Tensor") -> None:
        """Say which rows the next chunk is of, and where in them it stands."""
        import torch

        self.length = int(positions.max()) + 1
        self._reserve(self.length)
        self._all = list(rows) == list(range(self._shape[0]))
        self._rows = torch.tensor(rows)
        self._positions = positions

    def _reserve(self, tokens: int) -> None:
        import torch

        had = self._shape[2]
        if tokens <= had:
            return
        self._shape[2] = (tokens // GROWTH + 1) * GROWTH
        for store in (self._keys, self._values):
            grown = [torch.zeros(self._shape, dtype=self._dtype) for _ in range(self._layers)]
            for old, new in zip(store, grown, strict=False):
                new[:, :, :had] = old
            store[:] = grown

    def copy(self, source: int, targets: Sequence[int], tokens: int) -> None:
        """Give rows the first tokens of another."""
        for layer in (*self._keys, *self._values):
            layer[list(targets), :, :tokens] = layer[source, :, :tokens]

    def update(
        self,
        keys: "torch.Tensor",
        values: "torch.Tensor",
        layer: int,
        *_: object,
        **__: object,
    ) -> "tuple[torch.Tensor, torch.Tensor]":
        """Write a chunk; all that its rows may look at."""
        return self._one(self._keys[layer], keys), self._one(self._values[layer], values)

    def _one(self, whole: "torch.Tensor", new: "torch.Tensor") -> "torch.Tensor":
        # Row and position are indices around a slice, which puts the heads behind them.
        whole[self._rows[:, None], :, self._positions] = new.transpose(1, 2).to(whole.dtype)
        seen = whole[:, :, : self.length]
        return seen if self._all else seen[self._rows]

    def get_seq_length(self, *_: object) -> int:
        """Transformers asks; positions are always given, so nothing depends on it."""
        return 0
