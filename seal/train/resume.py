"""A training that was killed goes on from where it last wrote itself down."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seal.errors import StorageFailure

EVERY_S = 120.0
"""Seconds between two writings."""


class ResumePoint:
    """One file with the weights that are trained, the optimizers' states and the next step.

    It is replaced by rename, so that there is a whole one whenever the process is killed. It is
    read as tensors and numbers: no code in it could run.

    Args:
        file: Where it lies; None: nothing is written or found.
        every_s: Seconds between two writings.
    """

    def __init__(self, file: Path | None, every_s: float = EVERY_S) -> None:
        self._file = file
        self._every_s = every_s
        self._written = time.monotonic()

    def load(self, model: Any, optimizers: Sequence[Any]) -> int:  # noqa: ANN401
        """Bring model and optimizers to where they were; the step to go on with, 0 if none.

        Raises:
            StorageFailure: The file is there and cannot be read.
        """
        import torch

        if self._file is None or not self._file.is_file():
            return 0
        try:
            found = torch.load(self._file, map_location="cpu", weights_only=True)
            trained = _trained(model)
            if trained.keys() != found["weights"].keys():
                raise ValueError("the weights are those of another model")
            with torch.no_grad():
                for name, weights in found["weights"].items():
                    trained[name].copy_(weights)
            for optimizer, state in zip(optimizers, found["optimizers"], strict=True):
                optimizer.load_state_dict(state)
            return int(found["step"])
        except Exception as cause:
            raise StorageFailure(
                f"{self._file}: a half-done warm start that cannot be gone on with ({cause}).\n"
                "Remove the file; the warm start then begins anew."
            ) from cause

    def save(self, step: int, model: Any, optimizers: Sequence[Any]) -> None:  # noqa: ANN401
        """Write down what step comes next, unless that was done only a moment ago."""
        import torch

        if self._file is None or time.monotonic() - self._written < self._every_s:
            return
        partial = self._file.with_suffix(".partial")
        states = [optimizer.state_dict() for optimizer in optimizers]
        torch.save({"step": step, "weights": _trained(model), "optimizers": states}, partial)
        partial.replace(self._file)
        self._written = time.monotonic()


def _trained(model: Any) -> dict[str, Any]:  # noqa: ANN401
    return {name: p for name, p in model.named_parameters() if p.requires_grad}
