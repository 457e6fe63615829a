"""`seal show ENV`: the words as the policy reads them, under whose candidate one likes."""

import json

import pytest

from seal.cli import main
from seal.envs import load_environment
from seal.evolve.lineage import Generation
from seal.records import RunFolder, write_json
from tests.factories import TOOLS, edited, write_environment


@pytest.fixture
def seal(capsys):
    """Runs a command in this process; its exit code and what it printed."""

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_show_prints_what_the_policy_reads(seal, tmp_path):
    code, out, _ = seal("show", write_environment(tmp_path / "lamp"))
    assert code == 0
    assert out.startswith("lamp: the author's original words\n")
    assert "  dim(level: integer, colour: string)\n" in out
    assert "    Sets how the lamp shines. Sets level and colour at once.\n" in out
    assert "      colour: The colour.\n" in out
    assert "\n+ " not in out


def test_what_show_prints_is_as_it_was(seal, tmp_path, golden):
    folder = write_environment(tmp_path / "lamp")
    words, task = seal("show", folder)[1], seal("show", folder, "--task", "lamp-01")[1]
    golden("show_lamp.txt", f"{words}\n{task.replace(str(folder), 'FOLDER')}")


def test_show_marks_what_a_candidate_changes(seal, tmp_path):
    folder = write_environment(tmp_path / "lamp")
    changes = {"dim.constraint.colour": "One of {allowed}."}
    candidate = load_environment(folder).original.with_texts(changes)
    run = RunFolder(tmp_path / "run")
    with run.opened({"command": "evolve"}):
        run.save_candidate(candidate)
    for name in (tmp_path / "run" / "candidates" / f"{candidate.id}.json", f"run/{candidate.id}"):
        code, out, _ = seal("show", folder, "--candidate", name)
        assert code == 0
        assert f"candidate {candidate.id}, + marks what it changes: dim.constraint.colour" in out
        evolved = [line for line in out.splitlines() if line.startswith("+")]
        assert evolved == ['+     colour: The colour. One of warm="W3", cold="C9".']


def test_show_refuses_a_candidate_with_a_misspelt_slot(seal, tmp_path):
    folder = write_environment(tmp_path / "lamp")
    write_json(tmp_path / "c.json", {"seal": 1, "texts": {"dim.affordanc": "x"}})
    code, _, err = seal("show", folder, "--candidate", "c.json")
    assert code == 2
    assert "Did you mean 'dim.affordance'?" in err


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({f"rooms.affordance{n}": "" for n in range(22)}, "none of its 22 slots exist in lamp, su"),
        ({"dim.affordance": "", "a": "", "b": ""}, "1 of its 3 slots exist in lamp, such as 'a'"),
    ],
)
def test_a_candidate_of_another_environment_is_one_problem(seal, tmp_path, texts, said):
    folder = write_environment(tmp_path / "lamp")
    write_json(tmp_path / "c.json", {"seal": 1, "texts": texts})
    code, _, err = seal("show", folder, "--candidate", "c.json")
    assert code == 2
    assert err.startswith("seal: c.json: ")
    assert said in err
    assert err.count("\n") == 1


def evolved_run(folder, tmp_path):
    """A run of one generation, and the candidate it ended with."""
    original = load_environment(folder).original
    final = original.with_texts({"dim.affordance": "Evolved."})
    run = RunFolder(tmp_path / "run")
    with run.opened({"command": "evolve", "candidate": original.id}):
        run.save_candidate(original)
        run.save_candidate(final)
        generation = Generation(
            index=1,
            parent=original.id,
            candidate=final.id,
            accepted=True,
            reason="",
            patches=(),
            gates=(),
            failed=0,
            profiled=0,
            rollouts=0,
        )
        run.lines("generations", Generation).append(generation)
    return original, final


def test_a_run_stands_for_its_final_words_and_has_the_names_that_diff_takes(seal, tmp_path):
    folder = write_environment(tmp_path / "lamp")
    original, final = evolved_run(folder, tmp_path)
    for name in ("run", "run/", "run/final", "run/1", f"run/{final.id}", f"run/{final.id[:5]}"):
        code, out, _ = seal("show", folder, "--candidate", name)
        assert (code, f"candidate {final.id}" in out) == (0, True), name
    for name in ("run/original", f"run/{original.id}"):
        code, out, _ = seal("show", folder, "--candidate", name)
        assert (code, "the author's original words" in out) == (0, True), name


def test_a_slots_file_speaks_over_the_original_words(seal, tmp_path):
    folder = write_environment(tmp_path / "lamp")
    (tmp_path / "slots.toml").write_text('[dim.constraint]\ncolour = "One of {allowed}."\n')
    code, out, _ = seal("show", folder, "--candidate", "slots.toml")
    assert code == 0
    assert '+     colour: The colour. One of warm="W3", cold="C9".' in out
    assert "Sets level and colour at once." in out
    (tmp_path / "slots.toml").write_text('[dim]\naffordence = "x"\n')
    code, _, err = seal("show", folder, "--candidate", "slots.toml")
    assert code == 2
    assert "slots.toml: no slot 'dim.affordence'" in err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("empty", "empty: no run here"),
        ("empty/final", "empty: no run here"),
        ("run/fnial", "run: no candidate 'fnial'"),
        ("nowhere.json", "nowhere.json: no candidate can be read here"),
    ],
)
def test_what_is_no_candidate_is_said_in_a_line(seal, tmp_path, name, said):
    folder = write_environment(tmp_path / "lamp")
    evolved_run(folder, tmp_path)
    (tmp_path / "empty").mkdir()
    code, _, err = seal("show", folder, "--candidate", name)
    assert code == 2
    assert said in err


@pytest.mark.parametrize("text", ["{", "[]", "null", ""])
def test_a_run_with_a_spoilt_result_still_has_its_log_and_its_words(seal, tmp_path, text):
    evolved_run(write_environment(tmp_path / "lamp"), tmp_path)
    (tmp_path / "run" / "result.json").write_text(text)
    for command in ("log", "diff"):
        code, out, _ = seal(command, "run")
        assert code == 0, command
        assert out


def test_show_prints_a_task_with_its_gold(seal, tmp_path):
    code, out, _ = seal("show", write_environment(tmp_path / "lamp"), "--task", "lamp-01")
    assert code == 0
    assert "    user: Let it shine cold, at a quarter.\n" in out
    assert '    gold: dim(level=25, colour="C9")    the user said level as' in out
    assert out.startswith("task lamp-01, ")
    assert out.endswith(f"What the policy reads: seal show {tmp_path / 'lamp'}\n")
    code, _, err = seal("show", "lamp", "--task", "lamp-91")
    assert code == 2
    assert "no task 'lamp-91'" in err


def test_show_prints_what_is_said_about_an_error(seal, tmp_path):
    slots = '[dim.recovery]\nargument_value = "Take {allowed}."\n'
    folder = write_environment(tmp_path / "lamp", slots=slots)
    code, out, _ = seal("show", folder, "--error", "argument_value")
    assert code == 0
    assert out == (
        "lamp: the author's original words\n"
        "  plug_in: socket\n"
        "    Argument 'socket' has a value that is not accepted.\n"
        "      no words are added: the recovery slot is empty\n"
        "  dim: level\n"
        "    Argument 'level' has a value that is not accepted.\n"
        "      no words are added: dim.recovery.argument_value cites nothing that this error has\n"
        "  dim: colour\n"
        "    Argument 'colour' has a value that is not accepted. "
        'Take warm="W3", cold="C9".\n'
        "      with the words of dim.recovery.argument_value: Take {allowed}.\n"
    )
    assert seal("show", folder, "--error", "argument_valu")[0] == 2


def test_tools_whose_errors_are_answered_alike_are_shown_together(seal, tmp_path):
    silent = edited(TOOLS["dim"], "{{ error.message }} {{ recovery }}", "No: {{ error.message }}")
    folder = write_environment(tmp_path / "lamp", tools={"dim": silent})
    _, out, _ = seal("show", folder, "--error", "refused")
    assert out.splitlines()[1:] == [
        "  plug_in: socket",
        "    <message of the tool's ToolError>",
        "      no words are added: the recovery slot is empty",
        "  dim: level, colour",
        "    No: <message of the tool's ToolError>",
        "      no words are added: the block prints no recovery slot",
    ]
    shown = json.loads(seal("show", folder, "--error", "refused", "--json")[1])["recoveries"]
    assert {one["slot"] for one in shown} == {None}
    assert (shown[0]["tool"], shown[0]["argument"]) == ("plug_in", None)
    assert "There is no tool '<name>'." in seal("show", "rooms", "--error", "unknown_tool")[1]


def test_show_json_is_a_tool_list_that_a_server_takes(seal, tmp_path):
    folder = write_environment(tmp_path / "lamp")
    code, out, _ = seal("show", folder, "--task", "lamp-00", "--json")
    shown = json.loads(out)
    assert code == 0
    assert [tool["function"]["name"] for tool in shown["tools"]] == ["plug_in", "dim"]
    assert shown["tools"][1]["type"] == "function"
    assert shown["tools"][1]["function"]["parameters"]["required"] == ["level", "colour"]
    assert shown["task"]["id"] == "lamp-00"
