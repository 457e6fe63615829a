"""What an environment says of itself: splits that share nothing, a licence, a description."""

from collections import defaultdict
from collections.abc import Iterator

from seal.envs.template import EnvironmentTemplate
from seal.soundness.finding import Finding, verdict
from seal.types import SPLITS, Split

SPLIT_CLAIM = "splits share no scenario"
LABEL_CLAIM = "licence and description are there"


def splits_apart(template: EnvironmentTemplate) -> Iterator[Finding]:
    """A scenario in two splits would let what was learned in one leak into the other."""
    counts = ", ".join(f"{split} {len(template.tasks(split))}" for split in SPLITS)
    return verdict(SPLIT_CLAIM, f"tasks: {counts}", _split_problems(template))


def _split_problems(template: EnvironmentTemplate) -> Iterator[Finding]:
    splits: dict[str, set[Split]] = defaultdict(set)
    ids: dict[str, int] = defaultdict(int)
    for split in SPLITS:
        for task in template.tasks(split):
            splits[task.scenario].add(split)
            ids[task.id] += 1
    for scenario, found in splits.items():
        if len(found) > 1:
            yield Finding(
                check=SPLIT_CLAIM,
                passed=False,
                message=f"scenario {scenario} is in {' and '.join(sorted(found))}",
                remedy="Give all tasks of a scenario one split, or none: SEAL then chooses.",
            )
    for task_id, count in ids.items():
        if count > 1:
            yield Finding(
                check=SPLIT_CLAIM,
                passed=False,
                message=f"{count} tasks have the id {task_id}",
                remedy="Ids must differ: records are kept by them.",
            )


def labels_there(template: EnvironmentTemplate) -> Iterator[Finding]:
    """Others can only use what says what it is and whose it is."""
    manifest = template.manifest
    wanted = {"licence": 'licence = "CC0-1.0"', "description": 'description = "Lend out books."'}
    problems = (
        Finding(
            check=LABEL_CLAIM,
            passed=False,
            where=str(template.folder / "env.toml"),
            message=f"no {name}",
            remedy=f"Write such as {line}",
        )
        for name, line in wanted.items()
        if not str(getattr(manifest, name)).strip()
    )
    return verdict(LABEL_CLAIM, manifest.licence, problems)
