"""Warm starts: supervised training that turns a language model into a policy that reads words."""

import os
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seal.models.chat import Piece
from seal.train.corpus import RECOVERY, Corpus, Lesson
from seal.train.muon import Muon
from seal.train.prefix import Pairs, begun, read
from seal.train.resume import ResumePoint

if TYPE_CHECKING:
    import torch

IGNORED = -100
"""The label of a token that is not learned from."""
VALUES = 50
"""Steps of drills before the first whole messages; twice as many later, all are."""
DRILLED = 0.2
"""Share of steps that are still drills once the lessons have begun."""
RECOVERED = 0.5
"""Share of the last steps that are drills of calls after an error; the others are lessons."""
UNTOLD = 0.2
"""Share of these lessons that state little. With more of them, what words do say of calls before
others is forgotten."""
APART = 0.3
"""Share of those drills in which each error is of another convention seed."""
EMBEDDED = 2 / 3
"""The rate of embeddings and biases beside that of matrices: faster ones forget the tokens that a
structured start knows."""
TOGETHER = 1500
"""Tokens computed at once."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A token sequence, and what to learn from it."""

    ids: list[int]
    labels: list[int]
    beginning: tuple[int, ...] = ()
    """Tokens before it, which several sequences share and which are computed once."""


def encode(
    tokenizer: Any,  # noqa: ANN401
    pieces: Sequence[Piece],
    beginning: tuple[int, ...] = (),
) -> Encoded:
    """Token ids piece by piece, as a sampler would see them; only sampled pieces are learned."""
    ids: list[int] = []
    labels: list[int] = []
    for piece in pieces:
        tokens = tokenizer(piece.text, add_special_tokens=False)["input_ids"]
        ids += tokens
        labels += tokens if piece.sampled else [IGNORED] * len(tokens)
    return Encoded(ids, labels, beginning)


def encode_lesson(tokenizer: Any, lesson: Lesson) -> list[Encoded]:  # noqa: ANN401
    """A row for each of its dialogues, which share its words."""
    words = tuple(encode(tokenizer, [lesson.words]).ids)
    return [encode(tokenizer, dialogue, words) for dialogue in lesson.dialogues]


@dataclass(frozen=True, slots=True)
class WarmStartSettings:
    """How long a warm start learns, and how fast."""

    drill_steps: int = 400
    """Steps of copying and looking up, before any dialogue."""
    lesson_steps: int = 1500
    recovery_steps: int = 360
    """Steps, last of all, on errors and the calls that they teach."""
    tokens: int = 2500
    """Tokens of a step; a step of drills has half as many."""
    tasks: int = 5
    """Tasks of a lesson, all under the same words; more where few tools are shown."""
    rate: float = 1.5e-3
    seed: int = 0

    @property
    def steps(self) -> int:
        """All of them."""
        return self.drill_steps + self.lesson_steps + self.recovery_steps


def train_tiny(
    model: Any,  # noqa: ANN401 - a transformers model
    tokenizer: Any,  # noqa: ANN401
    corpus: Corpus,
    settings: WarmStartSettings,
    report: Callable[[int, float], None] = lambda _step, _loss: None,
    resume: ResumePoint | None = None,
) -> None:
    """Train all weights: first to copy and look up, then on dialogues.

    A training that goes on composes what it had learned from anew, and skips it.
    """
    import torch

    resume = resume or ResumePoint(None)
    rng = random.Random(f"warm start {settings.seed}")
    torch.manual_seed(settings.seed)
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    known = set(map(id, matrices))
    others = [p for p in model.parameters() if id(p) not in known]
    muon = Muon(matrices, settings.rate, decay=0.02)
    adam = torch.optim.AdamW(others, lr=settings.rate, betas=(0.9, 0.98), weight_decay=0.02)
    model.train()
    begin = resume.load(model, [muon, adam])
    for step, rows in enumerate(_curriculum(tokenizer, corpus, settings, rng)):
        if step < begin:
            continue
        muon.rate = settings.rate * _schedule(step, settings)
        adam.param_groups[0]["lr"] = EMBEDDED * muon.rate
        loss = backward(model, rows)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        muon.step()
        adam.step()
        adam.zero_grad(set_to_none=True)
        report(step, loss)
        resume.save(step + 1, model, [muon, adam])


def _schedule(step: int, settings: WarmStartSettings) -> float:
    """Warm-up, full speed to the half, then down to a thirtieth; lower for recovery.

    Recovery has a rise and fall of its own: what it needs is learned late, and lessons have come to
    rest by then.
    """
    total = settings.drill_steps + settings.lesson_steps
    if step < total:
        return _rise_and_fall(step, total, 50)
    return 0.6 * _rise_and_fall(step - total, settings.recovery_steps, 20)


def _rise_and_fall(step: int, total: int, rise: int) -> float:
    left = 1 - step / total
    return min(1.0, (step + 1) / rise) * max(0.03, min(1.0, left / 0.5))


def _curriculum(
    tokenizer: Any,  # noqa: ANN401
    corpus: Corpus,
    settings: WarmStartSettings,
    rng: random.Random,
) -> Iterator[list[Encoded]]:
    """The batches of all steps: repeats and drills, lessons with drills between them, recovery."""
    symbols = list(range(5, len(tokenizer)))

    def drills(messages: float) -> list[Encoded]:
        make = corpus.drills(rng, 8, messages=messages)
        return batch(settings.tokens // 2, lambda: [encode(tokenizer, make())])

    for step in range(settings.drill_steps):
        longest = min(30, 3 + step // 12)
        if rng.random() < 0.5 * max(0.15, 1 - step / 120):
            yield batch(settings.tokens // 2, lambda: [_repeat(symbols, rng, longest)])  # noqa: B023
        else:
            yield drills(min(1.0, max(0.0, step - VALUES) / VALUES / 2))
    for step in range(settings.lesson_steps):
        # Short prompts first, since they leave more of a step to learn from; all tools in the end.
        few = rng.randint(1, 4) if rng.random() > 1.25 * step / settings.lesson_steps else None
        tasks = settings.tasks if few is None else settings.tasks + 4 - few
        if rng.random() < DRILLED:
            yield drills(1.0)
        else:
            yield batch(
                settings.tokens,
                lambda: encode_lesson(tokenizer, corpus.lesson(rng, tasks, few)),  # noqa: B023
            )
    for _ in range(settings.recovery_steps):
        yield recovery_rows(tokenizer, corpus, settings, rng)


def recovery_rows(
    tokenizer: Any,  # noqa: ANN401
    corpus: Corpus,
    settings: WarmStartSettings,
    rng: random.Random,
) -> list[Encoded]:
    """A batch of errors and the calls that they teach: drills of them, or lessons."""
    if rng.random() < RECOVERED:
        return batch(
            settings.tokens // 2,
            lambda: [
                encode(tokenizer, corpus.correction_drill(rng, 6, apart=rng.random() < APART))
            ],
        )
    mode = RECOVERY if rng.random() < UNTOLD else None
    return batch(
        settings.tokens,
        lambda: encode_lesson(tokenizer, corpus.lesson(rng, settings.tasks, mode=mode)),
    )


def batch(tokens: int, make: Callable[[], list[Encoded]]) -> list[Encoded]:
    """Rows until they have so many tokens, a shared beginning counted once."""
    rows: list[Encoded] = []
    count = 0
    while count < tokens:
        more = make()
        rows += more
        count += len(more[0].beginning) + sum(len(row.ids) for row in more)
    return rows


def _repeat(symbols: Sequence[int], rng: random.Random, longest: int) -> Encoded:
    """Random symbols three times over: the purest signal to copy."""
    once = rng.choices(symbols, k=rng.randint(2, longest))
    return Encoded(once * 3, [IGNORED] * len(once) + once * 2)


def backward(model: Any, rows: Sequence[Encoded]) -> float:  # noqa: ANN401
    """Add the gradient of the mean loss over all learned tokens; that loss.

    Rows are computed one by one or, if they are short, several of like length together: padding
    would eat the time where lengths differ. Parts are computed side by side where there are
    several cores, and summed in one order, so that the result does not depend on how many.
    """
    import torch

    learned = sum(label != IGNORED for row in rows for label in row.labels)
    weights = [p for p in model.parameters() if p.requires_grad]

    def computed(part: Sequence[list[Encoded]]) -> "tuple[float, tuple[torch.Tensor, ...]]":
        beginning = part[0][0].beginning
        pairs = read(model.model, torch.tensor(beginning)) if beginning else []
        losses = [loss_of(model, *collate(group), pairs) for group in part]
        loss = torch.stack(losses).sum() / learned
        return loss.item(), torch.autograd.grad(loss, weights)

    total = 0.0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        # The largest first: what is left for last should be short.
        for loss, gradients in pool.map(computed, sorted(_parts(rows), key=_tokens, reverse=True)):
            total += loss
            for weight, gradient in zip(weights, gradients, strict=True):
                weight.grad = gradient if weight.grad is None else weight.grad.add_(gradient)
    return total


def _parts(rows: Sequence[Encoded]) -> Iterator[list[list[Encoded]]]:
    """What is computed at once: the rows that share a beginning, or else a few alike."""
    by_beginning: dict[tuple[int, ...], list[Encoded]] = {}
    for row in rows:
        by_beginning.setdefault(row.beginning, []).append(row)
    for beginning, those in by_beginning.items():
        groups = list(_alike(those))
        yield from [groups] if beginning else ([group] for group in groups)


def _tokens(part: Sequence[Sequence[Encoded]]) -> int:
    return len(part[0][0].beginning) + sum(len(row.ids) for group in part for row in group)


def _alike(rows: Sequence[Encoded]) -> Iterator[list[Encoded]]:
    """Rows in groups of about TOGETHER tokens, none much longer than the shortest of its group."""
    group: list[Encoded] = []
    for row in sorted(rows, key=lambda row: len(row.ids)):
        full = (len(group) + 1) * len(row.ids) > TOGETHER
        if group and (full or len(row.ids) > 1.2 * len(group[0].ids)):
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def collate(rows: Sequence[Encoded]) -> "tuple[torch.Tensor, torch.Tensor]":
    """Ids and labels, padded on the right: a causal model needs no mask for that."""
    import torch

    longest = max(len(row.ids) for row in rows)
    ids = torch.tensor([row.ids + [0] * (longest - len(row.ids)) for row in rows])
    labels = torch.tensor([r.labels + [IGNORED] * (longest - len(r.labels)) for r in rows])
    return ids, labels


def loss_of(
    model: Any,  # noqa: ANN401
    ids: "torch.Tensor",
    labels: "torch.Tensor",
    pairs: Pairs = (),
) -> "torch.Tensor":
    """The summed cross-entropy of the learned tokens; logits are made only there.

    Args:
        model: With a head of its own.
        ids: Token ids (B, N), padded on the right.
        labels: The same where a token is learned, else IGNORED.
        pairs: What was read of the tokens before, if there are any.
    """
    import torch

    cache = begun(pairs, len(ids)) if pairs else None
    hidden = model.model(input_ids=ids[:, :-1], cache=cache).last_hidden_state
    wanted = labels[:, 1:] != IGNORED
    logits = model.lm_head(hidden[wanted]).float()
    return torch.nn.functional.cross_entropy(logits, labels[:, 1:][wanted], reduction="sum")
