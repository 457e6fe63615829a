"""Can a local policy read rules from words? `python -m tests.reading -m local:FOLDER`.

Every rollout is of a convention seed that no warm start has seen, on a task of the validation
split, without temperature. The conditions differ only in the words; the score is the verifier's,
with a Wilson interval. Below them, each kind of rule on its own: how often the first call that
needs it follows it, with all rules in the words and with all but this one.
"""

import argparse
import json
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from seal.envs.render import SYSTEM
from seal.envs.template import EnvironmentTemplate, load_template
from seal.models.registry import open_policy
from seal.resources import resource_folder
from seal.rollout.agent import Arena, Outcome, begin
from seal.rollout.batch import at_own_pace
from seal.rollout.scores import wilson
from seal.train.corpus import without_rules
from seal.train.words import GUIDANCE, PHRASINGS, Mode, lesson_words
from seal.types import Candidate, Sampling, Slot, Task

FIRST_SEED = 500_000
"""Convention seeds from here on are for this evaluation alone."""
TASKS_PER_SEED = 2
"""Tasks under the same words, so that their prompt is read once."""
RIGHT = Mode(share=1.0, messages=False, errs=1.0)

Words = Callable[[EnvironmentTemplate, random.Random], Candidate]


def right(template: EnvironmentTemplate, rng: random.Random) -> Candidate:
    """The reference: every rule stated by hand-written phrases, where it applies."""
    return _guided(lesson_words(template, RIGHT, rng, plans=False))


def held_out(template: EnvironmentTemplate, rng: random.Random) -> Candidate:
    return _guided(lesson_words(template, RIGHT, rng, held_out=True, plans=False))


def original(template: EnvironmentTemplate, _rng: random.Random) -> Candidate:
    return template.original


def silent(template: EnvironmentTemplate, _rng: random.Random) -> Candidate:
    """No slot says anything."""
    return template.original.with_texts(dict.fromkeys(template.original.texts, ""))


def message(template: EnvironmentTemplate, rng: random.Random) -> Candidate:
    """As `silent`, but errors state the rule."""
    keys = ("allowed", "format", "unit", "requires")
    texts = {
        slot.id: " ".join(rng.choice(PHRASINGS[key][:-1]) for key in keys)
        for slot in template.renderer.slots.values()
        if slot.recovery == "refused"
    }
    return silent(template, rng).with_texts(texts)


def units(template: EnvironmentTemplate, rng: random.Random) -> Candidate:
    """Units alone are stated: a wrong one raises no error, so that no message could teach it."""
    words = right(template, rng)
    kept = {
        slot.id: words.texts[slot.id]
        for slot in template.renderer.slots.values()
        if slot.kind == "constraint"
        and slot.argument
        and slot.tool
        and (rule := template.contract[slot.tool].rules.get(slot.argument))
        and rule.unit
    }
    return silent(template, rng).with_texts(kept)


def units_and_messages(template: EnvironmentTemplate, rng: random.Random) -> Candidate:
    """As `units`, and errors that state the broken rule."""
    kept = {slot: text for slot, text in units(template, rng).texts.items() if text}
    return message(template, rng).with_texts(kept)


def wrong(template: EnvironmentTemplate, rng: random.Random) -> Candidate:
    """Another seed's rules, written out wherever this one's would stand."""
    other = _template(template.folder, FIRST_SEED * 2 + rng.randrange(10**6))
    words = lesson_words(other, RIGHT, rng, plans=False)
    texts = dict.fromkeys(template.original.texts, "")
    for slot in template.renderer.slots.values():
        if slot.kind == "constraint" and words.texts[slot.id]:
            texts[slot.id] = other.renderer._filled(slot, words).replace("{", "").replace("}", "")
        elif slot.kind == "affordance":
            texts[slot.id] = words.texts[slot.id]
    return template.original.with_texts(texts)


def without(kind: str) -> Words:
    """The right words, but for one kind of rule."""

    def words(template: EnvironmentTemplate, rng: random.Random) -> Candidate:
        slots = [slot for slot in template.renderer.slots.values() if _states(slot, kind)]
        return right(template, rng).with_texts({slot.id: "" for slot in slots})

    return words


def but_one(template: EnvironmentTemplate, rng: random.Random) -> Candidate:
    """The right words, but for one rule that most tasks need and whose breach raises an error."""
    texts = without(rng.choice(TOLD_BY_ERRORS))(template, rng).texts
    return silent(template, rng).with_texts(
        {
            slot: text
            for slot, text in texts.items()
            if template.renderer.slots[slot].recovery is None
        }
    )


def but_one_and_messages(template: EnvironmentTemplate, rng: random.Random) -> Candidate:
    """As `but_one`, and errors that state the broken rule."""
    kept = {slot: text for slot, text in but_one(template, rng).texts.items() if text}
    return message(template, rng).with_texts(kept)


def _states(slot: Slot, kind: str) -> bool:
    return slot.kind == "affordance" if kind == REQUIRES else slot.argument == kind


def _guided(words: Candidate) -> Candidate:
    return words.with_texts({f"{SYSTEM}.guidance": GUIDANCE[0]})


CONDITIONS: dict[str, tuple[Words, bool]] = {
    "original words": (original, False),
    "right words": (right, False),
    "right words, held-out phrasing": (held_out, False),
    "wrong words": (wrong, True),
    "no words, empty messages": (silent, True),
    "no words, rule-stating messages": (message, True),
    "all but one rule, empty messages": (but_one, True),
    "all but one rule, rule-stating messages": (but_one_and_messages, True),
    "units alone, empty messages": (units, True),
    "units alone, rule-stating messages": (units_and_messages, True),
}
"""The words of each condition, and whether the author's prose is left out, rules and all."""
REQUIRES = "prerequisite"
KINDS = ("room", "food", "day", "hour", "length", "portions", REQUIRES)
TOLD_BY_ERRORS = ("room", "day", "hour", REQUIRES)
"""A wrong unit raises no error, and food is ordered in few tasks."""


@cache
def _template(folder: Path, seed: int) -> EnvironmentTemplate:
    return load_template(folder, resource_folder("env_templates"), seed)


def roll_out(policy, folder: Path, words: Words, name: str, n: int) -> list[tuple[Task, Outcome]]:
    """n rollouts, a few on each of as many unseen seeds as that takes."""
    tasks: dict[str, Task] = {}

    def begun() -> Iterator:
        for number in range(n):
            seed = FIRST_SEED + number // TASKS_PER_SEED
            template = _template(folder, seed)
            words_of_seed = words(template, random.Random(f"{name}/{seed}"))
            arena = Arena(template, words_of_seed, contract_hash="")
            task = next(iter(template.scenario("validation", number)))
            task = task.model_copy(update={"id": f"{task.id}-{number}"})
            tasks[task.id] = task
            sampling = Sampling(temperature=0.0, max_tokens=120)
            yield (
                f"{task.id}#{number}",
                begin(arena, task, policy, sample=number, seed=0, sampling=sampling),
            )

    return [(tasks[o.rollout.task], o) for o in at_own_pace(begun(), policy)]


def followed(kind: str, task: Task, outcome: Outcome) -> Iterator[bool]:
    """Whether the first call that needs this kind of rule follows it, in each turn that has one."""
    for wanted, turn in zip(task.turns, outcome.rollout.turns, strict=False):
        made = [call for step in turn.steps for call in step.calls]
        gold = wanted.gold or ()
        for index, call in enumerate(gold):
            first = next((i for i, c in enumerate(made) if c.tool == call.tool), None)
            if kind == REQUIRES:
                if call.tool == "book_room" and index and gold[index - 1].tool == "check_room":
                    yield first is not None and "check_room" in [c.tool for c in made[:first]]
            elif kind in call.arguments:
                yield (
                    first is not None and _sent(made[first].arguments, kind) == call.arguments[kind]
                )


def _sent(arguments: str, name: str) -> object:
    try:
        return json.loads(arguments).get(name)
    except (ValueError, AttributeError):
        return None


def row(name: str, values: Sequence[float]) -> dict[str, object]:
    low, high = wilson(values)
    return {
        "condition": name,
        "n": len(values),
        "score": round(sum(values) / len(values), 3),
        "low": round(low, 3),
        "high": round(high, 3),
    }


def show(outcomes: Sequence[tuple[Task, Outcome]]) -> None:
    for task, outcome in outcomes:
        print(task.id)
        for wanted, turn in zip(task.turns, outcome.rollout.turns, strict=False):
            print("  user:", turn.user)
            print("  gold:", *[f"{c.tool}{json.dumps(c.arguments)}" for c in wanted.gold or ()])
            for step in turn.steps:
                print("   ", step.content, *[f"{c.tool}{c.arguments}" for c in step.calls])
                print("     ", *[r.content for r in step.results])
        print("  =>", outcome.rollout.reward)


def table(policy, n: int, only: str, shown: int) -> Iterator[dict[str, object]]:
    shipped = resource_folder("env_templates") / "rooms"
    with tempfile.TemporaryDirectory() as scratch:
        bare = without_rules(shipped, Path(scratch) / "rooms")
        for name, (words, prose_left_out) in CONDITIONS.items():
            if only in name:
                outcomes = roll_out(policy, bare if prose_left_out else shipped, words, name, n)
                show(outcomes[:shown])
                yield row(name, [o.rollout.reward or 0.0 for _, o in outcomes])
        if not any(only in kind for kind in (*KINDS, "rule")):
            return
        stated = roll_out(policy, bare, right, "kinds", n)
        for kind in (kind for kind in KINDS if only in kind or only == "rule"):
            lacking = roll_out(policy, bare, without(kind), "kinds", n)
            for name, outcomes in ((f"{kind} stated", stated), (f"{kind} not stated", lacking)):
                yield row(name, [float(f) for t, o in outcomes for f in followed(kind, t, o)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--only", default="", help="a part of a condition's name; `rule`: kinds")
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    policy = open_policy(options.model)
    for line in table(policy, options.n, options.only, options.show):
        if options.json:
            print(json.dumps(line), flush=True)
        else:
            figures = f"{line['score']:.2f} ({line['low']:.2f} to {line['high']:.2f})"
            print(f"{line['condition']:34} {figures}  n={line['n']}", flush=True)


if __name__ == "__main__":
    main()
