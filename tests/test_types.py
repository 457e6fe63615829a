"""Every record survives JSON, whatever its texts and values are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from seal.errors import RULE_KEYS
from seal.types import (
    CallError,
    Candidate,
    CheckResult,
    DiagnosedRollout,
    Diagnosis,
    GoldCall,
    RenderedTool,
    Rollout,
    Rule,
    Sampling,
    Score,
    Slip,
    Slot,
    Step,
    Task,
    ToolCall,
    ToolContract,
    ToolResult,
    Turn,
    Usage,
    UserTurn,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
scalars = texts | st.booleans() | numbers
json_values = st.recursive(
    st.none() | scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
arguments = st.dictionaries(texts, json_values, max_size=3)
maybe_text = st.none() | texts


def tuples(strategy):
    return st.lists(strategy, max_size=2).map(tuple)


rules = st.builds(
    Rule,
    allowed=st.none() | tuples(scalars) | st.dictionaries(texts, scalars, max_size=2),
    format=maybe_text,
    unit=maybe_text,
    minimum=st.none() | numbers,
    maximum=st.none() | numbers,
    requires=maybe_text,
)
errors = st.builds(CallError, argument=maybe_text, received=json_values, rule=rules)
steps = st.builds(
    Step,
    content=texts,
    calls=tuples(st.builds(ToolCall, id=texts, tool=texts, arguments=texts)),
    results=tuples(st.builds(ToolResult, content=texts, error=st.none() | errors, slot=maybe_text)),
)
scores = st.builds(
    Score,
    reward=st.none() | st.floats(0, 1),
    checks=tuples(st.builds(CheckResult, expected=texts, found=texts)),
)
diagnoses = st.builds(Diagnosis, argument=maybe_text, expected=texts, found=texts)
RECORDS = {
    "rule": rules,
    "contract": st.builds(
        ToolContract, parameters=arguments, rule=rules, rules=st.dictionaries(texts, rules)
    ),
    "task": st.builds(
        Task,
        id=texts,
        scenario=texts,
        turns=st.lists(
            st.builds(
                UserTurn,
                user=texts,
                gold=st.none()
                | tuples(st.builds(GoldCall, arguments=arguments, as_said=arguments)),
                answer=tuples(texts),
            ),
            min_size=1,
            max_size=2,
        ).map(tuple),
        state=arguments,
        tools=st.none() | tuples(texts),
    ),
    "slot": st.builds(Slot, tool=maybe_text, argument=maybe_text),
    "candidate": st.builds(
        Candidate, texts=st.dictionaries(texts, texts, max_size=3), parent=maybe_text
    ),
    "rendered tool": st.builds(RenderedTool, description=texts, parameters=arguments),
    "rollout": st.builds(
        Rollout,
        turns=tuples(st.builds(Turn, user=texts, steps=tuples(steps))),
        score=scores,
        sampling=st.builds(Sampling, temperature=st.floats(0, 2)),
        failure=maybe_text,
        slips=tuples(st.builds(Slip, tool=maybe_text, argument=maybe_text)),
        usage=st.builds(Usage, dollars=st.floats(0, 9)),
        seconds=st.floats(0, 1e6),
    ),
    "diagnosed rollout": st.builds(
        DiagnosedRollout,
        reward=st.none() | st.floats(0, 1),
        diagnoses=tuples(diagnoses),
        fault=st.none() | diagnoses,
    ),
}


@given(st.one_of(*RECORDS.values()))
def test_records_survive_json(record):
    assert type(record).model_validate_json(record.model_dump_json()) == record


def test_every_key_of_a_rule_has_a_word():
    assert tuple(Rule.model_fields) == RULE_KEYS


@pytest.mark.parametrize("reward", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_reward_is_a_share(reward):
    with pytest.raises(ValidationError, match="reward"):
        Score(reward=reward)
