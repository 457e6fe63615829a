"""The warm start of a pretrained model: a LoRA adapter, learned on lessons."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from seal.models.weights import load_weights
from seal.train.corpus import Corpus
from seal.train.resume import ResumePoint
from seal.train.warmstart import (
    DRILLED,
    Encoded,
    WarmStartSettings,
    backward,
    batch,
    encode,
    encode_lesson,
    recovery_rows,
)

RANK, ALPHA = 16, 32
PRETRAINED = WarmStartSettings(
    drill_steps=60, lesson_steps=160, recovery_steps=0, tokens=1500, tasks=6, rate=2e-3
)
"""How a model learns that knows language already."""
_WARM_UP = 5
_QUESTIONS = 8
"""Of one drill."""
_CODES = 0.0
"""No more drills of codes than of any other kind of rule: what comes last to a model that knows
language is not to look up, but to reckon with units and hours."""
_LEAST = 0.1
"""The rate at the end, as a share of the full one."""


def with_fresh_adapter(model: Any, seed: int) -> Any:  # noqa: ANN401
    """A PeftModel around a transformers model, whose adapter changes nothing yet."""
    import torch
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(seed)
    config = LoraConfig(
        r=RANK, lora_alpha=ALPHA, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    return get_peft_model(model, config)


def train_lora(
    model: Any,  # noqa: ANN401 - a PeftModel
    tokenizer: Any,  # noqa: ANN401
    corpus: Corpus,
    settings: WarmStartSettings,
    report: Callable[[int, float], None] = lambda _step, _loss: None,
    resume: ResumePoint | None = None,
) -> None:
    """Train a PeftModel's adapter on drills and lessons; all other weights stay as they are.

    What a step teaches is drawn from the seed and the step alone, so that a training that goes
    on draws what it would have drawn.
    """
    import torch

    resume = resume or ResumePoint(None)
    weights = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=settings.rate, betas=(0.9, 0.98), weight_decay=0.0)
    model.train()
    total = settings.steps
    for step in range(resume.load(model, [optimizer]), total):
        optimizer.param_groups[0]["lr"] = settings.rate * _schedule(step, total)
        rows = _rows(tokenizer, corpus, settings, step)
        loss = backward(model.get_base_model(), rows)
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        report(step, loss)
        resume.save(step + 1, model, [optimizer])
    model.eval()


def warm_start_adapter(
    path: str,
    folder: Path,
    corpus: Corpus,
    settings: WarmStartSettings,
    report: Callable[[int, float], None],
    resume: ResumePoint,
) -> None:
    """Train an adapter for a model and leave it in a folder, in PEFT's format.

    Args:
        path: The model, as after `local:`.
        folder: Where the adapter goes.
        corpus: What it learns from.
        settings: How long and how fast.
        report: Is told every step and its loss.
        resume: Where the training writes itself down.

    Raises:
        ConfigError: There is no such model.
    """
    model, tokenizer = load_weights(path)
    place = model.config.name_or_path
    adapted = with_fresh_adapter(model, settings.seed)
    train_lora(adapted, tokenizer, corpus, settings, report, resume)
    # Whoever opens the adapter with PEFT alone looks for its model there.
    adapted.peft_config["default"].base_model_name_or_path = place
    adapted.save_pretrained(folder, save_embedding_layers=False)


def _rows(
    tokenizer: Any,  # noqa: ANN401
    corpus: Corpus,
    settings: WarmStartSettings,
    step: int,
) -> list[Encoded]:
    """What one step teaches: drills, lessons with short prompts and then with all tools, recovery.

    A drill has several times as many values to look up as a lesson of its length, and a short
    prompt leaves more of the tokens to learn from.
    """
    rng = random.Random(f"warm start {settings.seed}/{step}")
    lesson = step - settings.drill_steps
    if lesson >= settings.lesson_steps:
        return recovery_rows(tokenizer, corpus, settings, rng)
    drilled = lesson < 0 or rng.random() < DRILLED
    # First the question is a value by itself, later a whole message that has it.
    messages = (step + 1) / (settings.drill_steps + 1)
    drill = corpus.drills(rng, _QUESTIONS, messages=messages, codes=_CODES)
    short = rng.random() > 1.25 * lesson / settings.lesson_steps
    if drilled:
        return batch(settings.tokens // 2, lambda: [encode(tokenizer, drill())])

    def lessons() -> list[Encoded]:
        tools = rng.randint(2, 4) if short else None
        lesson = corpus.lesson(rng, settings.tasks, tools)
        return encode_lesson(tokenizer, lesson)

    return batch(settings.tokens, lessons)


def _schedule(step: int, total: int) -> float:
    """Warm-up, full speed to the half, then down."""
    left = 1 - step / total
    return min(1.0, (step + 1) / _WARM_UP) * max(_LEAST, min(1.0, left / 0.5))
