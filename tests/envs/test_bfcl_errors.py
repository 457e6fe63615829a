"""What is told of BFCL's errors: their words, and never a value of a call or of a world."""

import ast
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.diagnose import build_profile, diagnose_rollout
from seal.envs.bfcl_data import CLASSES
from seal.envs.bfcl_errors import API_FOLDER, EXECUTION, VALUE, error_code, masked
from seal.envs.verify import GoldReplays
from seal.errors import ToolError
from seal.evolve.propose import Proposer
from seal.rollout.agent import Arena, roll_out
from seal.soundness.facts import Facts
from seal.types import Sampling
from tests.evolve.rewriters import Fixed
from tests.scripted import Scripted

pytestmark = pytest.mark.bfcl
SECRET = "Zq7731"


@pytest.fixture(scope="session")
def errors(package):
    """Every error that the sources write down, with `…` for each value."""
    folder = package.joinpath(*API_FOLDER)
    nodes = [
        node
        for stem in CLASSES.values()
        for node in ast.walk(ast.parse((folder / f"{stem}.py").read_text("utf-8")))
        if isinstance(node, ast.Dict)
    ]
    pairs = [pair for node in nodes for pair in zip(node.keys, node.values, strict=True)]
    found = [_text(v) for k, v in pairs if isinstance(k, ast.Constant) and k.value == "error"]
    texts = sorted({text for text in found if text.strip(VALUE)})
    assert len(texts) > 75
    return texts


def _text(node):
    match node:
        case ast.Constant():
            return str(node.value)
        case ast.JoinedStr():
            return "".join(v.value if isinstance(v, ast.Constant) else VALUE for v in node.values)
        case ast.BinOp():
            return _text(node.left) + _text(node.right)
    return VALUE


def test_every_error_message_of_the_apis_has_a_code(errors):
    # What is left tells of the API's own mistake.
    assert {text for text in errors if error_code(text) == "refused"} <= {
        "KeyError during formatting: …"
    }


def test_every_error_of_the_apis_keeps_its_words_and_loses_its_values(package, errors):
    for text in errors:
        said = text.replace(VALUE, SECRET)
        assert masked(package, said).text == text
        assert masked(package, said).values == (SECRET,) * text.count(VALUE)
        assert masked(package, EXECUTION + said).text == EXECUTION + text


@given(st.data())
def test_values_that_look_like_a_message_are_masked_all_the_same(package, errors, data):
    text = data.draw(st.sampled_from(errors))
    parts = data.draw(st.lists(st.sampled_from([SECRET, "'", ": ", " not found.", text])))
    said = text.replace(VALUE, "".join(parts) + SECRET)
    assert SECRET not in masked(package, said).text


def test_what_no_source_says_is_masked_but_for_the_part_that_gives_the_code(package):
    assert masked(package, f"find: '{SECRET}': No such file or directory").text == "…No such file…"
    assert masked(package, f"{EXECUTION}'{SECRET}'").text == f"{EXECUTION}…"
    assert masked(package, f"'{SECRET} not found'").text == "…"


def _odd(schema):
    """A value of an argument that no world knows."""
    if "enum" in schema:
        return schema["enum"][-1]
    match schema.get("type"):
        case "integer" | "number":
            return 7731
        case "boolean":
            return True
        case "array":
            return [_odd(schema.get("items", {}))]
        case "object":
            return {SECRET: SECRET}
    return SECRET


def _refusal(world, tool, arguments):
    try:
        world.call(tool, arguments)
    except ToolError as error:
        return error
    return None


def test_nothing_of_a_call_or_a_world_is_in_the_evidence_of_real_refusals(bfcl, errors, tasks):
    others = (
        # Those that are no `{"error": ...}` of an API's, and one of ours.
        "Invalid option",
        "User not authenticated. Please log in to view the watchlist.",
        "No available exchange rate for the given currencies.",
        "No available route for the given airports.",
        "Invalid travel class. Options are: economy, business, first.",
        "The result is too large to represent.",
    )
    written = {*errors, *others}
    tools, texts = set(), set()
    chosen = [t for t in tasks.values() if t.group in ("base", "long_context")][::6]
    for task, tool in ((one, name) for one in chosen for name in one.tools):
        contract = bfcl.contract[tool]
        properties = contract.parameters["properties"]
        arguments = {name: _odd(properties[name]) for name in contract.required}
        error = _refusal(bfcl.new_world(task), tool, arguments)
        if error is not None:
            tools.add(tool)
            texts.add(error.masked)
            text = error.masked.removeprefix(EXECUTION)
            assert text in written or (text[0] == text[-1] == VALUE)
            assert SECRET not in text
            assert "7731" not in text
            cited = str(arguments.get(error.argument, ""))
            assert cited in error.message
    assert len(tools) > 40
    assert len(texts) > 20


def test_a_rewriter_reads_what_a_refusal_said_and_which_argument_it_named(bfcl, tasks):
    task = next(t for t in tasks.values() if t.group == "base" and "get_user_id" in t.tools)
    call = ("get_user_id", {"user": f"USR{SECRET}"})
    arena = Arena(bfcl, contract_hash="any")
    outcome = roll_out(arena, task, Scripted([[call]]), sample=0, seed=0, sampling=Sampling())
    gold = GoldReplays(bfcl)
    found = diagnose_rollout(bfcl, gold, task, arena.candidate, outcome.rollout, outcome.played)
    profile = build_profile([[found]], bfcl.original.id)
    [row] = [row for row in profile.rows if row.codes and row.kind == "refused"]
    assert (row.argument, row.codes) == ("user", ("not_found",))
    assert row.masked == ("User '…' not found in the workspace.",)
    costly = row.model_copy(update={"faults": 30.0, "share": 0.5})
    rewriter = Fixed({})
    proposer = Proposer(bfcl, Facts({}, (), {}, (), (), 0), rewriter, 5)
    proposer.patches(profile.model_copy(update={"rows": (costly,)}), bfcl.original)
    told = json.dumps([one.model_dump(mode="json") for one in rewriter.asked])
    assert rewriter.asked[0].rows[0].masked == row.masked
    assert rewriter.asked[0].rows[0].shapes == ("text like AAAAa0000",)
    assert SECRET not in told
