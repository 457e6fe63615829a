"""The report of a training run: four scores, the course of training, and what it never shows."""

import itertools
import json
import re
from pathlib import Path

import pytest

from seal.config import LoopConfig
from seal.errors import ConfigError
from seal.evolve.lineage import Generation
from seal.loop.outcome import Checkpoint, FinalScores, Stage, StepFigures, Training
from seal.records import RunFolder
from seal.report.charts import curve
from seal.report.train_story import shown_policy
from seal.rollout.scores import PairedSummary, ScoreSummary
from seal.types import Candidate, Usage
from tests.report.pages import EVIL, EVOLVED, ORIGINAL, Page, gate, generations, page_of, patch

BASE = "local:/home/somebody/cache/tiny-thing-1f"


def score(value: float | None) -> ScoreSummary:
    low, high = (None, None) if value is None else (max(0, value - 0.05), min(1, value + 0.05))
    scored = 0 if value is None else 80
    return ScoreSummary(score=value, low=low, high=high, scored=scored, total=80, bound=value)


def pair(effect: float, low: float, high: float) -> PairedSummary:
    return PairedSummary(
        effect=effect,
        low=low,
        high=high,
        pairs=80,
        unscored=0,
        first=0.2,
        second=0.2 + effect,
        shared=80,
        left_out=0,
    )


CHECKPOINTS = tuple(
    Checkpoint(number=n, steps=2 * n, policy_version=f"v{n}", validation=score(value))
    for n, value in enumerate((0.21, 0.43, 0.38))
)
STEPS = tuple(
    StepFigures(
        step=n,
        generation=n // 2,
        candidate=EVOLVED.id,
        policy_version=f"s{n}",
        rollouts=64,
        figures={"mean_score": 0.31 + n / 10, "mixed_groups": 0.625, "sampled_tokens": 9120.0},
    )
    for n in range(4)
)


def standing() -> tuple[Generation, ...]:
    """Generations of which the second retires a text of the first."""
    first, second = generations()
    retired = patch(
        "b.constraint.x",
        before="Use {unit}.",
        after="",
        verdict="retired",
        reason="retired: all of 40 scenarios end alike",
        support=None,
        evidence=(),
    )
    test = gate("standing", "b.constraint.x", verdict="refused", effect=0.0, low=-0.07, high=0.07)
    tried = (retired, *second.patches)
    return first, second.model_copy(update={"patches": tried, "gates": (test, *second.gates)})


def training(**changes: object) -> Training:
    usage = Usage(calls=1200, prompt_tokens=34567, completion_tokens=890)
    found = Training(
        environment="thing",
        policy="local:tiny",
        base=BASE,
        rewriter="offline",
        original=ORIGINAL.id,
        candidate=EVOLVED.id,
        generations=standing(),
        steps=STEPS,
        checkpoints=CHECKPOINTS,
        best=1,
        changed=("a.affordance",),
        dropped_seeds=("a.affordance",),
        test=FinalScores(
            base_original=score(0.22),
            base_evolved=score(0.61),
            trained_original=score(0.47),
            trained_evolved=score(0.74),
            training=pair(0.25, 0.17, 0.33),
            words=pair(0.39, 0.28, 0.5),
            trained_words=pair(0.27, 0.15, 0.39),
            both=pair(0.52, 0.4, 0.64),
            hint_reliance=0.364865,
        ),
        rollouts=761,
        budget=2400,
        usage=usage,
        rewriter_usage=usage,
        stages=(
            Stage(name="warm start", seconds=301.0),
            Stage(name="baseline", generation=0, seconds=12.4),
            Stage(name="train", generation=1, seconds=77.0),
            Stage(name="test", seconds=41.0),
        ),
    )
    return found.model_copy(update=changes)


def make_training(
    path: Path, found: Training | None, *, words: Candidate = EVOLVED, model: str = "local:tiny"
) -> Path:
    """A train folder with these records; unfinished where there is no result."""
    folder = RunFolder(path)
    config = LoopConfig().model_dump(exclude_none=True)
    config["train"] |= {"generations": 2, "steps": 2}
    settings = {
        "command": "train",
        "environment": "thing",
        "folder": str(path / "nowhere"),
        "contract": "0123456789abcdef",
        "candidate": ORIGINAL.id,
        "policy": model,
        "policy_version": "tiny",
        "rewriter": "offline",
        "seed": 0,
        "sampling": {"temperature": 0.0, "max_tokens": 192},
        "config": config,
    }
    made = found or training()
    with folder.opened(settings):
        folder.save_candidate(ORIGINAL)
        folder.save_candidate(words)
        folder.lines("generations", Generation).append(*made.generations)
        folder.lines("checkpoints", Checkpoint).append(*made.checkpoints)
        folder.lines("steps", StepFigures).append(*made.steps)
        if found is not None:
            folder.finish(found.model_dump(mode="json"))
    return path


def test_the_headline_is_trained_over_base_on_the_original_words(tmp_path: Path):
    text = page_of(make_training(tmp_path / "run", training())).text
    assert "Base policy 0.22 original words, 0.17 to 0.27" in text
    assert "Trained policy 0.47 original words, 0.42 to 0.52" in text
    assert "Difference +0.25 95% interval +0.17 to +0.33" in text
    assert "The trained policy scores higher on the original words" in text


@pytest.mark.parametrize(
    ("effect", "said"),
    [
        ((-0.2, -0.3, -0.1), "The trained policy scores lower on the original words"),
        ((0.02, -0.06, 0.1), "No clear difference on the original words"),
    ],
)
def test_a_gain_is_claimed_only_where_there_is_one(tmp_path: Path, effect, said: str):
    found = training()
    test = found.test.model_copy(update={"training": pair(*effect)})
    text = page_of(make_training(tmp_path / "run", training(test=test))).text
    assert said in text
    assert "scores higher" not in text


def test_a_base_policy_that_was_kept_is_no_gain(tmp_path: Path):
    text = page_of(make_training(tmp_path / "run", training(best=0))).text
    assert "the comparison is of one thing with itself" in text


def test_all_four_scores_and_all_four_differences_stand_there(tmp_path: Path):
    text = page_of(make_training(tmp_path / "run", training())).text
    for policy, words, value in [
        ("base", "original", "0.22"),
        ("base", "evolved", "0.61"),
        ("trained", "original", "0.47"),
        ("trained", "evolved", "0.74"),
    ]:
        assert re.search(rf"\b{policy} {words} {value} 0\.\d\d to 0\.\d\d 80 of 80", text)
    for shown in ("+0.25 (+0.17 to", "+0.39 (+0.28 to", "+0.27 (+0.15 to", "+0.52 (+0.40 to"):
        assert shown in text
    assert "Hint reliance of the trained policy: 0.36" in text


def test_the_course_of_training_is_drawn_and_told(tmp_path: Path):
    page = page_of(make_training(tmp_path / "run", training()))
    assert "step 2: 0.41" in page.text
    assert "checkpoint 1: 0.43" in page.text
    assert "1 best 2 0.43" in page.text, "the chosen checkpoint is marked in the table"
    assert re.search(rf"3 1 {EVOLVED.id} 64 0\.51 62% 9,120", page.text)
    dots = [a["cx"] for tag, a in page.tags if tag == "circle" and a["class"] == "dot"]
    assert {"0.0%", "50.0%", "100.0%"} <= set(dots)


def test_a_curve_keeps_to_its_field():
    found = curve([(0, (0.0, 0.25, 0.5), "a"), (3, (0.9, 1.0, 1.2), "b")], 6)
    first, second = found.points
    assert (first.x, first.y, first.top, first.bottom) == (0.0, 75.0, 50.0, 100.0)
    assert (second.x, second.y, second.top) == (50.0, 0.0, 0.0)
    assert [(line.x1, line.y1, line.x2, line.y2) for line in found.lines] == [(0, 75, 50, 0)]
    assert curve([], 0).lines == ()


def test_every_patch_is_there_and_a_retired_text_with_its_test(tmp_path: Path):
    text = page_of(make_training(tmp_path / "run", training())).text
    for verdict, slot in [("✓ accepted", "a.affordance"), ("↩ retired", "b.constraint.x")]:
        assert f"{slot} {verdict}" in text
    assert "standing 1: 1 patch b.constraint.x ↩ retired so it is" in text
    assert "retired: all of 40 scenarios end alike" in text


def test_an_unfinished_run_says_how_far_it_is(tmp_path: Path):
    page = page_of(make_training(tmp_path / "run", None))
    assert "Unfinished. 3 checkpoints are evaluated, 4 of 4 steps are made" in page.text
    assert "Result on the test split" not in page.text
    assert "The course of training" in page.text


def test_what_was_done_again_after_a_kill_counts_once(tmp_path: Path):
    run = make_training(tmp_path / "run", None)
    RunFolder(run).lines("steps", StepFigures).append(STEPS[3])
    assert "256 rollouts in 4 steps" in page_of(run).text


def test_nothing_evaluated_is_nothing_to_report(tmp_path: Path):
    run = make_training(tmp_path / "run", None)
    (run / "checkpoints.jsonl").unlink()
    with pytest.raises(ConfigError, match="nothing is evaluated yet"):
        page_of(run)


def test_unscored_is_no_zero(tmp_path: Path):
    test = training().test.model_copy(
        update={"trained_original": score(None), "hint_reliance": None}
    )
    text = page_of(make_training(tmp_path / "run", training(test=test))).text
    assert "Trained policy none original words, none" in text
    assert "Hint reliance" not in text


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("local:tiny", "local:tiny"),
        ("local:smollm2+/cache/starts/smollm2-1f", "local:smollm2+smollm2-1f"),
        ("local:org/model+./a/b", "local:org/model+b"),
        ("local:~/models/mine", "local:mine"),
    ],
)
def test_folders_of_this_machine_are_left_out(name: str, shown: str):
    assert shown_policy(name) == shown


def test_no_folder_of_this_machine_is_on_the_page(tmp_path: Path):
    run = make_training(tmp_path / "run", training())
    assert "somebody" not in page_of(run).html
    assert str(tmp_path) not in page_of(run).html
    assert page_of(run).html == page_of(run).html


def test_text_of_strangers_stays_text_and_the_page_reaches_for_nothing(tmp_path: Path):
    words = ORIGINAL.with_texts({"a.affordance": EVIL})
    first, second = standing()
    evil = patch(EVIL, before=EVIL, after=f"{EVIL} more", rationale=EVIL, reason=EVIL)
    first = first.model_copy(update={"patches": (evil,), "reason": EVIL})
    second = second.model_copy(update={"candidate": words.id})
    found = training(generations=(first, second), base=f"local:{EVIL}")
    page = page_of(make_training(tmp_path / "run", found, words=words, model=EVIL))
    check_page(page)
    assert "<script" not in page.html.lower()
    assert "\u202e" not in page.html


def check_page(page: Page) -> None:
    """Nothing is loaded, headings go down step by step, and every picture has a name."""
    for tag, attributes in page.tags:
        assert not set(attributes) & {"src", "style", "srcset", "action"}, f"<{tag}>"
        assert not any(name.startswith("on") for name in attributes), f"<{tag}>"
    assert not re.search(r"(https?:)?//|url\(|@import", page.html)
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert all("scope" in attributes for tag, attributes in page.tags if tag == "th")
    pictures = [attributes for tag, attributes in page.tags if tag == "svg"]
    assert all("aria-label" in one or "aria-hidden" in one for one in pictures)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_the_page_is_accessible(tmp_path: Path):
    check_page(page_of(make_training(tmp_path / "run", training())))


def test_a_result_of_another_version_is_named(tmp_path: Path):
    run = make_training(tmp_path / "run", training())
    (run / "result.json").write_text(json.dumps({"best": 1}), encoding="utf-8")
    with pytest.raises(ConfigError, match="no result of `seal train` can be read"):
        page_of(run)
