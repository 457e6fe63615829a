"""Tokens sampled in a second of rollouts: our sampler and rollout loop against TRL's.

Theirs is `GRPOTrainer` with `environment_factory`, its own generation path and tool loop as they
stand. Both sides have in common: the weights (one model object) and their dtype, the threads, the
tasks and how often each is tried, the text of prompts, calls and results to the token, the worlds
behind the tools with the words of their errors, the temperature, the tokens of a reply, the replies
of a task. What is counted is sampled tokens alone; what is timed is all between the prompts and the
last rollout's end, with everything that must be computed anew after a step of training: our stored
prompts are dropped before each round.

What TRL's loop does not allow is left out on both sides: it knows one user message a task, so tasks
end with their first turn. What remains different:

- A call that cannot be read ends a rollout there; here the policy is told, and goes on.
- We verify rollouts and keep log-probs meanwhile; their path does neither at this point.
- They bound the tokens of a reply by `generation_kwargs`, as their own bound is of all tokens.
- Draws differ, and so do lengths: that is why tokens are counted and not rollouts.

Where it comes from: they compute every prompt anew for every rollout and after every call, and all
rollouts of a batch wait for the longest reply. So the ratio grows with the rollouts of a round and
with the calls of a rollout. `--cache static` gives TRL transformers' static cache, which decodes
faster on some machines.
"""

import argparse
import copy
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

from seal.envs.template import load_template
from seal.models.chat import CALL, CALL_END, END, START, prompt_text
from seal.models.local import LocalPolicy
from seal.models.weights import load_weights, split_name
from seal.resources import resource_folder
from seal.rollout.agent import Arena
from seal.rollout.batch import Job, RolloutSettings, roll_out_all
from seal.train.elsewhere import as_trl_environment
from seal.types import Sampling, Task

CHAT_TEMPLATE = (
    "{%- for m in messages %}{{ '"
    + START
    + "' + m.role + '\n' + m.content }}{% for call in m.tool_calls or [] %}{{ '"
    + CALL
    + '{"name": "\' + call.function.name + \'", "arguments": \' }}'
    + "{{ call.function.arguments | tojson }}{{ '}"
    + CALL_END
    + "' }}{% endfor %}{{ '"
    + END
    + "\n' }}{% endfor %}{% if add_generation_prompt %}{{ '"
    + START
    + "assistant\n' }}{% endif %}"
)
"""Our chat format for TRL; the tools stand in the system message, which the data brings."""
RESPONSE_TEMPLATE = {
    "defaults": {"role": "assistant"},
    "start_anchor": f"{START}assistant\n",
    "fields": {
        "tool_calls": {
            "open": CALL,
            "close_pattern": rf"{CALL_END}\s*",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close_pattern": r"<\|im_end\|>\s*", "content": "text"},
    },
}
TYPES = {"integer": int, "number": float, "boolean": bool, "string": str}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default="local:smollm2", help="local:NAME_OR_PATH[+ADAPTER]")
    parser.add_argument("--environment", default="rooms", help="a name of our own")
    parser.add_argument("--tasks", type=int, default=4, help="tasks a round")
    parser.add_argument("--samples", type=int, default=8, help="rollouts of each task")
    parser.add_argument("--tokens", type=int, default=48, help="of a reply, at most")
    parser.add_argument("--rounds", type=int, default=3, help="of each side, in turn")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--dtype", default="", help="such as float32; else as SEAL loads the model")
    parser.add_argument("--cache", default=None, help="TRL's cache_implementation")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Alternate rounds of both sides; the medians, in tokens a second, and their ratio."""
    import torch

    os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
    torch.manual_seed(0)
    model, tokenizer = load_weights(*split_name(options.model))
    if options.dtype:
        model = model.to(getattr(torch, options.dtype))
    arena, tasks = tasks_of_one_turn(options)
    sides = {
        "ours": our_round(options, model, tokenizer, arena, tasks),
        "trl": their_round(options, model, tokenizer, arena, tasks),
    }
    rates: dict[str, list[float]] = {side: [] for side in sides}
    counts: dict[str, list[int]] = {side: [] for side in sides}
    for number in range(options.rounds):
        for side, made in sides.items():
            tokens, seconds = made(number)
            rates[side].append(tokens / seconds)
            counts[side].append(tokens)
            told = f"round {number + 1}: {side} {tokens} tokens in {seconds:.1f} s"
            print(told, file=sys.stderr, flush=True)
    ours, trl = (statistics.median(rates[side]) for side in ("ours", "trl"))
    return {
        "ours": round(ours, 2),
        "trl": round(trl, 2),
        "ratio": round(ours / trl, 2),
        "unit": "sampled tokens/s",
        "rounds": {side: [round(rate, 2) for rate in rates[side]] for side in sides},
        "tokens": counts,
        "batch": options.tasks * options.samples,
        "dtype": str(model.dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(),
        "model": options.model,
    }


def table(result: Mapping[str, Any]) -> str:
    """The figures for people."""
    lines = [
        f"{result['model']}, {result['dtype']}, {result['threads']} threads, "
        f"{result['batch']} rollouts a round",
        f"{'':6} {result['unit']:>16}   rounds",
    ]
    for side in ("ours", "trl"):
        rounds = ", ".join(f"{rate:.1f}" for rate in result["rounds"][side])
        lines.append(f"{side:6} {result[side]:16.1f}   {rounds}")
    return "\n".join([*lines, f"{'ratio':6} {result['ratio']:16.2f}"])


def tasks_of_one_turn(options: argparse.Namespace) -> tuple[Arena, list[Task]]:
    """The environment under its original words, and train tasks cut after their first turn."""
    defaults = resource_folder("env_templates")
    template = load_template(defaults / options.environment, defaults)
    whole = [task for task in template.tasks("train") if task.turns[0].gold]
    cut = [task.model_copy(update={"turns": task.turns[:1]}) for task in whole[: options.tasks]]
    return Arena(template), cut


Round = Callable[[int], tuple[int, float]]
"""From its number to sampled tokens and seconds."""


def our_round(
    options: argparse.Namespace, model: Any, tokenizer: Any, arena: Arena, tasks: list[Task]
) -> Round:
    jobs = [Job(task, sample) for task in tasks for sample in range(options.samples)]
    policy = LocalPolicy("local:ours", "0", model, tokenizer, rows=len(jobs))
    sampling = Sampling(temperature=options.temperature, max_tokens=options.tokens)

    def one(number: int) -> tuple[int, float]:
        policy.refresh(str(number))
        begun = time.perf_counter()
        settings = RolloutSettings(seed=number, sampling=sampling)
        outcomes = list(roll_out_all(arena, jobs, policy, settings))
        seconds = time.perf_counter() - begun
        assert all(outcome.rollout.reward is not None for outcome in outcomes)
        return sum(o.rollout.usage.completion_tokens for o in outcomes), seconds

    return one


def their_round(
    options: argparse.Namespace, model: Any, tokenizer: Any, arena: Arena, tasks: list[Task]
) -> Round:
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    last: list[tuple[int, float]] = []

    class Timed(GRPOTrainer):
        def _generate(self, prompts: list) -> tuple:
            begun = time.perf_counter()
            made = super()._generate(prompts)
            seconds = time.perf_counter() - begun
            last.append((sum(sum(mask) for mask in made[2]), seconds))
            return made

    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.chat_template, tokenizer.response_template = CHAT_TEMPLATE, RESPONSE_TEMPLATE
    rows = [{"prompt": messages(arena, task), "task": task.id} for task in tasks]
    batch = options.tasks * options.samples
    config = GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        use_cpu=model.device.type != "cuda",
        bf16=False,
        activation_checkpointing=False,
        per_device_train_batch_size=batch,
        num_generations=options.samples,
        max_completion_length=4096,
        max_tool_calling_iterations=arena.template.limits.steps - 1,
        generation_kwargs={"max_new_tokens": options.tokens},
        temperature=options.temperature,
        cache_implementation=options.cache,
        report_to="none",
        max_steps=1,
    )
    trainer = Timed(
        model=model,
        reward_funcs=[lambda completions, **_: [0.0] * len(completions)],
        args=config,
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
        environment_factory=as_trl_environment(arena.template, tasks=tasks),
    )
    inputs = [row for row in rows for _ in range(options.samples)]

    def one(_number: int) -> tuple[int, float]:
        model.train()
        trainer._generate_and_score_completions([dict(row) for row in inputs])
        model.eval()
        return last.pop()

    return one


def messages(arena: Arena, task: Task) -> list[dict[str, str]]:
    """The first messages of a rollout, the tools in the first, as our policies read them."""
    told = prompt_text(arena.prompt, arena.tools.values())
    system = told.removeprefix(f"{START}system\n").removesuffix(f"{END}\n")
    return [
        {"role": "system", "content": system},
        {"role": "user", "content": task.turns[0].user},
    ]
