"""What docs, README and examples say holds: code runs, commands parse, names and figures exist."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from seal.cli import app
from seal.config import GateConfig
from seal.envs.slots import BUDGETS, PLACEHOLDERS
from seal.models.simulated import READERS
from seal.types import Kind, Limits

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DESIGN = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
EXAMPLES = {
    "01_look_at_an_environment": r"slots may be rewritten\. Candidate [0-9a-f]{12} changes one:",
    "02_run_and_diagnose": r"gold\s+score 1\.00 .* 40 of 40 scored",
    "03_evolve_the_words": r"difference \+0\.\d\d, 95% \+0\.\d\d to \+0\.\d\d; simulated",
    "04_write_an_environment": r"gold\s+as written\s+100%",
}
COMMANDS = typer.main.get_command(app).commands


def blocks(text, languages):
    """The fenced blocks of some languages, each with the line it begins in."""
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if found[1] in languages:
            yield text[: found.start()].count("\n") + 1, found[2]


def python_blocks():
    return [
        pytest.param(code, id=f"{page.name}:{line}")
        for page in PAGES
        for line, code in blocks(page.read_text(encoding="utf-8"), {"python"})
    ]


def commands_in(text):
    """Every `seal ...` of a text, inline or as a line of a block, without what stands for more."""
    shown = re.findall(
        r"`(seal [a-z][^`\n]*)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    )
    for _, block in blocks(text, {"", "sh", "bash", "console", "text"}):
        lines = block.replace("\\\n", " ").splitlines()
        shown += [
            m[1] for line in lines if (m := re.match(r"(?:\$ )?(?:\S*/)?(seal [a-z].*)", line))
        ]
    return [re.split(r" [|>&;]+ |\.\.\.", re.sub(r"[\[\]…]", "", one))[0].strip() for one in shown]


def all_commands():
    return sorted({one for page in PAGES for one in commands_in(page.read_text(encoding="utf-8"))})


def problem_of(line):
    """Why the command line would not take this, None if it would."""
    _, name, *arguments = shlex.split(line, comments=True)
    if name not in COMMANDS:
        return f"no command {name}"
    if not arguments or "--help" in arguments:
        return None
    try:
        COMMANDS[name].make_context(name, list(arguments))
    except Exception as error:  # noqa: BLE001 - typer's own click, whose name is private
        return f"{type(error).__name__}: {error}"
    return None


def section(number):
    return DESIGN.split(f"\n## {number}. ")[1].split("\n## ")[0]


def slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_offline_and_says_what_it_found(name, tmp_path):
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == EXAMPLES.keys()
    done = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "examples" / f"{name}.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(EXAMPLES[name], done.stdout), done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", python_blocks())
def test_a_python_block_runs(code, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("line", all_commands())
def test_a_command_line_that_is_shown_parses(line):
    assert problem_of(line) is None


@pytest.mark.parametrize(
    "line",
    ["seal chekc rooms", "seal check --modle x rooms", "seal run rooms", "seal fetch bfcl -n 2"],
)
def test_a_command_line_that_is_wrong_is_found(line):
    assert problem_of(line)


def test_command_lines_are_found_wherever_they_stand():
    block = "```sh\n$ seal run rooms \\\n  -m gold | head\n```"
    text = f"Say `seal check rooms`.\n{block}\nAnd `seal log RUN...`"
    assert commands_in(text) == ["seal check rooms", "seal log RUN", "seal run rooms    -m gold"]


def test_every_command_has_its_row():
    rows = section(14)
    assert [name for name in COMMANDS if f"`seal {name} " not in rows] == []


def test_every_diagnosis_kind_has_its_row():
    rows = [row.split("|")[1] for row in section(11).splitlines() if row.startswith("| `")]
    said = re.findall(r"`(\w+)`", " ".join(rows))
    assert sorted(said) == sorted(kind.value for kind in Kind)


def test_slot_budgets_and_placeholders_are_the_ones_in_force():
    rows = section(6)
    for kind, budget in BUDGETS.items():
        assert re.search(rf"\| {kind} \| {budget} \|", rows), kind
    for name in PLACEHOLDERS["recovery"]:
        assert f"`{{{name}}}`" in rows


def test_figures_are_the_ones_in_force():
    readers = section(13)
    for name, reader in READERS.items():
        assert f"| `{name}` | {reader.errs:.2f} | {reader.slips:.2f} |" in readers
    assert f"`steps` (agent messages a turn, {Limits().steps})" in section(5)
    assert f"of a result, {Limits().call_chars:,})" in section(5)
    assert GateConfig().alpha == 0.05
    assert GateConfig().futility_share == 0.75
    assert GateConfig().removal_scenarios == 60


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        other = page.parent / path if path else page
        if re.match(r"[a-z]+:", target):
            continue
        if not other.exists():
            broken.append(target)
        elif anchor:
            headings = re.findall(r"^#+ (.*)$", other.read_text(encoding="utf-8"), re.MULTILINE)
            broken += [target] * (anchor not in map(slug, headings))
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_and_tests_that_are_named_exist(page):
    text = page.read_text(encoding="utf-8")
    files = re.findall(r"`((?:seal|tests|examples|prompts|env_templates)/[a-z0-9_./]+\.\w+)`", text)
    assert [name for name in files if not (ROOT / name).is_file()] == []
    known = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")
    )
    tests = re.findall(r"`(?:[\w/.]+::)?(test_\w+)`", text)
    assert [name for name in tests if f"def {name}(" not in known] == []
