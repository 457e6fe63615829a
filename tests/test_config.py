"""Settings come from defaults, a file and `--set`; what is wrong is said at once and in words."""

import pytest

from seal.config import (
    EvolveConfig,
    GateConfig,
    LoopConfig,
    ModelConfig,
    RunConfig,
    load_config,
)
from seal.errors import ConfigError


def refusal(kind, sets=(), file=None):
    with pytest.raises(ConfigError) as caught:
        load_config(kind, file, list(sets))
    return str(caught.value)


def test_nothing_said_gives_the_defaults():
    assert load_config(EvolveConfig, None, []) == EvolveConfig()


def test_a_set_outweighs_the_file_and_the_file_the_default(tmp_path):
    file = tmp_path / "seal.toml"
    file.write_text("generations = 7\nbudget = 50\n[gate]\nalpha = 0.01\nscenarios = 9\n")
    config = load_config(EvolveConfig, file, ["generations=2", "gate.alpha=0.2"])
    assert (config.generations, config.budget) == (2, 50)
    assert config.gate == GateConfig(alpha=0.2, scenarios=9)


def test_the_later_of_two_sets_counts():
    assert load_config(EvolveConfig, None, ["budget=5", "budget=6"]).budget == 6


@pytest.mark.parametrize(
    ("text", "value"),
    [("tape.jsonl", "tape.jsonl"), ('"a b"', "a b"), ("a=b", "a=b"), ("", "")],
)
def test_texts_need_no_quotes(text, value):
    assert load_config(ModelConfig, None, [f"cassette={text}"]).cassette == value


def test_numbers_have_their_type():
    config = load_config(RunConfig, None, ["model.timeout_s=3", "model.retries=0", "dollars=1e-2"])
    assert (config.model.timeout_s, config.model.retries, config.dollars) == (3.0, 0, 0.01)


def test_an_unknown_key_is_answered_with_the_known_ones_and_a_guess():
    said = refusal(EvolveConfig, ["gate.alhpa=0.1"])
    assert said.startswith("no setting 'gate.alhpa'.\nSettings: gate.alpha, ")
    assert said.endswith("Did you mean 'gate.alpha'?")


def test_a_value_that_does_not_fit_is_shown_with_its_key():
    said = refusal(EvolveConfig, ["gate.alpha=often"])
    assert said.startswith("gate.alpha: Input should be a valid number")
    assert "'often'" in said


@pytest.mark.parametrize(
    "item",
    ["gate.alpha=0", "gate.alpha=1", "generations=0", "model.retries=-1", "dollars=0"],
)
def test_a_value_out_of_range_is_refused(item):
    assert refusal(EvolveConfig, [item]).startswith(f"{item.split('=')[0]}: Input should be")


def test_all_problems_are_said_at_once(tmp_path):
    file = tmp_path / "seal.toml"
    file.write_text("genrations = 2\n[gate]\nalpha = 7\nscenario = 3\n")
    said = refusal(EvolveConfig, ["budget=none", "patience"], file)
    assert "no setting 'genrations'" in said
    assert "no setting 'gate.scenario'" in said
    assert "gate.alpha: Input should be less than 1" in said
    assert "budget: Input should be a valid integer" in said
    assert "--set patience: write it as key=value" in said


def test_a_value_is_no_table():
    assert "'budget' is a value here" in refusal(EvolveConfig, ["budget=3", "budget.x=1"])
    assert refusal(EvolveConfig, ["gate=3"]).startswith("gate: Input should be")


@pytest.mark.parametrize("item", ["alpha", "=3", ""])
def test_a_set_without_key_and_value_shows_the_form(item):
    assert "write it as key=value" in refusal(EvolveConfig, [item])


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    assert "missing.toml: no settings" in refusal(RunConfig, file=tmp_path / "missing.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("alpha = \n")
    assert "broken.toml: no settings can be read here" in refusal(RunConfig, file=broken)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    assert "binary.toml: no settings" in refusal(RunConfig, file=binary)


def test_a_table_that_says_little_keeps_the_other_defaults_of_its_place():
    config = load_config(EvolveConfig, None, ["rewriter.max_tokens=9"])
    assert (config.rewriter.max_tokens, config.rewriter.temperature) == (9, 0.7)
    assert EvolveConfig().model.temperature != 0.7
    loop = load_config(LoopConfig, None, ["evolve.gate.alpha=0.1"])
    assert loop.evolve.gate == LoopConfig().evolve.gate.model_copy(update={"alpha": 0.1})
    assert loop.evolve.budget == LoopConfig().evolve.budget


def test_the_tables_of_a_training_file_are_read(tmp_path):
    file = tmp_path / "loop.toml"
    file.write_text(
        "test_tasks = 9\n[train]\nsteps = 3\n[train.trl]\nbeta = 0.1\nreport_to = ['none']\n"
        "[evolve]\nbudget = 7\n[evolve.gate]\nscenarios = 5\n"
    )
    config = load_config(LoopConfig, file, ["train.steps=2", "train.trl.optim=sgd"])
    assert (config.train.steps, config.test_tasks) == (2, 9)
    assert config.train.trl == {"beta": 0.1, "report_to": ["none"], "optim": "sgd"}
    assert (config.evolve.budget, config.evolve.gate.scenarios) == (7, 5)


def test_the_loop_has_no_settings_that_it_would_not_heed():
    assert "no setting 'evolve.generations'" in refusal(LoopConfig, ["evolve.generations=2"])
    assert "train.rho: Input should be" in refusal(LoopConfig, ["train.rho=often"])
