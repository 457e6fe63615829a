"""`seal report`: what stands on the page, and what text of strangers cannot do there."""

import json
import re

import pytest

import seal
from seal.cli import main
from seal.models.gold import GoldPolicy
from seal.records import RunFolder
from seal.report.html import write_report
from seal.rollout.scores import summarize
from seal.types import Kind, Rollout
from tests.report.pages import (
    EVOLVED,
    ORIGINAL,
    Page,
    Talker,
    evolution,
    generations,
    make_evolution,
    make_run,
    page_of,
    patch,
)


@pytest.fixture
def command(capsys):
    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


# A run


def test_a_run_says_its_score_by_group_its_profile_and_its_failed_rollouts(tmp_path):
    run = make_run(tmp_path)
    summary = summarize(list(RunFolder(run).lines("rollouts", Rollout).read()))
    page = page_of(run)
    assert page.html.startswith("<!doctype html>")
    assert "talker on lamp" in page.text
    assert f"Mean score {summary.score:.2f} 95% interval" in page.text
    assert f"Scored {summary.scored} of {summary.total} rollouts" in page.text
    for group, score in summary.groups.items():
        assert re.search(rf"\b{group} {score:.2f}", page.text)
    profile = seal.diagnose(run).profile
    row = profile.rows[0]
    assert (row.tool, row.kind) == ("plug_in", Kind.REFUSED)
    assert "plug_in.socket refused code taken" in page.text
    assert 'href="#example-1"' in page.html
    assert 'id="example-1"' in page.html
    assert "The fault: refused of plug_in.socket" in page.text
    assert "The tool understood the call and said no." in page.text


def test_a_run_is_diagnosed_once(tmp_path):
    run = make_run(tmp_path)
    write_report(run)
    kept = (run / "diagnoses.jsonl").stat().st_mtime_ns
    write_report(run)
    assert (run / "diagnoses.jsonl").stat().st_mtime_ns == kept


def test_diagnoses_of_other_rollouts_are_not_believed(tmp_path):
    run = make_run(tmp_path)
    seal.diagnose(run)
    lines = (run / "diagnoses.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (run / "diagnoses.jsonl").write_text("".join(lines[:3]), encoding="utf-8")
    write_report(run)
    assert (run / "diagnoses.jsonl").read_text(encoding="utf-8") == "".join(lines)


def test_a_page_is_the_same_whenever_it_is_made(tmp_path):
    run = make_run(tmp_path)
    assert page_of(run).html == page_of(run).html
    assert str(tmp_path) not in page_of(run).html


def test_unscored_rollouts_are_counted_and_no_zero(tmp_path):
    run = make_run(tmp_path, policy=GoldPolicy())
    lines = (run / "rollouts.jsonl").read_text(encoding="utf-8").splitlines()
    broken = json.loads(lines[1]) | {"failure": "lamp: the world broke"}
    broken["score"] = {"reward": None, "checks": []}
    lines[1] = json.dumps(broken)
    (run / "rollouts.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    text = page_of(run).text
    assert "Mean score 1.00" in text
    assert "Scored 5 of 6 rollouts" in text
    assert "With unscored rollouts counted as failures the score is 0.83" in text
    assert "1 × lamp: the world broke" in text
    assert "Reference solution." in text


def test_an_unfinished_run_reports_what_is_there(tmp_path, command):
    run = make_run(tmp_path)
    (run / "result.json").unlink()
    lines = (run / "rollouts.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (run / "rollouts.jsonl").write_text("".join(lines[:4]), encoding="utf-8")
    code, out, err = command("report", run)
    assert (code, out) == (0, f"{run / 'report.html'}\n")
    assert "unfinished" in err
    assert "Unfinished. 3 of 6 rollouts are there" in page_of(run).text


def test_a_run_whose_environment_has_changed_still_has_its_scores(tmp_path):
    run = make_run(tmp_path)
    world = tmp_path / "lamp" / "env.py"
    world.write_text(
        world.read_text(encoding="utf-8").replace("self.level = 0", "self.level = 1"),
        encoding="utf-8",
    )
    tasks = tmp_path / "lamp" / "tasks.jsonl"
    tasks.write_text(tasks.read_text(encoding="utf-8").replace("half", "50"), encoding="utf-8")
    text = page_of(run).text
    assert "Mean score" in text
    assert "This run could not be diagnosed" in text
    assert "have changed since" in text


@pytest.mark.parametrize(
    ("policy", "label"),
    [("sim:novice", "Simulated policy."), ("gold", "Reference solution.")],
)
def test_a_policy_that_is_no_model_is_labelled(tmp_path, policy, label):
    assert label in page_of(make_run(tmp_path, policy=policy)).text


def test_a_model_has_no_such_label(tmp_path):
    text = page_of(make_run(tmp_path, policy=Talker())).text
    assert "Simulated policy." not in text


# An evolution


def test_the_headline_is_original_against_evolved_words(tmp_path):
    text = page_of(make_evolution(tmp_path / "run", evolution())).text
    assert "Original words 0.22 95% interval 0.17 to 0.28" in text
    assert "Evolved words 0.91 95% interval 0.85 to 0.94" in text
    assert "Difference +0.69 95% interval +0.62 to +0.75" in text
    assert "Scenarios 50" in text
    assert "scores higher with the evolved words" in text
    assert "761 of 6,000 rollouts" in text
    assert "Test split 100 rollouts, outside the budget" in text
    assert "Money in all $1.75" in text
    assert "Simulated policy." in text


@pytest.mark.parametrize(
    ("low", "high", "unscored", "said"),
    [
        (-0.3, -0.1, 0, "scores lower with the evolved words"),
        (-0.1, 0.1, 0, "No clear difference"),
        (0.1, 0.3, 1, "scores higher"),
        (0.1, 0.3, 2, "Undecided: 2 scenarios"),
    ],
)
def test_the_headline_claims_no_more_than_its_interval(tmp_path, low, high, unscored, said):
    test = evolution().test.model_copy(update={"low": low, "high": high, "unscored": unscored})
    assert said in page_of(make_evolution(tmp_path / "run", evolution(test=test))).text


def test_words_that_stayed_the_same_claim_nothing(tmp_path):
    found = evolution(candidate=ORIGINAL.id, generations=())
    text = page_of(make_evolution(tmp_path / "run", found)).text
    assert "No rewrite was kept" in text
    assert "The words in force are the author’s original words." in text
    assert "Test split 50 rollouts" in text


def test_every_patch_is_there_with_its_change_rationale_evidence_and_verdict(tmp_path):
    page = page_of(make_evolution(tmp_path / "run", evolution()))
    articles = re.findall(r'<article class="patch">.*?</article>', page.html, re.DOTALL)
    patches = [patch for generation in generations() for patch in generation.patches]
    assert len(articles) == len(patches) + 2  # and the two final words
    for patch_, article in zip(patches, articles, strict=False):
        text = Page(article).text
        assert patch_.rationale in text
        assert f"row of {patch_.slot}: 40% of failed rollouts (8), such as t-1#0, t-2#0" in text
        assert f" {patch_.verdict}" in text
        assert patch_.reason in text
        assert (patch_.support or "") in text
        assert "+after: " in text


def test_a_change_is_marked_by_signs_and_elements_and_not_by_colour_alone(tmp_path):
    first, second = generations()
    change = patch("a.affordance", before="Use a room here.", after="Use a red room here.")
    emptied = patch("c", before="kept", after="")
    first = first.model_copy(update={"patches": (change, emptied)})
    found = evolution(generations=(first, second))
    page = page_of(make_evolution(tmp_path / "run", found))
    assert "−before: Use a room here." in page.lines
    assert "+after: Use a red room here." in page.lines
    assert "Use a <ins>red </ins>room here." in page.html
    assert '<del class="whole">kept</del>' in page.html
    assert "+(now empty)" in page.lines


def test_every_test_is_there_with_its_figures_and_an_interval_against_zero(tmp_path):
    page = page_of(make_evolution(tmp_path / "run", evolution()))
    gates = [gate for generation in generations() for gate in generation.gates]
    rows = re.findall(
        r"<tr>\n<th scope=\"row\">(?:(?!</tr>).)*needed.*?</tr>", page.html, re.DOTALL
    )
    texts = [Page(row).text for row in rows]
    assert len(rows) == len(gates)
    assert "bundle 1: 3 patches" in texts[0]
    assert "+0.80 (+0.53 to +1.00)" in texts[0]
    assert "8 / 1" in texts[0]
    assert "56.8 of 40 needed" in texts[0]
    assert "no clear difference" in texts[1]
    assert "patch stays" in texts[2]
    assert "11 / 2" in texts[2], "of a removal, the wins speak for the patch"
    assert "patch taken back" in texts[3]
    assert "2,400 of 40 needed" in texts[3]
    assert "half 1: 1 patch" in texts[4]
    assert "no scenario scored" in texts[4]
    assert "3 unscored" in texts[4]
    assert sum('class="zero"' in row for row in rows) == len(gates) - 1


def test_final_words_and_lost_seeds_are_listed(tmp_path):
    page = page_of(make_evolution(tmp_path / "run", evolution()))
    final = page.text.partition("The final words")[2].partition("Seed texts")
    assert "Call b first." in final[0]
    assert "Use {unit}." in final[0]
    assert "generation 0, own evidence" in final[0]
    assert "a.affordance: Ask the a first." in final[2]


def test_an_unfinished_evolution_shows_its_generations_and_no_result(tmp_path, command):
    run = make_evolution(tmp_path / "run", None)
    code, _, err = command("report", run)
    text = page_of(run).text
    assert code == 0
    assert "unfinished" in err
    assert "2 generations are over" in text
    assert "Generation 1: 0 of 1 patch accepted" in text
    assert "Result on the test split" not in text


def test_the_text_of_an_evolution_is_as_it_was(tmp_path, golden):
    page = page_of(make_evolution(tmp_path / "run", evolution()))
    golden("report_evolution.txt", "\n".join(page.lines) + "\n")


def test_a_real_evolution_can_be_reported(tmp_path):
    from seal.config import EvolveConfig
    from tests.factories import lamp_tasks, write_environment

    folder = write_environment(tmp_path / "lamp", tasks=lamp_tasks(80))
    out = tmp_path / "run"
    seal.evolve(
        folder,
        "sim:novice",
        config=EvolveConfig(generations=2, budget=400, profile_tasks=20),
        options=seal.EvolveOptions(out=out),
    )
    page = page_of(out)
    assert "Generation 0:" in page.text
    assert "What went wrong in the train rollouts" in page.text


# The command


def test_json_is_the_path_of_the_page(tmp_path, command):
    run, out = make_evolution(tmp_path / "run", evolution()), tmp_path / "pages" / "one.html"
    code, said, err = command("report", run, "--out", out, "--json")
    assert (code, json.loads(said), err) == (0, {"report": str(out)}, "")
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert not (run / "report.html").exists()


def test_a_folder_that_is_no_run_exits_2(tmp_path, command):
    code, out, err = command("report", tmp_path)
    assert (code, out) == (2, "")
    assert "no run here" in err


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("run.toml", "seal = 1", "seal = 9", "schema version 9"),
        ("run.toml", '"evolve"', '"check"', "made by `seal check`, which has no report"),
        ("profile.json", '"seal": 1', '"seal": 9', "schema version 9"),
        ("profile.json", '"rows"', '"lines"', "no profile can be read here"),
        ("result.json", '"budget"', '"purse"', "no result of `seal evolve` can be read here"),
        ("result.json", "{", "[", "no JSON can be read here"),
    ],
)
def test_a_record_that_cannot_be_read_exits_2_and_says_which(
    tmp_path, command, name, old, new, said
):
    run = make_evolution(tmp_path / "run", evolution())
    path = run / name
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    code, _, err = command("report", run)
    assert code == 2
    assert said in err
    assert str(path) in err or str(run) in err
    assert not (run / "report.html").exists()


def test_a_run_with_nothing_in_it_yet_exits_2(tmp_path, command):
    run = make_run(tmp_path)
    for name in ("result.json", "rollouts.jsonl"):
        (run / name).unlink()
    evolve = make_evolution(tmp_path / "evolve", None)
    (evolve / "generations.jsonl").unlink()
    for folder, said in ((run, "no rollout yet"), (evolve, "no generation is over yet")):
        code, _, err = command("report", folder)
        assert code == 2
        assert said in err
        assert "it resumes" in err


def test_a_page_that_cannot_be_written_exits_3(tmp_path, command):
    run = make_evolution(tmp_path / "run", evolution())
    (tmp_path / "file").write_text("", encoding="utf-8")
    code, _, err = command("report", run, "--out", tmp_path / "file" / "page.html")
    assert code == 3
    assert "page.html" in err
    assert EVOLVED.id not in err
