"""Our environments in the hands of TRL's own trainer: words, errors and verdicts included."""

from itertools import cycle

import pytest

import seal
from seal.envs import load_environment
from seal.errors import ConfigError
from seal.models.chat import END, START
from tests.factories import WORLD, edited, lamp_tasks, write_environment
from tests.train.bell import TRAINER, bell, ring, small_model, words_of

pytestmark = TRAINER


def schema_of(method) -> dict:
    from transformers.utils import get_json_schema

    return get_json_schema(method)["function"]


def test_a_tool_reads_there_as_it_reads_here():
    world = seal.as_trl_environment("rooms")()
    rendered = load_environment("rooms").renderer.tools(load_environment("rooms").original)
    for name, tool in rendered.items():
        found = schema_of(getattr(world, name))
        assert found["description"] == tool.description
        assert found["parameters"]["required"] == tool.parameters["required"]
        for key, schema in tool.parameters["properties"].items():
            ours = {"type": schema["type"], "description": schema["description"] or key}
            assert found["parameters"]["properties"][key] == ours


def test_evolved_words_are_read_and_an_error_speaks_them():
    template = load_environment("rooms")
    texts = {
        "book_room.affordance": "Only after check_room.",
        "check_room.recovery.refused": "Use one of {allowed}.",
    }
    world = seal.as_trl_environment(template, template.original.with_texts(texts))()
    assert "Only after check_room." in schema_of(world.book_room)["description"]
    world.reset(**world.rows("train")[0])
    said = world.check_room(room="nowhere", day="never")
    assert said.startswith("There is no such room. Use one of ")
    missing = world.check_room(room="nowhere")
    assert "day" in missing


def test_gold_is_rewarded_and_less_is_not(tmp_path):
    World = seal.as_trl_environment(write_environment(tmp_path / "lamp"))  # noqa: N806
    tasks = {task["id"]: task for task in lamp_tasks()}
    for row in World.rows("train") + World.rows("test"):
        gold = [call for turn in tasks[row["task"]]["turns"] for call in turn["gold"]]
        for made in (gold, gold[:-1]):
            world = World()
            world.reset(**row)
            for call in made:
                getattr(world, call["tool"])(**call["arguments"])
            assert world.get_reward() == float(made == gold)


def test_a_world_that_fails_gives_no_reward(tmp_path):
    world = edited(WORLD, "return self.level > 0", "return 1 / self.level > 0")
    World = seal.as_trl_environment(write_environment(tmp_path / "lamp", world=world))  # noqa: N806
    made = World()
    made.reset(**World.rows("train")[0])
    assert made.get_reward() is None


def test_a_name_that_trl_keeps_is_refused(tmp_path):
    world = edited(WORLD, "def plug_in(", "def rows(")
    world = edited(world, 'requires="plug_in"', 'requires="rows"')
    folder = write_environment(tmp_path / "lamp", world=world, tasks=[])
    with pytest.raises(ConfigError, match="TRL keeps the name 'rows' for itself"):
        seal.as_trl_environment(folder)


def test_a_step_of_trls_trainer_calls_the_tools_and_learns(tmp_path, monkeypatch):
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    from seal.models.tiny import tiny_tokenizer
    from tests.benchmarks.sampling import CHAT_TEMPLATE, RESPONSE_TEMPLATE

    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    template = bell(tmp_path / "bell")
    tokenizer = tiny_tokenizer(words_of(template))
    tokenizer.chat_template, tokenizer.response_template = CHAT_TEMPLATE, RESPONSE_TEMPLATE
    calls = cycle([ring(1), ring(5)])
    heard = []

    class Scripted(GRPOTrainer):
        def _generate_single_turn(self, prompt_ids, *_args, **_more):
            texts = tokenizer.batch_decode(prompt_ids)
            heard.extend(texts)
            said = [("Done." if f"{START}tool" in t else next(calls)) + END for t in texts]
            return tokenizer(said, add_special_tokens=False)["input_ids"], None

    World = seal.as_trl_environment(template)  # noqa: N806
    config = GRPOConfig(
        output_dir=str(tmp_path / "out"),
        use_cpu=True,
        bf16=False,
        activation_checkpointing=False,
        per_device_train_batch_size=8,
        num_generations=4,
        max_completion_length=512,
        report_to="none",
        max_steps=1,
        logging_steps=1,
    )
    trainer = Scripted(
        model=small_model(tokenizer),
        args=config,
        train_dataset=Dataset.from_list(World.rows("train")[::2]),
        processing_class=tokenizer,
        environment_factory=World,
    )
    before = {name: weight.clone() for name, weight in trainer.model.named_parameters()}
    trainer.train()
    (figures,) = [line for line in trainer.state.log_history if "rewards/World/mean" in line]
    assert figures["rewards/World/mean"] == 0.5
    assert figures["tools/call_frequency"] > 0
    assert any("That is too often." in text for text in heard)
    after = dict(trainer.model.named_parameters())
    assert any(not after[name].equal(weight) for name, weight in before.items())
