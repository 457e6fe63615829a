"""Rollouts of which nothing can be learned, since gold or its verdict is in doubt."""

import re
from dataclasses import replace

from pydantic import JsonValue

from seal.diagnose.attempts import attempts_of, differing, match_gold
from seal.envs.suspects import suspicion, trusted_tasks
from seal.envs.template import EnvironmentTemplate
from seal.envs.verify import GoldReplays, Played, PlayedTurn, answer_of, verify
from seal.types import GOLD_SUSPECT, Diagnosis, Kind, Rollout, Task, UserTurn

FORM_ALONE = (
    'The rollout fails by how a number is written alone, as 65 for 65.0 or "65", and no rule asks '
    "for a form."
)
_NUMERAL = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?")
_NUMERALS = re.compile(r'"(-?(?:0|[1-9]\d*)(?:\.\d+)?)"|(?<![\w.])(-?(?:0|[1-9]\d*)\.\d+)(?![\w.])')


def gold_suspect(
    template: EnvironmentTemplate,
    gold: GoldReplays,
    task: Task,
    rollout: Rollout,
    played: Played | None,
) -> Diagnosis | None:
    """The one diagnosis of a rollout whose gold is in doubt, None if it is not.

    Beside what `seal.envs.suspects` knows of the task: the rollout fails, and passes if the same
    number in another form counts as the same. What its calls did need be known only if it failed.

    Raises:
        EnvironmentFailure: Gold breaks.
    """
    found = suspicion(template, gold, task)
    reason = found.reason if found else ""
    judged = rollout.reward != 1.0 and task.id not in trusted_tasks(template)
    if not reason and judged and played is not None:
        reason = FORM_ALONE if _by_form_alone(template, gold, task, rollout, played) else ""
    if not reason:
        return None
    return Diagnosis(turn=0, kind=Kind.UNSCORABLE, code=GOLD_SUSPECT, found=reason)


def _by_form_alone(
    template: EnvironmentTemplate, gold: GoldReplays, task: Task, rollout: Rollout, played: Played
) -> bool:
    """Whether a failed rollout would pass if every number were written in one form."""
    golden = gold.of(task)
    if len(played.turns) < len(golden.turns):
        return False
    last = len(task.turns) - 1
    every_turn = template.world.verify_state == "every_turn"
    turns = []
    for index, (wanted, made) in enumerate(zip(golden.turns, played.turns, strict=True)):
        alike = wanted.state != made.state and same_but_for_form(wanted.state, made.state)
        counts = index == last or (every_turn and bool(task.turns[index].gold))
        if counts and not alike and wanted.state != made.state:
            return False
        turns.append(replace(made, state=wanted.state) if alike else made)
    answers = [answer_of(turn) for turn in rollout.turns]
    if verify(template, task, golden, played, answers).reward == 1.0:
        return False  # It failed for something else: a call where none may be, say.
    plain_gold = replace(golden, turns=tuple(map(_plain, golden.turns)))
    plain = replace(played, turns=tuple(map(_plain, turns)))
    plain_task = task.model_copy(update={"turns": tuple(map(_plain_answer, task.turns))})
    said = [_plain_text(answer) for answer in answers]
    if verify(template, plain_task, plain_gold, plain, said).reward != 1.0:
        return False
    return not _a_rule_asks_for_form(template, task, rollout)


def _plain(turn: PlayedTurn) -> PlayedTurn:
    executed = tuple(replace(done, output=_plain_text(done.output)) for done in turn.executed)
    return replace(turn, executed=executed)


def _plain_answer(turn: UserTurn) -> UserTurn:
    return turn.model_copy(update={"answer": tuple(map(_plain_text, turn.answer))})


def _plain_text(text: str) -> str:
    """A text with every number in one form.

    >>> _plain_text('{"level": 65.0, "room": "7"}'), _plain_text("version 1.0.2")
    ('{"level": 65, "room": 7}', 'version 1.0.2')
    """
    return _NUMERALS.sub(lambda found: _shortest(found[1] or found[2]), text)


def _shortest(numeral: str) -> str:
    return (numeral.rstrip("0").rstrip(".") if "." in numeral else numeral) or "0"


def same_but_for_form(first: JsonValue, second: JsonValue) -> bool:
    """Whether two values are the same if `65`, `65.0`, `"65"` and `"65.0"` are.

    >>> same_but_for_form({"a": [65, "7"]}, {"a": ["65.0", 7]}), same_but_for_form("007", 7)
    (True, False)
    """
    if first == second:
        return True
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(
            same_but_for_form(value, second[key]) for key, value in first.items()
        )
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same_but_for_form, first, second))
    one, other = _number(first), _number(second)
    return one is not None and one == other


def _number(value: JsonValue) -> float | None:
    """The number that a value is or spells, None if it is none."""
    if isinstance(value, str) and _NUMERAL.fullmatch(value):
        return float(value)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _a_rule_asks_for_form(template: EnvironmentTemplate, task: Task, rollout: Rollout) -> bool:
    """Whether an argument that was sent otherwise than gold's has a declared form or set."""
    for wanted, turn in zip(task.turns, rollout.turns, strict=False):
        attempts = attempts_of(turn, template.limits.call_chars)
        for match in match_gold(template.contract, wanted.gold or (), attempts):
            if match.attempt is None or match.exact:
                continue
            contract = template.contract[match.gold.tool]
            rules = [contract.rules.get(n) for n in differing(contract, match.gold, match.attempt)]
            if any(rule and (rule.format or rule.allowed) for rule in rules):
                return True
    return False
