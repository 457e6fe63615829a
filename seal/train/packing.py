"""Micro-batches with little padding: what TRL pads to its longest rollout, cut anew.

TRL pads all rollouts of a step to the longest of them, and trains on slices in a random order. Here
rollouts of like length share a slice, slices lose the columns that are padding in all their rows,
and rollouts without an advantage can be left out. The loss of an update stays the same.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

Batch = dict[str, "torch.Tensor"]
"""What TRL trains on: tensors of shape (B,), (B, P) for prompts, (B, T) for completions, or ()."""


def repack(batches: Sequence[Batch], window: int, *, skip: bool) -> list[Batch]:
    """The same number of micro-batches, with their rollouts moved only within one update.

    Args:
        batches: The micro-batches of one step, as TRL cut them.
        window: Micro-batches of one update.
        skip: Leave out rollouts whose advantage is 0. Exact only where they add nothing to the loss
            and its divisor does not count rollouts.
    """
    packed: list[Batch] = []
    for start in range(0, len(batches), window):
        packed += _pack(batches[start : start + window], skip=skip)
    return packed


def _pack(batches: Sequence[Batch], *, skip: bool) -> list[Batch]:
    import torch

    whole = {
        key: value if value.ndim == 0 else torch.cat([batch[key] for batch in batches])
        for key, value in batches[0].items()
    }
    lengths = whole["prompt_mask"].sum(1) + whole["completion_mask"].sum(1)
    order = lengths.argsort(stable=True)
    if skip:
        counts = whole["advantages"].reshape(len(order), -1).abs().sum(1) > 0
        live, idle = order[counts[order]], order[~counts[order]]
        # Every micro-batch must have a row, or there would be no gradient at all.
        missing = max(0, len(batches) - len(live))
        order = torch.cat([idle[:missing], live])
    return [trimmed(_taken(whole, rows)) for rows in order.tensor_split(len(batches))]


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
