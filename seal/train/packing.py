"""Micro-batches with little padding: what TRL pads to its longest rollout, cut anew.

TRL pads all rollouts of a step to the longest of them, and trains on slices in a random order. Here
rollouts that read the same words and are of like length share a slice, slices lose the columns that
are padding in all their rows, and rollouts without an advantage can be left out. The loss of an
update stays the same.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

Batch = dict[str, "torch.Tensor"]
"""What TRL trains on: tensors of shape (B,), (B, P) for prompts, (B, T) for completions, or ()."""


def repack(batches: Sequence[Batch], window: int, *, free: bool) -> list[Batch]:
    """The same number of micro-batches, with their rollouts moved only within one update.

    Args:
        batches: The micro-batches of one step, as TRL cut them; `words`, if there, says which words
            each rollout read, by numbers from 0.
        window: Micro-batches of one update.
        free: Leave out rollouts whose advantage is 0, and make micro-batches of unlike sizes where
            words ask for it. Exact only where such rollouts add nothing to the loss, and its
            divisor does not count rollouts.
    """
    packed: list[Batch] = []
    for start in range(0, len(batches), window):
        packed += _pack(batches[start : start + window], free=free)
    return packed


def _pack(batches: Sequence[Batch], *, free: bool) -> list[Batch]:
    import torch

    whole = {
        key: value if value.ndim == 0 else torch.cat([batch[key] for batch in batches])
        for key, value in batches[0].items()
    }
    lengths = whole["prompt_mask"].sum(1) + whole["completion_mask"].sum(1)
    words = whole.get("words", torch.zeros_like(lengths))
    order = (words * (lengths.max() + 1) + lengths).argsort(stable=True)
    if free:
        counts = whole["advantages"].reshape(len(order), -1).abs().sum(1) > 0
        live, idle = order[counts[order]], order[~counts[order]]
        # Every micro-batch must have a row, or there would be no gradient at all.
        missing = max(0, len(batches) - len(live))
        order = torch.cat([idle[:missing], live])
        order = order[words[order].argsort(stable=True)]
    parts = _by_words(order, words, len(batches)) if free else order.tensor_split(len(batches))
    return [trimmed(_taken(whole, rows)) for rows in parts]


def _by_words(order: "torch.Tensor", words: "torch.Tensor", parts: int) -> "list[torch.Tensor]":
    """Rows in their order, cut into parts of about one size that mix no words, if that can be."""
    import torch

    _, sizes = torch.unique_consecutive(words[order], return_counts=True)
    runs = list(order.split(sizes.tolist()))
    if len(runs) > parts:
        return list(order.tensor_split(parts))
    counts = [1] * len(runs)
    while sum(counts) < parts:
        largest = max(range(len(runs)), key=lambda run: len(runs[run]) / counts[run])
        counts[largest] += 1
    return [
        part for run, count in zip(runs, counts, strict=True) for part in run.tensor_split(count)
    ]


def _taken(batch: Batch, rows: "torch.Tensor") -> Batch:
    return {key: value if value.ndim == 0 else value[rows] for key, value in batch.items()}


def trimmed(batch: Batch) -> Batch:
    """A batch without the columns that are padding in every row.

    Prompts are padded on their left, completions on their right.
    """
    prompt = int(batch["prompt_mask"].sum(1).max())
    completion = int(batch["completion_mask"].sum(1).max())

    def cut(key: str, value: "torch.Tensor") -> "torch.Tensor":
        if value.ndim < 2:
            return value
        if key.startswith("prompt"):
            return value[:, value.shape[1] - prompt :]
        return value[:, :completion]

    return {key: cut(key, value) for key, value in batch.items()}
