"""Seconds to execute BFCL rollouts (play and score them) and to diagnose them as they are stored.

The rollouts are those of the simulated novice on all tasks, as many samples as are needed. Each
slice of them is executed by a policy that says again what the novice said, with gold kept as in
every run, and then diagnosed from its records alone: what its calls did is not handed over. The
ratio is diagnosis over execution, so lower is better here; both go through the same rollouts.
"""

import argparse
import gc
import os
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from seal.diagnose import diagnose_rollout
from seal.envs.registry import load_environment
from seal.models.gold import ReplayPolicy
from seal.models.simulated import SimulatedPolicy
from seal.rollout.agent import Arena, roll_out
from seal.types import Rollout, Sampling


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rollouts", type=int, default=10_000)
    parser.add_argument("--slice", type=int, default=250, help="rollouts before sides change")
    parser.add_argument("--failed", action="store_true", help="none but failed rollouts")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Alternate slices of both sides; the seconds of CPU that each took in all."""
    arena = Arena(load_environment("bfcl"), contract_hash="benchmark")
    tasks = {task.id: task for task in arena.template.tasks(None)}
    seconds = {"execute": 0.0, "diagnose": 0.0}
    failed = done = 0
    memory: dict[int, float] = {}
    made_up = novice(arena, options.rollouts, failed=options.failed)
    while rollouts := list(islice(made_up, options.slice)):
        policy = ReplayPolicy("again", rollouts)
        gc.collect()
        begun = time.process_time()
        for one in rollouts:
            made = roll_out(
                arena, tasks[one.task], policy, sample=one.sample, seed=0, sampling=Sampling()
            )
            assert made.rollout.reward == one.reward, one.id
        seconds["execute"] += time.process_time() - begun
        gc.collect()
        begun = time.process_time()
        for one in rollouts:
            diagnose_rollout(arena.template, arena.gold, tasks[one.task], arena.candidate, one)
        seconds["diagnose"] += time.process_time() - begun
        failed += sum(one.reward != 1.0 for one in rollouts)
        done += len(rollouts)
        memory[done] = megabytes()
        print(f"{done} rollouts, {megabytes():.0f} MB: {seconds}", file=sys.stderr)
    return {
        "execute": round(seconds["execute"], 3),
        "diagnose": round(seconds["diagnose"], 3),
        "ratio": round(seconds["diagnose"] / seconds["execute"], 3),
        "rollouts": done,
        "failed": round(failed / done, 3),
        "unit": "s of CPU",
        "memory": {str(n): round(memory[n]) for n in marks(sorted(memory))},
    }


def novice(arena: Arena, count: int, *, failed: bool) -> Iterator[Rollout]:
    """Rollouts as a run folder has them, the tasks over and over with another sample."""
    tasks = arena.template.tasks(None)
    policy = SimulatedPolicy("novice")
    number = -1
    while count:
        number += 1
        sample, place = divmod(number, len(tasks))
        made = roll_out(
            arena, tasks[place], policy, sample=sample, seed=0, sampling=Sampling()
        ).rollout
        if failed and made.reward == 1.0:
            continue
        count -= 1
        yield Rollout.model_validate_json(made.model_dump_json())


def megabytes() -> float:
    """Of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def marks(counts: list[int]) -> list[int]:
    """A tenth, a half and all, or what is nearest."""
    return sorted({counts[round(share * (len(counts) - 1))] for share in (0.1, 0.5, 1.0)})


def table(result: dict[str, Any]) -> str:
    """The figures for people."""
    lines = [f"{result['rollouts']:,} rollouts, {result['failed']:.0%} of them failed"]
    lines += [f"{side:9} {result[side]:8.2f} s" for side in ("execute", "diagnose")]
    lines += [f"after {int(n):>7,}: {megabytes} MB" for n, megabytes in result["memory"].items()]
    return "\n".join([*lines, f"ratio     {result['ratio']:8.3f}"])
