"""Seconds to replay and score gold of all BFCL tasks: our worlds and verifier, the official ones.

Both sides are given every task's reference calls as a policy would have made them, one call a step,
and must execute them in a fresh world and decide whether the task is passed; both run in this
process, in turn. The official checker executes gold beside every rollout anew; here gold's replay
is kept for the tasks at hand, as in every run, so `first` has the seconds of a round that begins
without any. Parsing of reference calls is counted on neither side.
"""

import argparse
import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from seal.envs.bfcl_data import CATEGORIES, package_folder
from seal.envs.registry import load_environment
from seal.envs.verify import GoldReplays, gold_calls, replay, verify


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rounds", type=int, default=7, help="of each side, in turn, after one to warm up"
    )
    parser.add_argument("--worlds", type=int, default=0, help="of ours, to see memory stay flat")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Alternate rounds of both sides; median seconds, and how many times faster ours is."""
    sides = {"ours": our_round(), "official": official_round()}
    first = {side: made() for side, made in sides.items()}["ours"]
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(options.rounds):
        for side, made in sides.items():
            gc.collect()
            seconds[side].append(made())
            print(f"round {number + 1}: {side} {seconds[side][-1]:.2f} s", file=sys.stderr)
    ours, official = (statistics.median(seconds[side]) for side in ("ours", "official"))
    return {
        "ours": round(ours, 4),
        "official": round(official, 4),
        "ratio": round(official / ours, 2),
        "first": round(first, 4),
        "unit": "s of CPU for all tasks",
        "memory": memory(options.worlds) if options.worlds else None,
        "tasks": len(load_environment("bfcl").tasks(None)),
        "rounds": {side: [round(one, 4) for one in found] for side, found in seconds.items()},
    }


def table(result: dict[str, Any]) -> str:
    """The figures for people."""
    lines = [f"{result['tasks']} tasks, {result['unit']}"]
    for side in ("ours", "official"):
        rounds = ", ".join(f"{one:.2f}" for one in result["rounds"][side])
        lines.append(f"{side:9} {result[side]:7.3f}   {rounds}")
    for worlds, megabytes in (result["memory"] or {}).items():
        lines.append(f"after {int(worlds):>7,} worlds of ours: {megabytes:.0f} MB")
    lines.append(f"ratio     {result['ratio']:7.2f}   (first round of ours: {result['first']:.3f})")
    return "\n".join(lines)


def memory(worlds: int) -> dict[int, float]:
    """Megabytes of this process after a tenth, a half and all of so many worlds."""
    template = load_environment("bfcl")
    made = [(task, gold_calls(task)) for task in template.tasks(None)]
    marks = {worlds // 10, worlds // 2, worlds}
    found = {}
    for number in range(1, worlds + 1):
        replay(template, *made[number % len(made)])
        if number in marks:
            gc.collect()
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            found[number] = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    return found


def our_round() -> Callable[[], float]:
    template = load_environment("bfcl")
    made = [(task, gold_calls(task), [""] * len(task.turns)) for task in template.tasks(None)]
    gold = GoldReplays(template)

    def one() -> float:
        begun = time.process_time()
        for task, calls, answers in made:
            score = verify(template, task, gold.of(task), replay(template, task, calls), answers)
            assert score.reward == 1.0, task.id
        return time.process_time() - begun

    return one


def official_round() -> Callable[[], float]:
    package = package_folder()
    sys.path.insert(0, str(package.parent))
    try:
        from bfcl_eval.eval_checker.multi_turn_eval import multi_turn_checker, multi_turn_utils
    finally:
        sys.path.remove(str(package.parent))
    kept = {task.id for task in load_environment("bfcl").tasks(None)}
    made = []
    for category in CATEGORIES:
        name = f"BFCL_v4_multi_turn_{category}.json"
        entries = (package / "data" / name).read_text("utf-8").splitlines()
        answers = (package / "data" / "possible_answer" / name).read_text("utf-8").splitlines()
        for entry, answer in zip(map(json.loads, entries), map(json.loads, answers), strict=True):
            if entry["id"].removeprefix("multi_turn_") in kept:
                gold = answer["ground_truth"]
                steps = [[[call] for call in turn] for turn in gold]
                made.append((steps, gold, entry, f"multi_turn_{category}"))
    instances = vars(multi_turn_utils)
    before = set(instances)
    number = 0

    def one() -> float:
        nonlocal number
        number += 1
        begun = time.process_time()
        for steps, gold, entry, category in made:
            verdict = multi_turn_checker.multi_turn_checker(
                steps, gold, entry, category, f"round{number}"
            )
            assert verdict["valid"], entry["id"]
        seconds = time.process_time() - begun
        # It keeps the instances of every round for good.
        for name in set(instances) - before:
            del instances[name]
        return seconds

    return one
