"""`seal new`, `check`, `fetch`, and what holds for every command: output and exit codes."""

import json
import subprocess
import sys

import pytest

from seal.cli import main
from seal.envs.scaffold import author_lines
from tests.factories import TOML, TOOLS, WORLD, edited, lamp_tasks, write_environment


@pytest.fixture
def seal(capsys):
    """Runs a command in this process; its exit code and what it printed."""

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def broken_gold():
    tasks = lamp_tasks()
    for number in range(0, 40, 4):
        tasks[number]["turns"][0]["gold"][0]["arguments"]["socket"] = "nowhere"
    return tasks


def test_a_sound_environment_exits_0_with_its_counts(seal, tmp_path):
    code, out, err = seal("check", write_environment(tmp_path / "lamp"), "-q")
    assert code == 0
    assert out.splitlines()[0] == "lamp    2 tools    18 slots    40 tasks in 40 scenarios"
    assert out.splitlines()[-1] == "all 17 checks passed"
    assert "live: plug_in.socket.allowed" in out
    assert err == ""


def test_an_unsound_environment_exits_1_and_says_how_to_look(seal, tmp_path):
    folder = write_environment(tmp_path / "lamp", tasks=broken_gold())
    code, out, _ = seal("check", folder)
    assert code == 1
    assert "  FAIL  gold solves every task\n" in out
    assert f"          seal show {folder} --task lamp-" in out
    assert "... and 5 more; see them all with --json" in out
    assert out.splitlines()[-1] == "1 of 17 checks failed"


def test_json_is_a_line_a_finding_and_ends_with_the_summary(seal, tmp_path):
    folder = write_environment(tmp_path / "lamp", tasks=broken_gold())
    code, out, _ = seal("check", folder, "--json")
    *lines, summary = [json.loads(line) for line in out.splitlines()]
    assert code == 1
    assert sum(not line["passed"] for line in lines) == summary["findings"] == 10
    assert (summary["environment"], summary["passed"], summary["failed"]) == ("lamp", False, 1)
    assert summary["facts"]["dim.requires"] == "plug_in"
    assert summary["live"] == ["plug_in.socket.allowed"]


def test_quarantined_tasks_are_listed_and_counted(seal, tmp_path):
    world = edited(
        WORLD,
        "    def reset(",
        "    @classmethod\n    def quarantined(cls):\n"
        "        return tuple(Quarantined(task=f'old-{n}', status='broken', reason='No bulb.',"
        " source='A replay.') for n in range(3))\n\n    def reset(",
    )
    world = edited(
        world, "import Rule, Task", "import Rule, Task\nfrom seal.envs import environment"
    )
    world = edited(world, "(Quarantined(", "(environment.Quarantined(")
    folder = write_environment(tmp_path / "lamp", world=world)
    code, out, _ = seal("check", folder)
    assert code == 0
    assert (
        "  quarantined: 3 broken tasks, in no split; 0 suspect ones, of which nothing is learned\n"
        in out
    )
    assert "    broken  old-0 and 2 more: No bulb.\n" in out
    summary = json.loads(seal("check", folder, "--json")[1].splitlines()[-1])
    assert [one["task"] for one in summary["quarantined"]] == ["old-0", "old-1", "old-2"]


def test_one_unsound_environment_of_several_decides(seal, tmp_path):
    good = write_environment(tmp_path / "good")
    bad = write_environment(tmp_path / "bad", tasks=broken_gold())
    code, out, _ = seal("check", good, bad)
    assert code == 1
    assert out.count("lamp    2 tools") == 2


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (
            {"tools": {"dim": edited(TOOLS["dim"], "parameter_colour", "parameter_color")}},
            ["dim.jinja:3: no parameter 'color' in dim.", "Did you mean 'colour'?"],
        ),
        (
            {"tools": {"dim": TOOLS["dim"] + "\nstray words"}},
            ["dim.jinja:6: text outside a block: 'stray words'."],
        ),
        (
            {"tools": {"dimm": TOOLS["dim"]}},
            ["no tool 'dimm'.", "Did you mean 'dim'?"],
        ),
        (
            {"slots": '[dim.constraint]\ncolor = "Red."\n'},
            ["slots.toml: no slot 'dim.constraint.color'", "Did you mean 'dim.constraint.colour'?"],
        ),
        (
            {"slots": '[dim]\naffordance = "Up to {maximum}."\n'},
            ["no placeholder '{maximum}' "],
        ),
        (
            {"tasks": [{**lamp_tasks()[0], "turn": []}]},
            ["tasks.jsonl:1: turn: no such key.", "Did you mean 'turns'?"],
        ),
        (
            {"tools": {"dim": edited(TOOLS["dim"], "The colour.", "{{ 1 / 0 }}")}},
            ["dim.jinja:3: block parameter_colour: division by zero.", "Names here: affordance,"],
        ),
        ({"toml": edited(TOML, "name", "nam")}, ["env.toml: nam: ", "Did you mean 'name'?"]),
        ({"world": edited(WORLD, "class Lamp(Environment)", "class Lamp")}, ["env.py"]),
    ],
)
def test_a_wrong_template_exits_2_and_says_where(seal, tmp_path, overrides, said):
    folder = write_environment(tmp_path / "lamp", **overrides)
    code, out, err = seal("check", folder, "-q")
    assert code == 2
    assert err == ""
    assert "  FAIL  contract, words and tasks agree" in out
    for words in said:
        assert words in out
    if "tasks" not in overrides:
        code, out, err = seal("show", folder)
        assert (code, out) == (2, "")
        assert err.startswith("seal: ")
        assert all(words in err for words in said)


def test_a_world_that_ends_the_program_exits_2_and_is_named(seal, tmp_path):
    folder = write_environment(tmp_path / "lamp", world=f"raise SystemExit(0)\n{WORLD}")
    code, out, _ = seal("check", folder)
    assert code == 2
    assert f"{folder}/env.py:1: cannot be imported: it ends the program" in out
    assert out.splitlines()[-1] == "1 of 1 checks failed"


def test_a_generator_that_fails_is_a_finding_and_the_next_environment_is_checked(seal, tmp_path):
    head = "    @classmethod\n    def generate(cls, conventions, rng):\n"
    method = f"{head}        yield Task(turn=())\n\n"
    world = edited(WORLD, "    def reset(", f"{method}    def reset(")
    folder = write_environment(tmp_path / "lamp", world=world)
    (folder / "tasks.jsonl").unlink()
    code, out, _ = seal("check", folder, write_environment(tmp_path / "sound"))
    assert code == 3
    assert "  FAIL  tasks can be made\n" in out
    assert f"{folder}/env.py:15: lamp: generate scenario train-0: Task: turns: Field requ" in out
    assert "pydantic.dev" not in out
    assert out.splitlines()[-1] == "all 17 checks passed"


@pytest.mark.parametrize(
    "name", ["env.toml", "env.py", "slots.toml", "tasks.jsonl", "tools/dim.jinja"]
)
def test_a_file_that_is_no_text_exits_2_and_is_named(seal, tmp_path, name):
    folder = write_environment(tmp_path / "lamp")
    (folder / name).write_bytes(b"\xff\xfe\x00")
    code, out, _ = seal("check", folder)
    assert code == 2
    assert f"{folder}/{name}" in out


def test_an_unknown_environment_exits_2_before_anything_is_checked(seal, tmp_path):
    code, out, err = seal("check", write_environment(tmp_path / "lamp"), "roms")
    assert (code, out) == (2, "")
    assert err.startswith("seal: roms: no such environment.\n")
    assert err.endswith("Did you mean 'rooms'?\n")


@pytest.mark.parametrize(
    "arguments", [["chek"], ["check"], ["show", "rooms", "--tsk", "x"], ["fetch", "nothing"]]
)
def test_usage_errors_exit_2_without_a_traceback(seal, arguments):
    code, out, err = seal(*arguments)
    assert (code, out) == (2, "")
    assert err
    assert "Traceback" not in err


def test_debug_shows_the_traceback_and_works_after_the_command(seal):
    code, _, err = seal("check", "roms", "--debug")
    assert code == 2
    assert "Traceback" in err
    assert "seal: roms: no such environment." in err


def test_words_cannot_steer_the_terminal(seal, tmp_path):
    slots = '[dim]\naffordance = "Red \\u001b[31m and \\u202e back."\n'
    _, out, _ = seal("show", write_environment(tmp_path / "lamp", slots=slots))
    assert "Red \\u001b[31m and \\u202e back." in out


def test_a_reader_that_leaves_early_hears_no_complaint(tmp_path):
    folder = write_environment(tmp_path / "lamp")
    code = "import sys; from seal.cli import main; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", code, "show", folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 1


def test_the_version_is_printed(seal):
    assert seal("--version") == (0, "seal 0.1.0\n", "")


def test_a_new_environment_is_small_sound_and_can_be_improved(seal, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = seal("new", "desk")
    assert code == 0
    assert out.endswith("next: seal check desk\n")
    files = [path for path in (tmp_path / "desk").rglob("*") if path.is_file()]
    assert len(files) <= 3
    assert sum(author_lines(path.read_text()) for path in files) <= 25
    assert all(len(line) <= 100 for path in files for line in path.read_text().splitlines())
    for name in ("desk", "desk@7"):
        code, out, _ = seal("check", name)
        assert code == 0, out
    code, out, _ = seal("run", "desk", "-m", "sim:novice", "-n", "30", "--json")
    assert code == 0
    assert 0 < json.loads(out.splitlines()[-1])["score"] < 0.9


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("rooms", "comes with SEAL"),
        ("a desk", "no name for an environment"),
        ("../..", "no name for an environment"),
        ("taken", "it is there already, and nothing of it was changed"),
    ],
)
def test_a_name_that_cannot_be_is_refused_and_nothing_is_written(
    seal, tmp_path, monkeypatch, name, said
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    code, out, err = seal("new", name)
    assert (code, out) == (2, "")
    assert said in err
    assert [path.name for path in tmp_path.rglob("*")] == ["taken"]


def test_a_folder_with_a_space_in_its_path_makes_commands_that_can_be_pasted(seal, tmp_path):
    folder = tmp_path / "my work" / "desk"
    code, out, _ = seal("new", str(folder))
    assert code == 0
    assert f"seal check '{folder}'" in out
    assert f"seal show '{folder}'" in (folder / "env.py").read_text()


def test_a_harmless_call_where_none_is_wanted_fails_only_if_that_is_asked_for(seal, tmp_path):
    world = edited(
        WORLD,
        "    @check\n",
        "    @tool(mutates=False)\n    def look(self) -> str:\n        return 'a lamp'\n\n"
        "    @check\n",
    )
    folder = write_environment(tmp_path / "lamp", world=world)
    given = ["run", folder, "-m", "sim:lost", "--split", "all", "--json"]
    loose, strict = (
        json.loads(seal(*given, *more, "--out", tmp_path / name)[1].splitlines()[-1])
        for name, more in (("loose", []), ("strict", ["--strict-abstention"]))
    )
    assert strict["score"] <= loose["score"]
    code, _, err = seal(*given, "--strict-abstention", "--out", tmp_path / "loose")
    assert code == 2
    assert "strict_abstention" in err


def test_what_an_environment_prints_is_no_part_of_the_answer(tmp_path, capsys):
    world = edited(WORLD, "COLOURS = {", 'print("imported")\nCOLOURS = {')
    world = edited(world, "self.plugged = socket", 'self.plugged = socket; print("plugged")')
    folder = write_environment(tmp_path / "lamp", world=world)
    assert main(["check", str(folder), "--json"]) == 0
    said = capsys.readouterr()
    assert all(json.loads(line)["environment"] == "lamp" for line in said.out.splitlines())
    assert "imported" in said.err
    assert "plugged" in said.err
    assert main(["check", "--help"]) == 0
    assert "ENV" in capsys.readouterr().out


@pytest.mark.parametrize("status", [0, 7])
def test_an_environment_cannot_end_the_command_and_say_yes_by_that(seal, tmp_path, status):
    world = edited(WORLD, "self.plugged = socket", f"import os; os._exit({status})")
    code, out, _ = seal("check", write_environment(tmp_path / "lamp", world=world))
    assert code == 1
    assert f"it ends the program (SystemExit({status}))" in out
    world = f"import os\nos._exit({status})\n"
    code, out, _ = seal("check", write_environment(tmp_path / "unread", world=world))
    assert code == 2
    assert f"env.py:2: cannot be imported: it ends the program (SystemExit({status}))" in out


@pytest.mark.parametrize("command", [["check"], ["show"], ["run", "-m", "gold"], ["diagnose"]])
def test_a_path_that_can_name_nothing_is_the_users_to_write_anew(seal, command):
    code, out, err = seal(*command, "a" * 300)
    assert (code, out) == (2, "")
    assert "File name too long" in err
    assert "own fault" not in err
