"""The log-probs of rollouts that begin alike, with their common beginning computed once.

The system message is the same in all rollouts of a step, and often most of their tokens. Its keys
and values are computed once and given to all rows; gradients through them add up as they would if
every row had computed its own.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def common_beginning(ids: "torch.Tensor", mask: "torch.Tensor", scored: int) -> "torch.Tensor":
    """The tokens that all rows begin with, one before the scored ones left over.

    Args:
        ids: Token ids (B, N), padded on the left, and on the right at the end of what is scored.
        mask: 1 where a token is (B, N).
        scored: Columns at the end that are scored.
    """
    import torch

    starts = mask.long().argmax(1)
    longest = ids.shape[1] - scored - 1 - int(starts.max())
    if longest < 1:
        return ids.new_empty(0)
    columns = starts[:, None] + torch.arange(longest, device=ids.device)
    same = (ids.gather(1, columns) == ids[0, columns[0]]).all(0)
    shared = longest if bool(same.all()) else int(same.long().argmin())
    return ids[0, columns[0, :shared]]


def beginnings_of(batches: "Sequence[Mapping[str, torch.Tensor]]") -> "list[torch.Tensor]":
    """For each of the words that micro-batches read, the tokens that all of their rows begin with.

    Micro-batches in which words are mixed have no say.
    """
    import torch

    by_words: dict[int, list[torch.Tensor]] = {}
    for batch in batches:
        words = batch["words"].unique().tolist()
        if len(words) == 1:
            ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
            mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
            common = common_beginning(ids, mask, batch["completion_ids"].shape[1])
            by_words.setdefault(words[0], []).append(common)
    return [_common(found) for found in by_words.values()]


def _common(sequences: "Sequence[torch.Tensor]") -> "torch.Tensor":
    import torch

    first, longest = sequences[0], min(map(len, sequences))
    same = torch.stack([one[:longest] == first[:longest] for one in sequences]).all(0)
    return first[: longest if bool(same.all()) else int(same.long().argmin())]


Pairs = Sequence[tuple[Any, Any]]
"""Keys and values of a token sequence, a layer each."""


def read(backbone: Any, ids: "torch.Tensor") -> Pairs:  # noqa: ANN401 - a model below its head
    """The keys and values of one sequence of tokens (N,)."""
    cache = backbone(input_ids=ids[None], use_cache=True).cache
    return [(layer.keys, layer.values) for layer in cache.layers]


def begun(pairs: Pairs, rows: int) -> Any:  # noqa: ANN401 - a cache of transformers
    """A cache in which every one of so many rows has read the same."""
    from transformers import DynamicCache

    cache = DynamicCache()
    for layer, pair in enumerate(pairs):
        cache.update(*(tensor.expand(rows, -1, -1, -1) for tensor in pair), layer)
    return cache


class Apart:
    """A common beginning whose gradient is gathered over many losses, and then taken back once.

    Args:
        ids: Its tokens.
        pairs: What was read of them, with its graph.
    """

    def __init__(self, ids: "torch.Tensor", pairs: Pairs) -> None:
        self.ids = ids
        self._read = [tensor for pair in pairs for tensor in pair]
        # In single precision: many small gradients add up here.
        self._gathered = [tensor.detach().float().requires_grad_() for tensor in self._read]

    def begins(self, common: "torch.Tensor") -> bool:
        """Whether these tokens begin with it."""
        return bool(common[: len(self.ids)].equal(self.ids))

    def pairs(self) -> Pairs:
        """Keys and values cut off from their graph, as one loss is to use them."""
        cut = [
            gathered.to(tensor.dtype)
            for gathered, tensor in zip(self._gathered, self._read, strict=True)
        ]
        return list(zip(cut[::2], cut[1::2], strict=True))

    def learn(self) -> None:
        """Take the gathered gradient back to the weights. Once."""
        import torch

        used = [
            (tensor, gathered.grad.to(tensor.dtype))
            for gathered, tensor in zip(self._gathered, self._read, strict=True)
            if gathered.grad is not None and tensor.requires_grad
        ]
        if used:
            torch.autograd.backward([tensor for tensor, _ in used], [grad for _, grad in used])


def score(
    model: Any,  # noqa: ANN401 - a model with TRL's fused head
    pairs: Pairs,
    ids: "torch.Tensor",
    mask: "torch.Tensor",
    scored: int,
) -> "tuple[torch.Tensor, torch.Tensor]":
    """The log-prob and the entropy at each of the scored columns (B, scored).

    Args:
        model: Called as TRL calls it.
        pairs: What was read of the tokens that all rows begin with.
        ids: As for `common_beginning`.
        mask: As for `common_beginning`.
        scored: Columns at the end that are scored.
    """
    import torch

    rows, columns = ids.shape
    shared = pairs[0][0].shape[-2]
    cache = begun(pairs, rows)
    starts = mask.long().argmax(1)[:, None]
    # Of a row that begins later, the first columns left are still the beginning: they are masked,
    # and every other token keeps its column, so that what is scored stands where it stood.
    places = torch.arange(shared, columns, device=ids.device)[None]
    left = mask[:, shared:] * (places >= starts + shared)
    seen = torch.cat([left.new_ones(rows, shared), left], 1)
    labels = ids[:, shared:].masked_fill(left == 0, -100)
    labels[:, :-scored] = -100
    outputs = model(
        input_ids=ids[:, shared:],
        attention_mask=seen,
        position_ids=(places - starts).clamp(min=0),
        cache=cache,
        labels=labels,
        fused_lm_head=True,
    )
    return outputs.log_probs[:, -scored:], outputs.entropy[:, -scored:]
