"""The DSPy rewriter over real HTTP, against the local server."""

import importlib.util
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from seal.config import ModelConfig
from seal.envs.slots import PLACEHOLDERS, parse_text
from seal.errors import ModelFailure
from seal.evolve.evidence import Attempt, EvidenceRow, SlotEvidence
from seal.models.budget import Budget, BudgetReached
from seal.models.cassette import Cassette
from seal.models.litellm import LanguageModel
from seal.resources import resource_folder
from seal.types import Kind, Rule, Slot, SlotKind, ToolContract, Usage
from tests.openai_server import openai_server, serving

needs_dspy = pytest.mark.skipif(
    importlib.util.find_spec("dspy") is None and not os.environ.get("CI"),
    reason="needs the evolve extra (dspy, litellm)",
)
pytestmark = [pytest.mark.evolve, needs_dspy]

TOOL = ToolContract(
    name="brew",
    parameters={
        "type": "object",
        "properties": {"grind": {"type": "string"}, "water": {"type": "integer"}},
        "required": ["grind", "water"],
    },
    rules={"water": Rule(unit="millilitres", maximum=900)},
)


def evidence(
    kind: SlotKind = "constraint",
    *,
    row: Kind = Kind.WRONG_ARGUMENT,
    current: str = "",
    facts: dict[str, str] | None = None,
    **more: object,
) -> SlotEvidence:
    of_argument = kind == "constraint"
    return SlotEvidence(
        slot=Slot(
            id=f"brew.{kind}",
            kind=kind,
            tool="brew",
            argument="water" if of_argument else None,
            recovery="refused" if kind == "recovery" else None,
            max_chars=200,
        ),
        current=current,
        placeholders=PLACEHOLDERS[kind],
        contract=TOOL,
        facts={"unit": "millilitres", "maximum": "900"} if facts is None else facts,
        tools=("brew", "rinse"),
        rows=(
            EvidenceRow(
                tool="brew",
                argument="water" if of_argument else None,
                kind=row,
                faults=7,
                share=0.35,
                recovery_rate=0.1,
                shapes=("number, 1 digit",),
            ),
        ),
        **more,
    )


def rewriter(url: str | None, *, retries: int = 0, **more: object):
    from seal.evolve.program import DSPyRewriter

    config = ModelConfig(retries=retries, temperature=0.7, timeout_s=5.0)
    return DSPyRewriter(LanguageModel("openai/test", config, base_url=url, backoff_s=0.01, **more))


def test_a_proposal_comes_from_typed_evidence_over_http():
    with serving() as server:
        subject = rewriter(server.url)
        [proposal] = subject.propose([evidence()])
    assert subject.name == "dspy:openai/test"
    assert proposal.slot == "brew.constraint"
    assert proposal.text == "Give it in {unit}. At most {maximum}."
    assert "wrong_argument" in proposal.rationale
    assert subject.spent().calls == len(server.requests) == 1
    assert subject.spent().prompt_tokens > 0


@pytest.mark.parametrize("kind", ["guidance", "affordance", "constraint", "recovery"])
def test_proposals_hold_only_the_placeholders_of_their_slot_kind(kind: SlotKind):
    with openai_server() as url:
        [proposal] = rewriter(url).propose([evidence(kind, facts={"water.unit": "millilitres"})])
    assert len(proposal.text) <= 200
    assert parse_text(proposal.text, kind)


def test_a_text_that_lengthens_the_plan_is_emptied():
    harm = evidence("affordance", row=Kind.LIMIT_REACHED, current="Rinse twice before brewing.")
    with openai_server() as url:
        [proposal] = rewriter(url).propose([harm])
    assert proposal.text == ""


def test_the_prompt_is_the_file_and_all_of_the_evidence():
    tried = Attempt(text="Use litres.", accepted=False, reason="it contradicts the facts")
    given = evidence(attempts=(tried,), refusal="too long by 12 characters")
    with serving() as server:
        rewriter(server.url).propose([given])
    system, user = (message["content"] for message in server.requests[0]["messages"])
    prompt = (resource_folder("prompts") / "rewrite_slot.md").read_text(encoding="utf-8")
    for line in prompt.splitlines():
        assert line.strip() in system
    written = user.partition("[[ ## evidence ## ]]")[2].strip()
    assert json.JSONDecoder().raw_decode(written)[0] == given.model_dump(mode="json")


def test_proposals_keep_the_order_of_the_evidence():
    kinds: list[SlotKind] = ["recovery", "affordance", "constraint", "guidance"] * 3
    with openai_server(slow=0.02) as url:
        proposals = rewriter(url).propose([evidence(kind) for kind in kinds])
    assert [proposal.slot for proposal in proposals] == [f"brew.{kind}" for kind in kinds]


@pytest.mark.parametrize("written", ['"Keep it short."', "“Keep it short.”", " Keep\n it short. "])
def test_quotes_and_line_breaks_around_a_text_are_no_part_of_it(written: str):
    with openai_server(script=[_answer(written)]) as url:
        [proposal] = rewriter(url).propose([evidence()])
    assert proposal.text == "Keep it short."


def test_an_answer_in_the_wrong_format_is_asked_for_again_as_json():
    script = [{"role": "assistant", "content": "Sure! Here is a nice text."}]
    with serving(script=script) as server:
        subject = rewriter(server.url)
        [proposal] = subject.propose([evidence()])
    assert proposal.text == "Give it in {unit}. At most {maximum}."
    assert subject.skipped == 0
    assert subject.spent().calls == len(server.requests) == 2


@pytest.mark.parametrize("content", ["nonsense", "", "{}", '{"text": 3}', "[[ ## text ## ]]"])
def test_an_unusable_answer_skips_its_slot_and_is_counted(content: str):
    script = [{"role": "assistant", "content": content}] * 2
    with openai_server(script=script) as url:
        subject = rewriter(url)
        assert subject.propose([evidence()]) == []
        assert subject.skipped == 1
        assert len(subject.propose([evidence()])) == 1
    assert subject.spent().calls == 3


def test_an_unreachable_model_is_the_clients_own_failure():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
    with pytest.raises(ModelFailure) as found:
        rewriter(url).propose([evidence()] * 9)
    assert str(found.value).startswith(f"openai/test: no model server answers at {url}")


def test_a_server_that_fails_after_an_unusable_answer_is_a_failure_not_a_skip():
    script = [{"role": "assistant", "content": "nonsense"}, {"status": 503}]
    with openai_server(script=script) as url:
        subject = rewriter(url)
        with pytest.raises(ModelFailure, match="answered 503"):
            subject.propose([evidence()])
    assert subject.skipped == 0


def test_retries_and_budget_are_those_of_the_client():
    with serving(fail=1) as server:
        assert rewriter(server.url, retries=1).propose([evidence()])
    assert len(server.requests) == 2
    with serving() as server:
        from seal.evolve.program import DSPyRewriter

        model = LanguageModel("openai/gpt-4o", base_url=server.url, budget=Budget(1e-6))
        with pytest.raises(BudgetReached):
            DSPyRewriter(model).propose([evidence()])
    assert server.requests == []


def test_a_cassette_replays_proposals_without_a_server(tmp_path: Path):
    with openai_server() as url:
        made = rewriter(url, cassette=Cassette(tmp_path / "c.jsonl")).propose([evidence()])
    subject = rewriter("http://127.0.0.1:9/v1", cassette=Cassette(tmp_path / "c.jsonl"))
    assert subject.propose([evidence()]) == made
    assert subject.spent() == Usage()


def test_dspy_prints_nothing_and_leaves_no_cache(tmp_path: Path):
    code = (
        "import dspy, sys\n"
        "from tests.evolve.test_program import evidence, rewriter\n"
        "from tests.openai_server import openai_server\n"
        "script = [{'role': 'assistant', 'content': 'nonsense'}]\n"
        "with openai_server(script=script) as url:\n"
        "    assert rewriter(url).propose([evidence()])\n"
        "assert dspy.settings.lm is None\n"
    )
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(Path.cwd())}
    for name in ("DSPY_CACHEDIR", "XDG_CACHE_HOME"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (tmp_path / ".dspy_cache").exists()


def test_a_missing_dspy_says_how_to_install_it():
    code = (
        "import sys\n"
        "sys.modules['dspy'] = None\n"
        "from seal.errors import MissingExtra\n"
        "try:\n"
        "    import seal.evolve.program\n"
        "except MissingExtra as missing:\n"
        "    sys.exit(\"pip install 'seal-coevolve[evolve]'\" not in str(missing))\n"
        "sys.exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def _answer(text: str) -> dict[str, str]:
    content = f"[[ ## text ## ]]\n{text}\n\n[[ ## rationale ## ]]\nr\n\n[[ ## completed ## ]]"
    return {"role": "assistant", "content": content}
