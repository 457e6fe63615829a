"""Keys and values of many dialogues, and the attention of the tokens that come next.

All tokens of a step, whatever rows they are of, go through the model as one sequence without
padding; only attention tells rows apart. A prompt that dialogues begin with is kept once: all their
queries meet its keys in one product, and a row holds no more than what is its own.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from seal.errors import ConfigError

if TYPE_CHECKING:
    import torch

GROWTH = 256
"""Tokens by which the rows grow when one is full."""
_NAME = "seal"
"""Of our attention, among those that transformers knows."""


class Plan(Protocol):
    """What attention does in one forward pass."""

    def attend(
        self, layer: int, queries: "torch.Tensor", keys: "torch.Tensor", values: "torch.Tensor"
    ) -> "torch.Tensor":
        """What the tokens of the pass attend to in a layer.

        Args:
            layer: From 0.
            queries: Of the tokens, scaled: heads, tokens, size.
            keys: Key-value heads, tokens, size.
            values: As the keys.

        Returns:
            Heads, tokens, size.
        """
        ...


@dataclass(slots=True, eq=False)
class Prompt:
    """Keys and values of tokens that dialogues begin with, a layer each; the plan of reading it."""

    tokens: int
    keys: "list[torch.Tensor]" = field(default_factory=list)
    values: "list[torch.Tensor]" = field(default_factory=list)

    def attend(
        self, layer: int, queries: "torch.Tensor", keys: "torch.Tensor", values: "torch.Tensor"
    ) -> "torch.Tensor":
        """As for every plan; what is read is kept."""
        import torch

        self.keys[layer:] = [keys.contiguous()]
        self.values[layer:] = [values.contiguous()]
        seen: torch.Tensor = torch.nn.functional.scaled_dot_product_attention(
            queries[None], keys[None], values[None], is_causal=True, scale=1.0, enable_gqa=True
        )
        return seen[0]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Tokens that a row hears next."""

    row: int
    prompt: Prompt
    start: int
    """How many tokens the row has after the prompt."""
    tokens: int


class Store:
    """What rows have heard and said after their prompts."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._keys: list[torch.Tensor] = []
        self._values: list[torch.Tensor] = []

    def write(
        self,
        layer: int,
        places: "tuple[torch.Tensor, torch.Tensor]",
        keys: "torch.Tensor",
        values: "torch.Tensor",
        most: int,
    ) -> "tuple[torch.Tensor, torch.Tensor]":
        """Write tokens to rows and places in them; all keys and values: rows, heads, most, size."""
        rows, at = places
        whole = []
        for store, new in ((self._keys, keys), (self._values, values)):
            self._reserve(store, layer, new, most)
            # Row and place are indices around a slice, which puts the heads behind them.
            store[layer][rows, :, at] = new.transpose(0, 1)
            whole.append(store[layer][:, :, :most])
        return whole[0], whole[1]

    def copy(self, source: int, targets: Sequence[int], tokens: int) -> None:
        """Give rows the first tokens of another."""
        for layer in (*self._keys, *self._values):
            layer[list(targets), :, :tokens] = layer[source, :, :tokens].clone()

    def _reserve(
        self, store: "list[torch.Tensor]", layer: int, new: "torch.Tensor", most: int
    ) -> None:
        if layer == len(store):
            store.append(new.new_zeros((self._rows, new.shape[0], 0, new.shape[2])))
        old = store[layer]
        had = old.shape[2]
        if most > had:
            # Zeros, since a weight of 0 does not silence what is not a number.
            shape = (*old.shape[:2], (most // GROWTH + 1) * GROWTH, old.shape[3])
            store[layer] = old.new_zeros(shape)
            store[layer][:, :, :had] = old


class Step:
    """The plan of a step: one chunk for each of some rows, those of one token first."""

    def __init__(self, store: Store, chunks: Sequence[Chunk], device: "torch.device") -> None:
        import torch

        self._store = store
        rows = [chunk.row for chunk in chunks for _ in range(chunk.tokens)]
        at = [chunk.start + place for chunk in chunks for place in range(chunk.tokens)]
        self._places = torch.tensor(rows, device=device), torch.tensor(at, device=device)
        self._most = max(at) + 1
        single = [chunk for chunk in chunks if chunk.tokens == 1]
        parts = [single, *([chunk] for chunk in chunks if chunk.tokens > 1)]
        self._parts = [_Part(part, device) for part in parts if part]

    def attend(
        self, layer: int, queries: "torch.Tensor", keys: "torch.Tensor", values: "torch.Tensor"
    ) -> "torch.Tensor":
        """As for every plan; what is heard is kept."""
        import torch

        all_keys, all_values = self._store.write(layer, self._places, keys, values, self._most)
        seen, begin = [], 0
        for part in self._parts:
            end = begin + part.rows * part.tokens
            seen.append(part.attend(layer, queries[:, begin:end], all_keys, all_values))
            begin = end
        return torch.cat(seen, 1)


class _Part:
    """Rows that hear equally many tokens: their attention is computed together."""

    def __init__(self, chunks: Sequence[Chunk], device: "torch.device") -> None:
        import torch

        self.rows, self.tokens = len(chunks), chunks[0].tokens
        low = min(chunk.row for chunk in chunks)
        high = max(chunk.row for chunk in chunks) + 1
        # To look at some idle rows costs less than to copy those at work next to each other.
        near = high - low <= 2 * self.rows
        seats = [chunk.row - low for chunk in chunks] if near else range(self.rows)
        self._seats = high - low if near else self.rows
        self._from: Any = slice(low, high) if near else self._index([c.row for c in chunks], device)
        self._taken = (
            None if list(seats) == list(range(self._seats)) else self._index(seats, device)
        )
        starts = torch.zeros(self._seats, dtype=torch.long, device=device)
        starts[self._index(seats, device)] = self._index([c.start for c in chunks], device)
        self._most = max(chunk.start for chunk in chunks) + self.tokens
        ends = starts[:, None] + torch.arange(self.tokens, device=device)
        hidden = torch.arange(self._most, device=device) > ends[:, :, None]
        self._hidden = hidden[:, None, None]
        by_prompt: dict[Prompt, list[int]] = {}
        for seat, chunk in zip(seats, chunks, strict=True):
            by_prompt.setdefault(chunk.prompt, []).append(seat)
        self._prompts: list[tuple[Prompt, Any]] = [
            (prompt, _seats(of, device) if len(by_prompt) > 1 else slice(0, self._seats))
            for prompt, of in by_prompt.items()
        ]

    @staticmethod
    def _index(places: Sequence[int], device: "torch.device") -> "torch.Tensor":
        import torch

        return torch.tensor(list(places), device=device)

    def attend(
        self, layer: int, queries: "torch.Tensor", keys: "torch.Tensor", values: "torch.Tensor"
    ) -> "torch.Tensor":
        """What tokens attend to, in their prompts and in all that their rows hold of their own."""
        import torch

        heads, size = keys.shape[1], keys.shape[3]
        ahead = max(prompt.tokens for prompt, _ in self._prompts)
        asked = self._seated(queries.reshape(heads, -1, self.rows, self.tokens, size))
        own = asked @ keys[self._from, :, : self._most].mT
        own.view(*own.shape[:2], -1, self.tokens, self._most).masked_fill_(
            self._hidden, float("-inf")
        )
        scores = torch.cat([self._told(layer, asked, ahead), own], -1)
        weights = scores.float().softmax(-1).to(scores.dtype)
        seen = weights[..., ahead:] @ values[self._from, :, : self._most]
        for prompt, seats in self._prompts:
            seen[seats] += _met(weights[seats, :, :, : prompt.tokens], prompt.values[layer])
        if self._taken is not None:
            seen = seen[self._taken]
        seen = seen.view(self.rows, heads, -1, self.tokens, size).permute(1, 2, 0, 3, 4)
        return seen.reshape(queries.shape)

    def _told(self, layer: int, asked: "torch.Tensor", ahead: int) -> "torch.Tensor":
        """The scores of what prompts hold; where one is shorter than another, nothing is seen."""
        if len(self._prompts) == 1:
            return _met(asked, self._prompts[0][0].keys[layer].mT)
        scores = asked.new_full((*asked.shape[:3], ahead), float("-inf"))
        for prompt, seats in self._prompts:
            scores[seats, :, :, : prompt.tokens] = _met(asked[seats], prompt.keys[layer].mT)
        return scores

    def _seated(self, queries: "torch.Tensor") -> "torch.Tensor":
        """Queries by seat: seats, key-value heads, heads of each and tokens, size."""
        heads, shared, rows, tokens, size = queries.shape
        asked = queries.permute(2, 0, 1, 3, 4).reshape(rows, heads, shared * tokens, size)
        if self._taken is None:
            return asked
        seated = asked.new_zeros((self._seats, *asked.shape[1:]))
        seated[self._taken] = asked
        return seated


def _seats(places: Sequence[int], device: "torch.device") -> Any:  # noqa: ANN401
    """An index of these places; a slice where they lie next to each other, which copies nothing."""
    import torch

    if places[-1] - places[0] == len(places) - 1:
        return slice(places[0], places[-1] + 1)
    return torch.tensor(places, device=device)


def _met(left: "torch.Tensor", right: "torch.Tensor") -> "torch.Tensor":
    """The product of something of every row, and something that they share, head by head."""
    rows, heads, length, _ = left.shape
    met = left.transpose(0, 1).reshape(heads, rows * length, -1) @ right
    return met.view(heads, rows, length, -1).transpose(0, 1)


@contextmanager
def our_attention(model: Any) -> Iterator[None]:  # noqa: ANN401 - a transformers model
    """Inside, the model attends by the `plan` that it is called with."""
    from transformers import AttentionInterface

    AttentionInterface.register(_NAME, _attention)
    config = model.config
    usual = config._attn_implementation
    config._attn_implementation = _NAME
    try:
        yield
    finally:
        config._attn_implementation = usual


def unlike_ours(model: Any) -> ConfigError:  # noqa: ANN401 - a transformers model
    """The error of a model whose attention is not the plain one."""
    return ConfigError(
        f"a local model of type '{model.config.model_type}': its attention has a form of its own "
        "(windows, caps, sinks, or no common interface), which the sampler does not compute.\n"
        "Models with plain full attention work: SmolLM2, Llama 3, Qwen 2 and 3, and their kin."
    )


def _attention(
    module: Any,  # noqa: ANN401
    queries: "torch.Tensor",
    keys: "torch.Tensor",
    values: "torch.Tensor",
    _mask: object,
    *,
    plan: Plan,
    scaling: float,
    **more: object,
) -> "tuple[torch.Tensor, None]":
    """What transformers calls: a batch of one sequence, heads before tokens; tokens first back."""
    if any(more.get(name) is not None for name in ("sliding_window", "softcap", "s_aux")):
        raise unlike_ours(module)
    seen = plan.attend(module.layer_idx, queries[0] * scaling, keys[0], values[0])
    return seen.transpose(0, 1)[None], None
