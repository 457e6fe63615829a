"""What holds of the checks as a whole; what each of them finds is in the corpus."""

from pathlib import Path

from seal.envs import load_environment
from seal.soundness import check_environment
from seal.soundness.leaks import CONDUCT_CLAIM
from tests.factories import WORLD, edited, lamp_tasks, write_environment


def test_every_claim_is_spoken_of_once(tmp_path):
    template = load_environment(write_environment(tmp_path / "lamp"))
    claims = [finding.check for finding in check_environment(template)]
    assert len(claims) == len(set(claims)) == 17


def test_the_environment_of_the_design_page_passes_every_check(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "design.md"
    blocks = page.read_text(encoding="utf-8").split("```python\n")[1:]
    (world,) = [b.partition("```")[0] for b in blocks if "def generate" in b]
    folder = write_environment(tmp_path / "kettle", world=world, tools={}, slots="", tasks=[])
    (folder / "tasks.jsonl").unlink(missing_ok=True)
    for name in (folder, f"{folder}@1"):
        assert [f.message for f in check_environment(load_environment(name)) if not f.passed] == []


def test_a_loop_that_never_ends_is_named_and_ends_the_checks(tmp_path):
    world = edited(WORLD, "        self.level = level\n", "        while True:\n            pass\n")
    folder = write_environment(tmp_path / "lamp", world=world, tasks=lamp_tasks(4))
    *before, last = check_environment(load_environment(folder))
    assert all(finding.passed for finding in before)
    assert (last.check, last.passed) == (CONDUCT_CLAIM, False)
    assert last.message.startswith("dim was still at work after 2 s")
    assert last.where in (f"{folder}/env.py:38", f"{folder}/env.py:39")
