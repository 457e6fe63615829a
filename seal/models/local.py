"""A local policy: a transformers model, sampled for many rollouts at their own pace."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from seal.models.chat import END, heard_text, parse_reply, prompt_text, reply_text
from seal.models.protocol import Message, PolicyInput, Reply
from seal.models.sampler import Row, Sampler, Stretch, Tokens
from seal.types import Usage

ROWS = 32
"""Dialogues that a local policy holds at once."""


@dataclass(slots=True)
class _Seat:
    """One rollout's row, and what of its dialogue the row has heard."""

    row: Row
    prompt: str
    prompt_ids: list[int]
    whole: bool
    """It was there from the dialogue's beginning, so that every reply in it was sampled here."""
    messages: int = 1
    turn: int = 0
    step: int = 0
    stretches: list[Stretch] = field(default_factory=list)


class LocalPolicy:
    """A causal language model of transformers as a policy.

    Args:
        name: The name as after `-m`.
        version: Changes with the weights.
        model: The model, in evaluation mode.
        tokenizer: Its tokenizer, which must know ChatML's two marks.
        seed: Seed of the draws. Every reply has its own, from this seed and from the rollout's
            seed, task, sample, turn and step: what is drawn does not depend on what else is made.
        rows: Dialogues at once.
        keep_tokens: Keep the tokens of rollouts that are over, for `tokens`.
    """

    def __init__(
        self,
        name: str,
        version: str,
        model: Any,  # noqa: ANN401 - a transformers model
        tokenizer: Any,  # noqa: ANN401
        *,
        seed: int = 0,
        rows: int = ROWS,
        keep_tokens: bool = False,
    ) -> None:
        self.name = name
        self.version = version
        self.rows = rows
        self.keep_tokens = keep_tokens
        self._seed = seed
        self._tokenizer = tokenizer
        self._sampler = Sampler(model, rows, tokenizer.convert_tokens_to_ids(END))
        self._seats: dict[str, _Seat] = {}
        self._waiting: list[PolicyInput] = []
        self._tokens: dict[str, Tokens] = {}

    def act(self, given: PolicyInput) -> Reply:
        """The next agent message of one rollout, alone."""
        self.submit(given)
        while True:
            for key, reply in self.replies():
                if key == key_of(given):
                    return reply

    def submit(self, given: PolicyInput) -> None:
        """Ask for the next agent message of a rollout; `replies` brings it."""
        self._waiting.append(given)

    def replies(self) -> list[tuple[str, Reply]]:
        """Go on until at least one message that was asked for is there; those that are."""
        self._seat(self._waiting)
        self._waiting = []
        ended: list[Row] = []
        while not ended:
            ended = self._sampler.step()
        seats = {seat.row.index: (key, seat) for key, seat in self._seats.items()}
        return [(seats[row.index][0], self._reply(seats[row.index][1])) for row in ended]

    def release(self, key: str) -> None:
        """Forget a rollout that is over, but for its tokens where they are kept."""
        if seat := self._seats.pop(key, None):
            if self.keep_tokens and seat.whole:
                self._tokens[key] = Tokens(seat.prompt_ids, seat.stretches)
            self._sampler.close(seat.row)

    def tokens(self, key: str) -> Tokens | None:
        """Hand out, once, the tokens of a rollout that was released.

        None if they were not kept, or if no one sequence holds them: tools that appear or vanish
        change the prompt, and the dialogue is then read anew.
        """
        return self._tokens.pop(key, None)

    def refresh(self, version: str) -> None:
        """Say that the weights have changed: all that was computed with the old ones goes.

        Rollouts under way are forgotten, kept tokens stay.
        """
        for seat in self._seats.values():
            self._sampler.close(seat.row)
        self._seats, self._waiting = {}, []
        self._sampler.forget()
        self.version = version

    def _seat(self, waiting: Sequence[PolicyInput]) -> None:
        """Give every rollout a row; those that begin with the same prompt compute it together."""
        beginning: dict[str, list[PolicyInput]] = {}
        for given in waiting:
            seat = self._seats.get(key_of(given))
            prompt = prompt_text(given.messages[0].content, given.tools)
            # Tools that appear or vanish change the prompt: the dialogue is then read anew.
            if seat and seat.prompt == prompt and seat.messages < len(given.messages):
                self._hear(seat, given)
            else:
                self.release(key_of(given))
                self._tokens.pop(key_of(given), None)
                beginning.setdefault(prompt, []).append(given)
        for prompt, group in beginning.items():
            prompt_ids = self._ids(prompt)
            rows = self._sampler.open(prompt_ids, len(group))
            for row, given in zip(rows, group, strict=True):
                whole = all(message.role != "assistant" for message in given.messages)
                self._seats[key_of(given)] = seat = _Seat(row, prompt, prompt_ids, whole)
                self._hear(seat, given)

    def _hear(self, seat: _Seat, given: PolicyInput) -> None:
        new = given.messages[seat.messages :]
        seat.turn, seat.step = given.turn, given.steps_taken
        text = "" if seat.messages == 1 else "\n"
        heard: list[Message] = []
        for message in new:
            # Only a dialogue that is read anew brings agent messages: they are heard as text.
            if message.role == "assistant":
                text += heard_text(heard) + reply_text(message) + "\n"
                heard = []
            else:
                heard.append(message)
        ids = self._ids(text + heard_text(heard))
        seat.stretches.append(Stretch(ids))
        # The reply that answers `given` will be the next message.
        seat.messages = len(given.messages) + 1
        self._sampler.submit(
            seat.row,
            ids,
            most=given.sampling.max_tokens,
            temperature=given.sampling.temperature,
            chance=random.Random(
                f"{self._seed}/{given.seed}/{key_of(given)}/{seat.turn}/{seat.step}"
            ),
        )

    def _reply(self, seat: _Seat) -> Reply:
        row = seat.row
        seat.stretches.append(Stretch(row.sampled, row.log_probs, seat.turn))
        text = self._tokenizer.decode(row.sampled, skip_special_tokens=False)
        content, calls = parse_reply(text, f"call-{seat.turn}-{seat.step}")
        usage = Usage(
            calls=1,
            prompt_tokens=len(row.ids) - len(row.sampled),
            completion_tokens=len(row.sampled),
        )
        return Reply(content=content, calls=calls, usage=usage)

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids


def key_of(given: PolicyInput) -> str:
    """What tells one rollout from the others of a batch."""
    return f"{given.task.id}#{given.sample}"
