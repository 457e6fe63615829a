"""New scores for stored rollouts, after a verifier or a gold solution was mended.

A policy acted on what it read. So a rollout may be judged anew only if the world still answers each
of its calls as it did: then nothing but the verdict can have changed. Every call is made again in a
fresh world and compared; if one is answered otherwise, nothing is written.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from seal.diagnose.run import TaskFinder, made_with, misfit, template_of
from seal.envs import EnvironmentTemplate
from seal.envs.verify import (
    Executed,
    Played,
    answer_of,
    finish_turn,
    run_checks,
    verify,
    visible_tools,
)
from seal.errors import ConfigError, EnvironmentFailure
from seal.records import SCHEMA, JsonLines, RunFolder, to_toml, write_text
from seal.rollout.agent import Arena, answer_call
from seal.rollout.run import result_of, summary_json
from seal.rollout.scores import summarize
from seal.types import Record, Rollout, Score, Task, ToolResult

BEFORE = "rollouts.before"
"""The rollouts as they were before they were first judged anew."""


class Rescored(Record):
    """What became of the scores of a run."""

    rollouts: int
    now_pass: tuple[str, ...]
    """Rollouts that pass and did not."""
    now_fail: tuple[str, ...]
    """Rollouts that fail and did not."""
    now_unscored: tuple[str, ...]
    """Rollouts that were scored and cannot be now: gold or the environment breaks."""
    kept: int
    """Rollouts that keep their score: they broke off, or a call ran into the time limit."""
    before: float | None
    """The score of the run as it was."""
    after: float | None

    @property
    def changed(self) -> int:
        """Rollouts with another reward than before."""
        return len(self.now_pass) + len(self.now_fail) + len(self.now_unscored)


@dataclass(frozen=True, slots=True)
class _Judge:
    """Scores rollouts with the environment as it is now."""

    template: EnvironmentTemplate
    arena: Arena
    strict_abstention: bool

    def verdict(self, task: Task, rollout: Rollout) -> dict[str, object]:
        """Score and failure of a rollout whose calls are made again in a fresh world.

        Raises:
            ConfigError: The world answers a call otherwise than it did.
        """
        try:
            return {"score": self._score(task, rollout), "failure": None}
        except EnvironmentFailure as failure:
            return {"score": Score(reward=None), "failure": f"EnvironmentFailure: {failure}"}

    def _score(self, task: Task, rollout: Rollout) -> Score:
        if why := misfit(task, rollout):
            raise _cannot(rollout, why)
        gold = self.arena.gold.of(task)
        world = self.template.new_world(task)
        played = []
        for index, (wanted, turn) in enumerate(zip(task.turns, rollout.turns, strict=True)):
            if wanted.user != turn.user:
                raise _cannot(rollout, f"the user says something else in turn {index} now")
            shown = visible_tools(self.template, task, wanted.hidden)
            executed: list[Executed] = []
            for step in turn.steps:
                for call, before in zip(step.calls, step.results, strict=True):
                    now = answer_call(self.arena, shown, call, executed, world)
                    if difference := _difference(before, now):
                        raise _cannot(rollout, f"turn {index}, {call.tool}: {difference}")
            played.append(finish_turn(world, executed))
        made = Played(tuple(played), run_checks(self.template, task, world))
        answers = [answer_of(turn) for turn in rollout.turns]
        return verify(
            self.template, task, gold, made, answers, strict_abstention=self.strict_abstention
        )


def _difference(before: ToolResult, now: ToolResult) -> str:
    """How a call is answered otherwise than it was; empty if it is not."""
    was = f"failed ({before.error.code})" if before.error else "went through"
    if (before.error is None) != (now.error is None):
        return f"the call {was}, and {'fails' if now.error else 'goes through'} now"
    if before.error and now.error:
        old, new = before.error, now.error
        if (old.kind, old.code, old.argument) != (new.kind, new.code, new.argument):
            return f"the call {was}, and fails otherwise ({new.code}) now"
    return "" if before.content == now.content else "the call is answered with something else now"


def _cannot(rollout: Rollout, why: str) -> ConfigError:
    return ConfigError(
        f"{rollout.id} cannot be judged anew: {why}.\n"
        "What the policy read is not what it would read today, so its calls say nothing about "
        "today's environment; all scores stay as they were.\n"
        "Make the run again with --fresh."
    )


def rescore(
    run: str | Path, progress: Callable[[int, int], None] = lambda _done, _total: None
) -> Rescored:
    """Judge every rollout of a `seal run` anew, and stamp the run with the contract of today.

    The rollouts of the run itself are kept in `rollouts.before.jsonl`, however often it is judged
    anew, those too that it made in between. Whole files are replaced, and a rescoring that was
    killed is done by the same command again.

    Raises:
        ConfigError: There is no such run, nothing in it, its tasks are gone, or its calls are
            answered otherwise.
    """
    folder = RunFolder(Path(run))
    settings = made_with(folder)
    if settings["command"] != "run":
        raise ConfigError(
            f"{folder.path}: made by `seal {settings['command']}`; what it decided rests on the "
            "scores that it had.\nOnly the rollouts of `seal run` can be judged anew. "
            "Start this one over with --fresh."
        )
    with folder.opened(settings):
        template = template_of(folder)
        arena = Arena(template, folder.candidate(settings["candidate"]))
        judge = _Judge(template, arena, bool(settings.get("strict_abstention")))
        lines, kept = folder.lines("rollouts", Rollout), folder.lines(BEFORE, Rollout)
        before: list[Rollout] = list(lines.read())
        if not before:
            raise ConfigError(
                f"{folder.path}: no rollout yet, so there is nothing to judge anew.\n"
                "Run the same `seal run` command again: it resumes."
            )
        stamped = any(rollout.contract == arena.contract_hash for rollout in before)
        after, as_it_was = _judged(judge, before, progress)
        if after != before:
            _keep(kept, before)
            for name in ("diagnoses.jsonl", "profile.json"):
                (folder.path / name).unlink(missing_ok=True)
            lines.rewrite(after)
        elif stamped and settings["contract"] != arena.contract_hash:
            # One that was killed got as far as the rollouts, but not to the settings.
            first = {rollout.id: rollout for rollout in kept.read()}
            before = [first.get(rollout.id, rollout) for rollout in before]
        _bring_in_line(folder, arena)
    return _told(before, after, as_it_was)


def _judged(
    judge: _Judge, rollouts: Sequence[Rollout], progress: Callable[[int, int], None]
) -> tuple[list[Rollout], set[str]]:
    """The rollouts with the scores of today, and the ids of those that keep what they had."""
    finder = TaskFinder(judge.template)
    found, kept = [], set[str]()
    progress(0, len(rollouts))
    for number, rollout in enumerate(rollouts, start=1):
        task = finder.find(rollout.task)
        if task is None:
            raise _cannot(rollout, "there is no such task now")
        update: dict[str, object] = {"contract": judge.arena.contract_hash}
        kept.add(rollout.id)
        if _can_be_judged(rollout, turns=len(task.turns)):
            kept.discard(rollout.id)
            update |= judge.verdict(task, rollout)
        found.append(rollout.model_copy(update=update))
        progress(number, len(rollouts))
    return found, kept


def _keep(kept: JsonLines, rollouts: Sequence[Rollout]) -> None:
    """Put by what is not kept yet; a rollout is known by all but its verdict."""
    known = list(kept.read())
    plays = {_play(one) for one in known}
    new = [one for one in rollouts if _play(one) not in plays]
    if new:
        kept.rewrite([*known, *new])


def _play(rollout: Rollout) -> str:
    return rollout.model_dump_json(exclude={"contract", "score", "failure"})


def _can_be_judged(rollout: Rollout, turns: int) -> bool:
    """Whether a rollout went to its end, and no call was ended by the clock."""
    if rollout.failure is not None and len(rollout.turns) < turns:
        return False
    results = (result for turn in rollout.turns for step in turn.steps for result in step.results)
    return not any(result.error and result.error.code == "time_limit" for result in results)


def _bring_in_line(folder: RunFolder, arena: Arena) -> None:
    """The summary and the settings of a run whose rollouts have other scores now."""
    settings = {**folder.settings(), "contract": arena.contract_hash}
    if folder.finished:
        folder.finish(summary_json(result_of(arena, folder.rollouts())))
    write_text(folder.settings_path, to_toml({"seal": SCHEMA, **settings}))


def _told(
    before: Sequence[Rollout], after: Sequence[Rollout], as_it_was: Collection[str]
) -> Rescored:
    # Of a rollout that was made again the last record counts.
    old, new = ({rollout.id: rollout for rollout in each} for each in (before, after))
    moved = {
        name: one.reward for name, one in sorted(new.items()) if one.reward != old[name].reward
    }
    return Rescored(
        rollouts=len(new),
        now_pass=tuple(name for name, reward in moved.items() if reward == 1.0),
        now_fail=tuple(name for name, reward in moved.items() if reward not in (1.0, None)),
        now_unscored=tuple(name for name, reward in moved.items() if reward is None),
        kept=len(as_it_was),
        before=summarize(list(old.values())).score,
        after=summarize(list(new.values())).score,
    )
