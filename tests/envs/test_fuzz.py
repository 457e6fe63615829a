"""Whatever a policy calls, it is answered in words: no crash, no path, no Python of ours."""

import json
import random
import re
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seal.envs import load_environment
from seal.envs.contract import Contract
from seal.envs.render import SYSTEM_RECOVERIES, TOOL_RECOVERIES
from seal.envs.verify import visible_tools
from seal.rollout.agent import Arena, answer_call
from seal.soundness.probes import Values
from seal.types import ToolCall

CALLS, WORLDS = 100, 100
"""Of each environment: 10,000 calls."""
OURS = re.compile(
    r"Traceback|File \"|\.py\b|site-packages|seal\.|pydantic|object at 0x|<class|"
    r"[A-Z]\w+(Error|Exception|Failure)\b"
)
"""What only a program would say."""
odd = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
texts = st.text(max_size=40) | st.sampled_from(
    ["", "{", "[]", "null", '{"a": NaN}', '{"a": 1e999}', "{} {}"]
)


class Sender:
    """Arguments near right ones, and far from them."""

    def __init__(self, contract: Contract, values: Values) -> None:
        self._contract, self._values = contract, values

    def text(self, rng: random.Random, tool: str, text: str, value: object) -> str:
        """What a call carries, with an odd text or value in it now and then."""
        known = self._contract.tools.get(tool)
        if known is None or not rng.randrange(5):
            return rng.choice([text, "{}"])
        names = known.contract.arguments
        arguments = {key: self._values.draw(rng, tool, key, ()) for key in names}
        for key in names:
            match rng.randrange(12):
                case 0:
                    arguments[key] = value
                case 1:
                    del arguments[key]
                case 2:
                    arguments[text or "x"] = value
        return json.dumps(arguments)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["rooms", "orders", "home", pytest.param("bfcl", marks=pytest.mark.bfcl)]
)
def test_ten_thousand_calls_are_answered_in_words(name, request):
    if name == "bfcl":
        request.getfixturevalue("bfcl")
    template = load_environment(name)
    arena, tasks = Arena(template), template.tasks("train")
    sender = Sender(template.contract, Values(template, tasks[:40]))
    names = sorted(template.contract.tools)
    heard: Counter[str] = Counter()

    @settings(max_examples=WORLDS, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, 2**32), st.lists(st.tuples(texts, odd), min_size=8, max_size=8))
    def calls_are_answered(seed: int, strange: list) -> None:
        rng = random.Random(seed)
        task = rng.choice(tasks)
        world = template.new_world(task)
        shown = visible_tools(template, task, task.turns[0].hidden)
        executed: list = []
        for number in range(CALLS):
            text, value = rng.choice(strange)
            tool = rng.choice([*names, *shown, *shown, text, ""])
            call = ToolCall(
                id=f"{number}", tool=tool, arguments=sender.text(rng, tool, text, value)
            )
            result = answer_call(arena, shown, call, executed, world)
            heard[result.error.kind if result.error else "answered"] += 1
            if result.error is not None:
                said = result.content.replace(text, "").replace(call.arguments[:80], "")
                assert not OURS.search(said), (call, result)
        world.state()

    calls_are_answered()
    assert heard.total() >= CALLS * WORLDS
    kinds = {*SYSTEM_RECOVERIES, *TOOL_RECOVERIES, "answered"} - {"argument_value"}
    assert kinds <= heard.keys()
