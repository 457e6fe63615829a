"""The rewriter that is a language model: a DSPy program over the evidence of one slot.

This is the only module that imports DSPy. DSPy's own transport, retries and cache are left out:
every call goes through our client, so that budget, cassette and failures are the same as for a
policy. Nothing is set globally, nothing is printed and nothing is written to DSPy's cache.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from seal.errors import ModelFailure, SealError, blame, missing_extra
from seal.evolve.evidence import Proposal, SlotEvidence
from seal.models.failures import chain
from seal.models.litellm import LanguageModel
from seal.models.protocol import Message
from seal.resources import resource_folder
from seal.types import Usage

try:
    import dspy
    from dspy import lm15
except ImportError as cause:
    raise missing_extra("The dspy rewriter", "evolve") from cause

THREADS = 4
"""Slots that are asked about at once."""
_QUOTES = ('""', "''", "``", "“”")


class RewriteSlot(dspy.Signature):
    """One slot's evidence in, its new text out; prompts/rewrite_slot.md holds the instructions."""

    evidence: SlotEvidence = dspy.InputField(desc="what is known of the slot and its failures")
    text: str = dspy.OutputField(desc="the slot's new text on one line; empty to empty the slot")
    rationale: str = dspy.OutputField(desc="one or two sentences: which row, which facts")


class SlotRewriter(dspy.Module):
    """Evidence of one slot in, its new text and the reason for it out."""

    def __init__(self) -> None:
        super().__init__()
        prompt = resource_folder("prompts") / "rewrite_slot.md"
        instructions = prompt.read_text(encoding="utf-8").strip()
        self.rewrite = dspy.Predict(RewriteSlot.with_instructions(instructions))

    def forward(self, evidence: SlotEvidence) -> dspy.Prediction:
        """One proposal."""
        return self.rewrite(evidence=evidence)


class _Engine:
    """DSPy's way to our client."""

    def __init__(self, client: LanguageModel) -> None:
        self._client = client
        self._usage = Usage()
        self._lock = threading.Lock()

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Answer one canonical request of DSPy.

        Raises:
            ModelFailure: The model could not be called.
        """
        system = request.system
        if system is not None and not isinstance(system, str):
            system = "\n".join(part.text for part in system)
        dialogue = [Message("system", system)] if system else []
        dialogue += [Message(message.role, message.text or "") for message in request.messages]
        done = self._client.complete(dialogue)
        with self._lock:
            self._usage += done.usage
        spent = done.usage
        return lm15.Response(
            id=None,
            model=request.model,
            message=lm15.Message.assistant([lm15.TextPart(done.content)]),
            finish_reason="stop",
            usage=lm15.Usage(
                input_tokens=spent.prompt_tokens,
                output_tokens=spent.completion_tokens,
                total_tokens=spent.prompt_tokens + spent.completion_tokens,
            ),
        )

    def spent(self) -> Usage:
        """What all answers so far cost."""
        with self._lock:
            return self._usage


class DSPyRewriter:
    """Proposes slot texts with a language model.

    Args:
        client: The model; its settings hold the temperature.
    """

    def __init__(self, client: LanguageModel) -> None:
        self.name = f"dspy:{client.model}"
        self.skipped = 0
        """Slots for which the model gave no usable answer, in either of DSPy's formats."""
        self._program = SlotRewriter()
        self._engine = _Engine(client)
        # The name is ours: DSPy knows some models by theirs and would set their options for them.
        self._lm = dspy.LM("seal/rewriter", engine=self._engine, cache=False, num_retries=0)

    def propose(self, evidence: Sequence[SlotEvidence]) -> list[Proposal]:
        """Texts for the slots, in the order of the evidence; unusable answers are left out.

        Raises:
            ModelFailure: The model could not be called.
        """
        pool = ThreadPoolExecutor(THREADS)
        try:
            answers = list(pool.map(self._propose, evidence))
        finally:
            # After a failure the rest would only fail as well, each after its own tries.
            pool.shutdown(cancel_futures=True)
        proposals = [answer for answer in answers if answer is not None]
        self.skipped += len(answers) - len(proposals)
        return proposals

    def _propose(self, evidence: SlotEvidence) -> Proposal | None:
        try:
            with (
                blame(ModelFailure, self.name),
                # In the thread that calls: a context does not reach into others.
                dspy.context(
                    lm=self._lm, adapter=dspy.ChatAdapter(), disable_history=True, trace=None
                ),
            ):
                found = self._program(evidence=evidence)
                return Proposal(
                    slot=evidence.slot.id,
                    text=_plain(found.text),
                    rationale=" ".join(str(found.rationale or "").split()),
                )
        except ModelFailure as failure:
            links = list(chain(failure))
        # DSPy wraps what the client raises, and a second format may fail after the first.
        ours = [link for link in links[1:] if isinstance(link, SealError)]
        if not ours and any(isinstance(link, dspy.AdapterParseError) for link in links):
            return None
        raise (ours or links)[-1 if ours else 0]

    def spent(self) -> Usage:
        """What all proposals so far cost."""
        return self._engine.spent()


def _plain(text: object) -> str:
    """One line, without the quotes that models like to put around a text."""
    line = " ".join(str(text or "").split())
    quoted = len(line) > 1 and f"{line[0]}{line[-1]}" in _QUOTES
    return line[1:-1].strip() if quoted else line
