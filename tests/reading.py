"""Can a local policy read rules from words? `python -m tests.reading FOLDER [--n N] [--json]`.

`--train` first warm-starts a tiny policy in that folder (an hour on one core).

Every rollout is of a convention seed that no warm start has seen. The conditions differ only in the
words; the score is the verifier's, with a Wilson interval.
"""

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterator

from seal.envs.render import SYSTEM
from seal.envs.template import EnvironmentTemplate, load_template
from seal.models.tiny import tiny_model, tiny_tokenizer
from seal.models.weights import open_local_policy
from seal.resources import resource_folder
from seal.rollout.agent import Arena, begin
from seal.rollout.batch import at_own_pace
from seal.rollout.scores import wilson
from seal.train.corpus import GUIDANCE, PHRASINGS, Corpus, Mode, lesson_words
from seal.train.warmstart import WarmStartSettings, train_tiny
from seal.types import Candidate, Sampling

FIRST_SEED = 500_000
"""Convention seeds from here on are for this evaluation alone."""
RIGHT = Mode(share=1.0, messages=False, errs=1.0)
HALF = Mode(share=0.0, messages=False, errs=1.0)


def right(template: EnvironmentTemplate, rng: random.Random) -> Candidate:
    return _guided(lesson_words(template, RIGHT, rng, plans=False))


def held_out(template: EnvironmentTemplate, rng: random.Random) -> Candidate:
    return _guided(lesson_words(template, RIGHT, rng, held_out=True, plans=False))


def original(template: EnvironmentTemplate, _rng: random.Random) -> Candidate:
    return template.original


def bare(template: EnvironmentTemplate, _rng: random.Random) -> Candidate:
    """The original words without their harmful plan."""
    return template.original.with_texts(dict.fromkeys(template.original.texts, ""))


def message(template: EnvironmentTemplate, rng: random.Random) -> Candidate:
    """The original words without their plan, and errors that state the rule."""
    texts = dict.fromkeys(template.original.texts, "")
    keys = ("allowed", "format", "unit", "requires")
    for slot in template.renderer.slots.values():
        if slot.recovery == "refused":
            texts[slot.id] = " ".join(rng.choice(PHRASINGS[key][:-1]) for key in keys)
    return template.original.with_texts(texts)


def wrong(template: EnvironmentTemplate, rng: random.Random) -> Candidate:
    """Another seed's rules, written out wherever this one's would stand."""
    other = _template(FIRST_SEED * 2 + rng.randrange(10**6))
    words = lesson_words(other, RIGHT, rng, plans=False)
    texts = dict(template.original.texts)
    for slot in template.renderer.slots.values():
        if slot.kind == "constraint" and words.texts[slot.id]:
            texts[slot.id] = other.renderer._filled(slot, words).replace("{", "").replace("}", "")
        elif slot.kind == "affordance":
            texts[slot.id] = words.texts[slot.id]
    return template.original.with_texts(texts)


def _guided(words: Candidate) -> Candidate:
    return words.with_texts({f"{SYSTEM}.guidance": GUIDANCE[0]})


CONDITIONS: dict[str, Callable[[EnvironmentTemplate, random.Random], Candidate]] = {
    "right words": right,
    "right, held-out phrasing": held_out,
    "original words": original,
    "original without the plan": bare,
    "original, rule-stating message": message,
    "wrong words": wrong,
}


def _template(seed: int) -> EnvironmentTemplate:
    defaults = resource_folder("env_templates")
    return load_template(defaults / "rooms", defaults, seed)


def evaluate(policy, condition: str, n: int, show: bool) -> dict[str, object]:
    """One row of the table."""

    def begun() -> Iterator:
        for number in range(n):
            template = _template(FIRST_SEED + number)
            words = CONDITIONS[condition](template, random.Random(f"{condition}/{number}"))
            arena = Arena(template, words, contract_hash="reading")
            task = next(iter(template.scenario("validation", number)))
            sampling = Sampling(temperature=0.0, max_tokens=120)
            yield (
                f"{task.id}#{number}",
                begin(arena, task, policy, sample=number, seed=0, sampling=sampling),
            )

    outcomes = list(at_own_pace(begun(), policy))
    rewards = [outcome.rollout.reward or 0.0 for outcome in outcomes]
    if show:
        for outcome in outcomes[:show]:
            for turn in outcome.rollout.turns:
                print("  user:", turn.user)
                for step in turn.steps:
                    print("   ", step.content, *[f"{c.tool}{c.arguments}" for c in step.calls])
                    print("     ", *[r.content for r in step.results])
            print("  =>", outcome.rollout.reward)
    groups = {}
    for name in ("easy", "medium", "hard"):
        of = [o.rollout.reward or 0.0 for o in outcomes if o.rollout.group == name]
        groups[name] = round(sum(of) / len(of), 3) if of else None
    low, high = wilson(rewards)
    return {
        "condition": condition,
        "n": n,
        "score": round(sum(rewards) / n, 3),
        "low": round(low, 3),
        "high": round(high, 3),
        "groups": groups,
    }


def train(folder: str) -> None:
    """A tiny policy, warm-started on convention seeds that no evaluation uses."""
    corpus = Corpus(resource_folder("env_templates") / "rooms", range(1000, 1400))
    tokenizer = tiny_tokenizer(corpus.texts(random.Random(1), 300))
    model = tiny_model(len(tokenizer), seed=0)

    def report(step: int, loss: float) -> None:
        if step % 50 == 0:
            print(f"step {step} loss {loss:.3f}", file=sys.stderr, flush=True)

    train_tiny(model, tokenizer, corpus, WarmStartSettings(), report)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--only", default="")
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--train", action="store_true")
    options = parser.parse_args()
    if options.train:
        train(options.folder)
    policy = open_local_policy(f"local:{options.folder}")
    for condition in CONDITIONS:
        if options.only and options.only not in condition:
            continue
        row = evaluate(policy, condition, options.n, options.show)
        if options.json:
            print(json.dumps(row), flush=True)
        else:
            print(
                f"{row['condition']:32} {row['score']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
                f"  {row['groups']}",
                flush=True,
            )


if __name__ == "__main__":
    main()
