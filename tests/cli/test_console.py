"""Plain output when piped, and progress that keeps out of the answer's way."""

import contextlib
import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.cli import main
from seal.cli.console import note, print_json_line, print_line, print_table, print_wrapped, progress
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


@given(st.text())
def test_a_json_line_steers_no_terminal_and_says_the_same(text):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        print_json_line({"text": text})
    line = out.getvalue()
    assert line == f"{legible(line[:-1])}\n"
    assert json.loads(line)["text"] == text


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_json_line_is_json_in_every_encoding(encoding):
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="backslashreplace")
    with contextlib.redirect_stdout(out):
        print_json_line({"text": "é ü 🙂 \u202e \x9b"})
    assert json.loads(out.buffer.getvalue().decode(encoding))["text"] == "é ü 🙂 \u202e \x9b"


def test_a_long_word_stays_whole_where_texts_are_wrapped(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    print_wrapped("slot set_navigation.constraint.destination; such as one", "  ")
    assert capsys.readouterr().out.splitlines() == [
        "  slot",
        "    set_navigation.constraint.destination;",
        "    such as one",
    ]


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


@pytest.mark.parametrize(("closed", "code"), [("stdout", 0), ("stderr", 2)])
def test_a_closed_stream_is_written_to_by_nobody(monkeypatch, closed: str, code: int):
    monkeypatch.setattr(sys, closed, None)
    assert main(["show", "rooms" if code == 0 else "nowhere"]) == code
    getattr(sys, closed).close()
