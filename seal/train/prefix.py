"""The log-probs of rollouts that begin alike, with their common beginning computed once.

The system message is the same in all rollouts of a step, and often most of their tokens. Its keys
and values are computed for one row and given to all; gradients through them add up as they would if
every row had computed its own.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def common_beginning(ids: "torch.Tensor", mask: "torch.Tensor", scored: int) -> int:
    """How many tokens all rows begin with, one before the scored ones left over.

    Args:
        ids: Token ids (B, N), padded on the left, and on the right at the end of what is scored.
        mask: 1 where a token is (B, N).
        scored: Columns at the end that are scored.
    """
    import torch

    starts = mask.long().argmax(1)
    longest = ids.shape[1] - scored - 1 - int(starts.max())
    if longest < 1:
        return 0
    columns = starts[:, None] + torch.arange(longest, device=ids.device)
    same = (ids.gather(1, columns) == ids[0, columns[0]]).all(0)
    return longest if bool(same.all()) else int(same.long().argmin())


def score(
    model: Any,  # noqa: ANN401 - a model with TRL's fused head
    backbone: Any,  # noqa: ANN401 - the model below its head
    ids: "torch.Tensor",
    mask: "torch.Tensor",
    scored: int,
    shared: int,
) -> "tuple[torch.Tensor, torch.Tensor]":
    """The log-prob and the entropy at each of the scored columns (B, scored).

    Args:
        model: Called as TRL calls it.
        backbone: Called for the common beginning.
        ids: As for `common_beginning`.
        mask: As for `common_beginning`.
        scored: Columns at the end that are scored.
        shared: Tokens that all rows begin with, at least 1.
    """
    import torch

    rows, columns = ids.shape
    starts = mask.long().argmax(1)[:, None]
    first = int(starts[0])
    beginning = ids[:1, first : first + shared]
    cache = backbone(input_ids=beginning, use_cache=True).cache
    cache.batch_repeat_interleave(rows)
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
