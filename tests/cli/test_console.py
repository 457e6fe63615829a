"""Plain output when piped, and progress that keeps out of the answer's way."""

import json

from hypothesis import given
from hypothesis import strategies as st

from seal.cli.console import note, print_json_line, print_line, print_table, progress
from seal.report.text import legible
from seal.types import Candidate


def test_a_table_is_plain_aligned_text(capsys):
    print_table(["tool", "faults"], [["book_room", 12], ["dim", 3]], right=["faults"])
    assert capsys.readouterr().out == "tool       faults\nbook_room      12\ndim             3\n"


def test_a_table_keeps_a_long_cell_on_one_line_where_there_is_no_width(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS")
    print_table(["text"], [["word " * 100]])
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_table_folds_at_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    print_table(["text"], [["word " * 30]])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 2
    assert max(map(len, lines)) <= 40


def test_cells_are_no_markup(capsys):
    print_table(["text"], [["[red]hot[/red] :smile:"]])
    assert "[red]hot[/red] :smile:" in capsys.readouterr().out


@given(st.text())
def test_visible_text_holds_no_control_characters_and_keeps_printable_text(text):
    shown = legible(text)
    assert all(char.isprintable() or char in "\n\t" or not char.isascii() for char in shown)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    if text.isascii() and text.isprintable():
        assert shown == text


def test_a_json_line_is_one_line_of_one_record(capsys):
    print_json_line(Candidate(texts={"a": "one\ntwo \u2026"}))
    line = capsys.readouterr().out
    assert line.count("\n") == 1
    assert json.loads(line)["texts"] == {"a": "one\ntwo \u2026"}


def test_piped_progress_is_silent_for_short_work(capsys):
    with progress("rollouts", 3) as advance:
        advance(3)
    print_line("done")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("done\n", "")


def test_piped_progress_is_one_line_for_long_work_unless_quiet(capsys, monkeypatch):
    clock = iter([0.0, 65.0, 100.0, 165.0])
    monkeypatch.setattr("seal.cli.console.time.monotonic", lambda: next(clock))
    for quiet in (False, True):
        with progress("rollouts", 3, quiet=quiet) as advance:
            advance(2)
            advance(1)
    assert capsys.readouterr().err == "rollouts: 3 in 65 s\n"


def test_a_quiet_note_is_not_there(capsys):
    note("loud")
    note("quiet", quiet=True)
    assert capsys.readouterr().err == "loud\n"
