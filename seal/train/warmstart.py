"""Warm starts: supervised training that turns a language model into a policy that reads words."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seal.models.chat import Piece
from seal.train.corpus import Corpus

if TYPE_CHECKING:
    import torch

IGNORED = -100
"""The label of a token that is not learned from."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A token sequence, and what to learn from it."""

    ids: list[int]
    labels: list[int]


def encode(tokenizer: Any, pieces: Sequence[Piece]) -> Encoded:  # noqa: ANN401
    """Token ids piece by piece, as a sampler would see them; only sampled pieces are learned."""
    ids: list[int] = []
    labels: list[int] = []
    for piece in pieces:
        tokens = tokenizer(piece.text, add_special_tokens=False)["input_ids"]
        ids += tokens
        labels += tokens if piece.sampled else [IGNORED] * len(tokens)
    return Encoded(ids, labels)


@dataclass(frozen=True, slots=True)
class WarmStartSettings:
    """How long a warm start learns, and how fast."""

    drill_steps: int = 300
    """Steps of copying and looking up, before any dialogue."""
    lesson_steps: int = 900
    tokens: int = 4000
    """Tokens a step."""
    tasks: int = 3
    """Tasks in one dialogue."""
    rate: float = 3e-3
    seed: int = 0


def train_tiny(
    model: Any,  # noqa: ANN401 - a transformers model
    tokenizer: Any,  # noqa: ANN401
    corpus: Corpus,
    settings: WarmStartSettings,
    report: Callable[[int, float], None] = lambda _step, _loss: None,
) -> None:
    """Train all weights: first to copy and look up, then on dialogues."""
    import torch

    rng = random.Random(f"warm start {settings.seed}")
    torch.manual_seed(settings.seed)
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    known = set(map(id, matrices))
    others = [p for p in model.parameters() if id(p) not in known]
    optimizers: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(others, lr=settings.rate, betas=(0.9, 0.98), weight_decay=0.02),
        torch.optim.Muon(
            matrices, lr=settings.rate, weight_decay=0.02, adjust_lr_fn="match_rms_adamw"
        ),
    ]
    total = settings.drill_steps + settings.lesson_steps
    model.train()
    for step, rows in enumerate(_curriculum(tokenizer, corpus, settings, rng)):
        rate = settings.rate * _schedule(step, total)
        for group in (g for o in optimizers for g in o.param_groups):
            group["lr"] = rate
        ids, labels = collate(rows)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = loss_of(model, ids, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        report(step, loss.item())


def _schedule(step: int, total: int) -> float:
    """Warm-up over 50 steps, full speed to the half, then down to a thirtieth."""
    left = 1 - step / total
    return min(1.0, (step + 1) / 50) * max(0.03, min(1.0, left / 0.5))


def _curriculum(
    tokenizer: Any,  # noqa: ANN401
    corpus: Corpus,
    settings: WarmStartSettings,
    rng: random.Random,
) -> Iterator[list[Encoded]]:
    """The batches, each of one kind, since padding eats the time where lengths differ."""
    symbols = list(range(5, len(tokenizer)))
    for step in range(settings.drill_steps):
        repeats = rng.random() < 0.8 * max(0.15, 1 - step / 250)
        longest = min(30, 3 + step // 12)
        yield _batch(
            settings.tokens // 2,
            (lambda: _repeat(symbols, rng, longest))  # noqa: B023 - used before the next step
            if repeats
            else (lambda: encode(tokenizer, corpus.drill(rng, 8))),
        )
    for _ in range(settings.lesson_steps):
        yield _batch(settings.tokens, lambda: encode(tokenizer, corpus.lesson(rng, settings.tasks)))


def _batch(tokens: int, make: Callable[[], Encoded]) -> list[Encoded]:
    rows: list[Encoded] = []
    while sum(len(row.ids) for row in rows) < tokens:
        rows.append(make())
    return sorted(rows, key=lambda row: len(row.ids))


def _repeat(symbols: Sequence[int], rng: random.Random, longest: int) -> Encoded:
    """Random symbols three times over: the purest signal to copy."""
    once = rng.choices(symbols, k=rng.randint(2, longest))
    return Encoded(once * 3, [IGNORED] * len(once) + once * 2)


def collate(rows: Sequence[Encoded]) -> "tuple[torch.Tensor, torch.Tensor]":
    """Ids and labels, padded on the right: a causal model needs no mask for that."""
    import torch

    longest = max(len(row.ids) for row in rows)
    ids = torch.tensor([row.ids + [0] * (longest - len(row.ids)) for row in rows])
    labels = torch.tensor([r.labels + [IGNORED] * (longest - len(r.labels)) for r in rows])
    return ids, labels


def loss_of(model: Any, ids: "torch.Tensor", labels: "torch.Tensor") -> "torch.Tensor":  # noqa: ANN401
    """The mean cross-entropy of the learned tokens; logits are made only there."""
    import torch

    hidden = model.model(input_ids=ids[:, :-1]).last_hidden_state
    wanted = labels[:, 1:] != IGNORED
    logits = model.lm_head(hidden[wanted]).float()
    return torch.nn.functional.cross_entropy(logits, labels[:, 1:][wanted])
