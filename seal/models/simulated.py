"""A seeded reader that stands in for a model, to test the plumbing. Its results are simulated.

It knows gold, and spoils it where the words it reads leave it in the dark: an argument goes out in
the form in which the user said it, a prerequisite is skipped, a request that should be declined
is acted upon. Besides, it slips at a small rate, whatever it reads. Every draw is keyed by (seed,
task, turn, call, argument, words read): two candidates that say the same are coupled, and two that
do not are fresh draws.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from seal.errors import ConfigError, did_you_mean
from seal.models.gold import call_id
from seal.models.protocol import Message, PolicyInput, Reply
from seal.models.reading import (
    prescribed,
    says_value,
    stands_in,
    states,
    teaches_abstention,
)
from seal.models.slips import Planned, guessed, plant
from seal.types import Arguments, GoldCall, Rule, Slip, ToolCall, content_hash


@dataclass(frozen=True, slots=True)
class Reader:
    """How often a reader errs on a rule it has not read, and how often it slips anyway."""

    errs: float
    slips: float
    acts: float | None = None
    """How often it acts where it should ask or decline and was not told to; None: as it errs."""
    everywhere: bool = False
    """Whether it reads a rule wherever it stands: in any tool's words, in any message so far."""
    heard: tuple[str, ...] = ()
    """Messages from before the dialogue that it has read, if it reads everywhere."""
    corrections: int = 1
    """Errors that it corrects in one turn, where their messages say how."""


LONG_RUN = 5
"""Calls of one tool in a row that go out in one step."""
READERS = {
    "novice": Reader(errs=0.35, slips=0.05),
    "expert": Reader(errs=0.15, slips=0.02),
    "lost": Reader(errs=0.85, slips=0.1),
}


class SimulatedPolicy:
    """The simulated reader of one profile."""

    def __init__(self, reader: str | Reader) -> None:
        if isinstance(reader, Reader):
            self.name, self.version, self._reader = "sim", "simulated", reader
            return
        if reader not in READERS:
            raise ConfigError(
                f"sim:{reader}: no such reader.\nReaders: {', '.join(READERS)}."
                f"{did_you_mean(reader, READERS)}"
            )
        self.name = f"sim:{reader}"
        self.version = "simulated"
        self._reader = READERS[reader]

    def act(self, given: PolicyInput) -> Reply:
        """The next call of the plan, a correction that a message taught, or the end of the turn."""
        turn = _Reading(given, self._reader)
        plan = turn.plan()
        slips = tuple(p.slip for p in plan if p.slip) + turn.dropped
        at, corrected = 0, 0
        logged = slips
        told: list[Message] = []
        for results in turn.results():
            logged = ()
            told += results
            fixes: list[Planned] = []
            for call, result in zip(plan[at:], results, strict=False):
                if result.failed:
                    logged += call.became_refused()
                    spent = corrected >= self._reader.corrections
                    fix = None if spent else turn.correction(call, result.content)
                    if fix is None:
                        return Reply("I could not do that.", slips=logged)
                    fixes += fix
                    corrected += 1
            at += len(results)
            plan[at:] = [turn.recalled(call, told) for call in [*fixes, *plan[at:]]]
        if at >= len(plan):
            return Reply(turn.answer(), slips=logged)
        calls = tuple(
            ToolCall(id=f"{call_id(given)}-{i}", tool=call.tool, arguments=call.text())
            for i, call in enumerate(_together(plan[at:]))
        )
        return Reply(calls=calls, slips=logged)


def _together(plan: Sequence[Planned]) -> Sequence[Planned]:
    """The calls of the next step: one, or a long run of the same tool, as models make it."""
    run = list(takewhile(lambda call: call.tool == plan[0].tool, plan))
    return run if len(run) >= LONG_RUN else plan[:1]


@dataclass
class _Reading:
    """One turn as the reader sees it; a pure function of what a policy is given."""

    given: PolicyInput
    reader: Reader
    dropped: tuple[Slip, ...] = ()
    _words: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._words = {tool.name: tool.words() for tool in self.given.tools}
        self._task_turn = self.given.task.turns[self.given.turn]
        self._heard = [m.content for m in self._before() if m.role in ("user", "tool")]
        self._has_rules = any(
            contract.rules or contract.rule.stated() for contract in self.given.contracts.values()
        )

    def _before(self) -> Sequence[Message]:
        """The dialogue up to and with the current user message."""
        return self.given.messages[: len(self.given.messages) - len(self.given.turn_messages()) + 1]

    def _draw(self, *key: object) -> random.Random:
        given = self.given
        return random.Random(
            content_hash([given.seed, given.sample, given.task.id, given.turn, *map(str, key)], 32)
        )

    def _errs(self, rate: float, *key: object) -> bool:
        return self._draw(*key).random() < rate

    def plan(self) -> list[Planned]:
        """What the reader means to call in this turn, decided at its start."""
        gold = self._task_turn.gold or ()
        if not gold:
            return self._abstention()
        planned: list[Planned] = []
        for index, call in enumerate(gold):
            if self._skips_prerequisite(gold, index):
                continue
            planned += self._needless(call, planned, gold)
            own = self._from_gold(index, call)
            if self._errs(self.reader.slips, "slip", index, self._words.get(call.tool, "")):
                spoilt, slip = plant(
                    self._draw("kind", index), own, self.given, alone=len(gold) == 1
                )
                if spoilt is None:
                    self.dropped += (slip,)
                    continue
                own = spoilt
            planned.append(own)
        return planned

    def _abstention(self) -> list[Planned]:
        """Nothing, if the reader knows better; else a call made on a guess."""
        if self._task_turn.gold is None:
            return []
        guidance = self.given.messages[0].content
        rate = self.reader.errs if self._has_rules else self.reader.slips
        if self.reader.acts is not None:
            rate = self.reader.acts
        if teaches_abstention(guidance):
            rate = self.reader.slips
        if not self._errs(rate, "abstain", guidance):
            return []
        turns = self.given.task.turns
        later = [*turns[self.given.turn + 1 :], *turns[: self.given.turn]]
        visible = set(self._words)
        calls = [call for turn in later for call in turn.gold or () if call.tool in visible]
        if not calls:
            return []
        call = calls[0]
        slip = Slip(turn=self.given.turn, kind="spurious_call", tool=call.tool)
        # With its own arguments, a call made too early would only come true a turn later.
        guess = guessed(call.arguments, self._draw("guess"))
        return [Planned(call.tool, guess, gold=None, slip=slip)]

    def _skips_prerequisite(self, gold: Sequence[GoldCall], index: int) -> bool:
        tool = gold[index].tool
        for later in gold[index + 1 :]:
            contract = self.given.contracts[later.tool]
            if contract.rule.requires == tool:
                words = self._words.get(later.tool, "")
                if stands_in(tool, words) or any(stands_in(tool, text) for text in self._heard):
                    return False
                return self._errs(self.reader.errs, "requires", index, words)
        return False

    def _needless(
        self, call: GoldCall, planned: Sequence[Planned], gold: Sequence[GoldCall]
    ) -> Iterator[Planned]:
        """The calls that the tool's own words want first, beyond what gold makes."""
        known = {g.tool for g in gold} | {p.tool for p in planned}
        values = {k: v for turn in (gold, (call,)) for g in turn for k, v in g.arguments.items()}
        for name in prescribed(call.tool, self._words.get(call.tool, ""), self._words):
            contract = self.given.contracts[name]
            if name not in known and all(argument in values for argument in contract.required):
                arguments = {argument: values[argument] for argument in contract.required}
                yield Planned(name, arguments, gold=None)

    def _from_gold(self, index: int, call: GoldCall) -> Planned:
        """A gold call with the arguments that the reader gets wrong as the user said them."""
        words = self._words.get(call.tool, "")
        arguments: Arguments = dict(call.arguments)
        wrong = []
        for name, said in call.as_said.items():
            texts = [words, *self._heard]
            if self.reader.everywhere:
                texts += [*self._words.values(), *self.reader.heard]
            if self._knows(call, name, texts):
                continue
            if self._errs(self.reader.errs, "argument", index, name, words):
                arguments[name] = said
                wrong.append(name)
        return Planned(call.tool, arguments, gold=call, wrong=tuple(wrong))

    def _knows(self, call: GoldCall, argument: str, texts: Sequence[str]) -> bool:
        rule = self.given.contracts[call.tool].rules.get(argument, Rule())
        own = any(states(rule, text) for text in texts)
        return own or says_value(call.arguments[argument], texts)

    def results(self) -> Iterator[list[Message]]:
        """The answers to the calls of each step of this turn so far."""
        steps: list[list[Message]] = []
        for message in self.given.turn_messages():
            if message.role == "assistant":
                steps.append([])
            elif message.role == "tool":
                steps[-1].append(message)
        return iter(steps)

    def correction(self, failed: Planned, message: str) -> list[Planned] | None:
        """What the reader does about an error whose message says how; None: it gives up."""
        if failed.gold is None:
            return None
        learnt = self._told(failed, failed.gold, message)
        if learnt:
            return [replace(learnt, slip=None, raw=None)]
        if failed.slip and failed.mends(message):
            return [Planned(failed.gold.tool, dict(failed.gold.arguments), gold=failed.gold)]
        return self._prerequisite(failed, failed.gold, message)

    def recalled(self, planned: Planned, results: Sequence[Message]) -> Planned:
        """A call still to come, with what the errors on the way have taught."""
        for result in results if self.reader.everywhere else ():
            if result.failed and planned.gold:
                planned = self._told(planned, planned.gold, result.content) or planned
        return planned

    def _told(self, planned: Planned, gold: GoldCall, message: str) -> Planned | None:
        """The call with the arguments that a message says how to write; None if it says none."""
        learnt = [name for name in planned.wrong if self._knows(gold, name, [message])]
        if not learnt:
            return None
        arguments = {**planned.arguments, **{name: gold.arguments[name] for name in learnt}}
        wrong = tuple(name for name in planned.wrong if name not in learnt)
        return replace(planned, arguments=arguments, wrong=wrong)

    def _prerequisite(self, failed: Planned, gold: GoldCall, message: str) -> list[Planned] | None:
        wanted = self.given.contracts[gold.tool].rule.requires
        if wanted is None or not stands_in(wanted, message):
            return None
        for index, call in enumerate(self._task_turn.gold or ()):
            if call.tool == wanted:
                return [self._from_gold(index, call), failed]
        return None

    def answer(self) -> str:
        """The texts that the turn asks for, in a sentence."""
        return " ".join(self._task_turn.answer) or "Done."
