"""Turns without gold, between turns with it."""

from tests.envs.test_verify import call, failed, put, scored, task, template  # noqa: F401


def test_after_a_turn_without_gold_nothing_is_held_against_golds_state(template):  # noqa: F811
    mixed = task({}, {"gold": [put(count=2)]}, {"gold": []}, checks=["is_empty"])
    emptied = [[put(count=3)], [put(count=2), call("take", item="tea", count=10)], []]
    assert scored(template, mixed, *emptied).reward == 1.0
    assert failed(scored(template, mixed, [], [put(count=2)], [])) == ["is_empty"]
