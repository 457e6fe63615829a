"""Muon (Jordan et al. 2024): momentum whose every matrix is made orthogonal before a step.

It lets a small model find how to copy from its prompt in a fraction of AdamW's steps. torch has the
same optimizer, but computes in bfloat16 whatever the machine: where a CPU has no instructions for
that, one step takes seconds.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

MOMENTUM = 0.95
ROUNDS = 5
_QUINTIC = (3.4445, -4.775, 2.0315)
"""Coefficients of the Newton-Schulz iteration, as published."""


class Muon:
    """Muon over matrices, those of one shape computed together.

    Args:
        matrices: Parameters of two dimensions.
        rate: The learning rate. Updates have AdamW's root mean square (0.2), so that its rates fit.
        decay: Weight decay, decoupled.
    """

    def __init__(self, matrices: Iterable[Any], rate: float, decay: float = 0.0) -> None:
        self.rate = rate
        self._decay = decay
        self._groups: dict[tuple[int, ...], list[Any]] = {}
        for matrix in matrices:
            self._groups.setdefault(tuple(matrix.shape), []).append(matrix)
        self._momentum: dict[tuple[int, ...], torch.Tensor] = {}

    def step(self) -> None:
        """Move every matrix against its gradient, and forget the gradients."""
        import torch

        with torch.no_grad():
            for shape, matrices in self._groups.items():
                gradient = torch.stack([matrix.grad for matrix in matrices]).float()
                before = self._momentum.get(shape, torch.zeros_like(gradient))
                self._momentum[shape] = momentum = before.lerp(gradient, 1 - MOMENTUM)
                update = orthogonal(gradient.lerp(momentum, MOMENTUM))
                size = 0.2 * max(shape) ** 0.5 * self.rate
                for matrix, moved in zip(matrices, update, strict=True):
                    matrix.mul_(1 - self.rate * self._decay).sub_(moved, alpha=size)
                    matrix.grad = None

    def state_dict(self) -> dict[str, Any]:
        """The momentum of every shape, as a resume point keeps it."""
        return {"momentum": [[list(shape), held] for shape, held in self._momentum.items()]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with the momentum of `state_dict`."""
        self._momentum = {tuple(shape): held for shape, held in state["momentum"]}


def orthogonal(stack: "torch.Tensor") -> "torch.Tensor":
    """Each matrix with its singular values near 1, by Newton-Schulz."""
    a, b, c = _QUINTIC
    tall = stack.shape[-2] > stack.shape[-1]
    x = stack.mT if tall else stack
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(ROUNDS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x
