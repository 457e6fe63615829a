"""Records survive the disk, and a run folder survives what happens to processes and disks."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.errors import ConfigError, StorageFailure
from seal.records import SCHEMA, JsonLines, RunFolder, read_candidate, to_toml, write_text
from seal.types import Candidate, Rollout
from tests.test_types import RECORDS, scalars, texts


@given(st.lists(RECORDS["rollout"], min_size=1, max_size=3))
def test_records_are_one_line_each_and_come_back_in_order(tmp_path_factory, rollouts):
    lines = JsonLines(tmp_path_factory.mktemp("run") / "rollouts.jsonl", Rollout)
    for rollout in rollouts:
        lines.append(rollout)
    assert lines.path.read_bytes().count(b"\n") == 1 + len(rollouts)
    assert list(lines.read()) == rollouts


toml_values = st.recursive(
    scalars | st.lists(scalars, max_size=3),
    lambda inner: st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(texts, toml_values, max_size=4))
def test_what_is_written_as_toml_is_read_back(table):
    assert tomllib.loads(to_toml(table)) == table


@pytest.mark.parametrize("key", ["", "a b", "a.b", '"', "\\", "ä", "-", "\x00", "\x7f", "\n", "#"])
def test_any_text_is_a_key_and_a_value_in_toml(key):
    table = {key: {key: key}, "list": [key]}
    assert tomllib.loads(to_toml(table)) == table


def test_what_is_not_known_is_left_out_of_toml():
    assert tomllib.loads(to_toml({"a": None, "b": {"c": None, "d": 1}})) == {"b": {"d": 1}}


def words(number):
    return Candidate(texts={"system.guidance": f"text {number}"})


def lines_in(folder):
    return JsonLines(folder / "words.jsonl", Candidate)


@pytest.mark.parametrize("cut", range(1, 30, 7))
def test_a_torn_last_line_is_left_out_and_cut_off_by_the_next_append(tmp_path, cut):
    lines = lines_in(tmp_path)
    lines.append(words(1), words(2))
    whole = lines.path.read_bytes()
    lines.path.write_bytes(whole[:-cut])
    assert list(lines.read()) == [words(1)]
    lines.append(words(2))
    assert lines.path.read_bytes() == whole


def test_a_file_torn_in_its_first_line_starts_anew(tmp_path):
    lines = lines_in(tmp_path)
    lines.path.write_bytes(b'{"se')
    assert list(lines.read()) == []
    lines.append(words(1))
    assert list(lines.read()) == [words(1)]


def test_a_line_that_is_no_record_is_named_with_its_number(tmp_path):
    lines = lines_in(tmp_path)
    lines.append(words(1))
    with lines.path.open("a") as file:
        file.write('{"texts": 7}\n')
    with pytest.raises(ConfigError, match=r"words\.jsonl:3: this line is no Candidate"):
        list(lines.read())


@pytest.mark.parametrize("header", ['{"seal": 2}', "{}", "[]", '"seal"'])
def test_records_of_another_schema_version_are_not_read(tmp_path, header):
    lines = lines_in(tmp_path)
    lines.path.write_text(f"{header}\n{words(1).model_dump_json()}\n")
    with pytest.raises(ConfigError, match=f"this SEAL reads version {SCHEMA}"):
        list(lines.read())


def test_a_run_of_another_schema_version_is_refused_and_left_alone(tmp_path):
    folder = RunFolder(tmp_path / "run")
    write_text(folder.settings_path, 'seal = 2\ncommand = "run"\n')
    with pytest.raises(ConfigError, match=r"run\.toml: schema version 2"), folder.opened({}):
        pass
    assert folder.settings_path.read_text() == 'seal = 2\ncommand = "run"\n'


@pytest.mark.parametrize("header", ["[" * 100_000, "{", "\ud800".encode("utf-8", "surrogatepass")])
def test_a_header_that_is_no_json_is_named(tmp_path, header):
    lines = lines_in(tmp_path)
    lines.path.write_bytes((header.encode() if isinstance(header, str) else header) + b"\n")
    with pytest.raises(ConfigError, match=r"words\.jsonl:1: this line is no Candidate"):
        list(lines.read())


def test_what_cannot_be_read_is_named_with_the_reason(tmp_path):
    (tmp_path / "words.jsonl").mkdir()
    with pytest.raises(ConfigError, match=r"words\.jsonl: cannot be read: Is a directory"):
        list(lines_in(tmp_path).read())


def test_a_folder_without_a_run_says_what_makes_one(tmp_path):
    with pytest.raises(ConfigError, match="no run here") as caught:
        RunFolder(tmp_path).settings()
    assert "seal run" in str(caught.value)


def test_a_broken_run_toml_is_named(tmp_path):
    (tmp_path / "run.toml").write_text("seal = ")
    with pytest.raises(ConfigError, match=r"run\.toml: not TOML"):
        RunFolder(tmp_path).settings()


SETTINGS = {"command": "run", "limit": None, "sampling": {"temperature": 0.0, "dollars": None}}


def test_the_same_settings_resume_a_run(tmp_path):
    folder = RunFolder(tmp_path / "run")
    for _ in range(2):
        with folder.opened(SETTINGS):
            folder.lines("words", Candidate).append(words(1))
    assert len(list(folder.lines("words", Candidate).read())) == 2


def test_other_settings_are_refused_with_the_first_difference(tmp_path):
    folder = RunFolder(tmp_path / "run")
    with folder.opened(SETTINGS):
        pass
    with (
        pytest.raises(ConfigError, match=r"limit: None there, 5 now") as caught,
        folder.opened({**SETTINGS, "limit": 5}),
    ):
        pass
    assert "--fresh" in str(caught.value)


def test_starting_over_sets_aside_what_the_run_wrote_and_touches_nothing_else(tmp_path):
    folder = RunFolder(tmp_path / "run")
    with folder.opened(SETTINGS):
        folder.lines("proposals", Candidate).append(words(1))
        folder.save_candidate(words(1))
        folder.finish({"score": 1.0})
    for mine in ("note.txt", "notes.json", "cassette.jsonl"):
        (folder.path / mine).write_text("mine")
    with folder.opened({**SETTINGS, "limit": 5}, fresh=True):
        assert folder.result() is None
    kept = sorted(path.name for path in folder.path.iterdir())
    assert kept == [".lock", "cassette.jsonl", "note.txt", "notes.json", "previous", "run.toml"]
    before = RunFolder(folder.path / "previous")
    assert before.result() == {"score": 1.0}
    assert before.candidate(words(1).id) == words(1)


def test_an_environment_is_no_folder_for_a_run(tmp_path):
    (tmp_path / "env.toml").write_text("")
    with pytest.raises(ConfigError, match="this is an environment"), opened(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["env.toml"]


def test_an_edited_candidate_is_told_from_the_one_it_was(tmp_path):
    folder = RunFolder(tmp_path)
    folder.save_candidate(words(1))
    (path,) = (tmp_path / "candidates").iterdir()
    content = json.loads(path.read_text())
    content["texts"] = dict.fromkeys(content["texts"], "mine") or {"a": "mine"}
    path.write_text(json.dumps(content))
    with pytest.raises(ConfigError, match="it was edited"):
        folder.candidate(words(1).id)


def opened(path):
    return RunFolder(path).opened(SETTINGS)


def test_a_folder_that_holds_no_run_is_not_cleared(tmp_path):
    (tmp_path / "thesis.json").write_text("{}")
    with RunFolder(tmp_path).opened(SETTINGS, fresh=True):
        pass
    assert (tmp_path / "thesis.json").exists()


HOLDER = """
import sys, time
from pathlib import Path
from seal.records import RunFolder
with RunFolder(Path(sys.argv[1])).opened({"command": "run"}):
    print("held", flush=True)
    time.sleep(60)
"""


def test_one_process_at_a_time_holds_a_run_and_a_dead_one_holds_nothing(tmp_path):
    folder = RunFolder(tmp_path / "run")
    command = [sys.executable, "-c", HOLDER, str(folder.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(ConfigError, match="another process is writing this run"),
            folder.opened({"command": "run"}),
        ):
            pass
        holder.send_signal(signal.SIGKILL)
    with folder.opened({"command": "run"}):
        pass


def test_a_candidate_is_found_by_the_beginning_of_its_id(tmp_path):
    folder = RunFolder(tmp_path)
    folder.save_candidate(words(1))
    assert folder.candidate(words(1).id[:4]) == words(1)


@pytest.mark.parametrize("name", ["", "*", "zzz", "/etc", "../x", "**"])
def test_an_unknown_candidate_is_answered_with_those_there_are(tmp_path, name):
    folder = RunFolder(tmp_path)
    folder.save_candidate(words(1))
    with pytest.raises(ConfigError, match=f"Candidates here: {words(1).id}"):
        folder.candidate(name)


def test_an_ambiguous_candidate_is_answered_with_those_there_are(tmp_path):
    folder = RunFolder(tmp_path)
    for number in range(40):
        folder.save_candidate(words(number))
    first = min(words(number).id for number in range(40))[0]
    with pytest.raises(ConfigError, match="more than one candidate"):
        folder.candidate(first)


@pytest.mark.parametrize(
    "content", ["", "[]", "7", '{"seal": 1}', '{"seal": 1, "texts": {"a": 1}}']
)
def test_a_file_that_is_no_candidate_is_named(tmp_path, content):
    path = tmp_path / "words.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match=r"words\.json"):
        read_candidate(path)


def test_a_candidate_may_hold_nothing_but_texts(tmp_path):
    path = tmp_path / "words.json"
    path.write_text(json.dumps({"seal": 1, "texts": {}, "tools": []}))
    with pytest.raises(ConfigError, match="no candidate can be read"):
        read_candidate(path)


def test_a_full_disk_is_a_storage_failure_that_says_what_to_do(tmp_path):
    (tmp_path / "words.jsonl").symlink_to("/dev/full")
    with pytest.raises(StorageFailure, match="no space left") as caught:
        lines_in(tmp_path).append(words(1))
    assert caught.value.exit_code == 3
    assert "run the same command again: it resumes" in str(caught.value)


LITTLE_SPACE = """
import resource, sys
from pathlib import Path
from seal.errors import StorageFailure
from seal.records import JsonLines
from seal.types import Candidate
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
lines = JsonLines(Path(sys.argv[1]), Candidate)
for number in range(100):
    try:
        lines.append(Candidate(texts={"system.guidance": f"text {number}"}))
    except StorageFailure as failure:
        print(number)
        sys.exit(failure.exit_code)
"""


def test_what_was_written_before_the_disk_was_full_is_kept_and_resumed(tmp_path):
    path = tmp_path / "words.jsonl"
    ended = subprocess.run(
        [sys.executable, "-c", LITTLE_SPACE, str(path)], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (3, "")
    written = int(ended.stdout)
    assert 0 < written < 100
    lines = lines_in(tmp_path)
    assert list(lines.read()) == [words(number) for number in range(written)]
    lines.append(words(written))
    assert list(lines.read()) == [words(number) for number in range(written + 1)]


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 64 kB, where this process may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("only root mounts a small disk")
    options = [mount, "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if subprocess.run(options, capture_output=True, check=False).returncode:
        pytest.skip("this container does not let root mount")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def write_without_end(folder):
    with folder.opened(SETTINGS):
        for number in range(10_000):
            folder.finish({"records": number})
            folder.lines("words", Candidate).append(words(number))


def test_a_run_on_a_full_disk_loses_nothing(small_disk):
    folder = RunFolder(small_disk / "run")
    with pytest.raises(StorageFailure, match="no space left"):
        write_without_end(folder)
    kept = list(folder.lines("words", Candidate).read())
    assert kept == [words(number) for number in range(len(kept))]
    assert len(kept) > 100
    assert folder.result() in ({"records": len(kept)}, {"records": len(kept) - 1})
    assert not list(folder.path.glob("*.partial"))


def test_a_reader_never_sees_half_a_file(tmp_path):
    path = tmp_path / "result.json"
    write_text(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "new \ud800")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
