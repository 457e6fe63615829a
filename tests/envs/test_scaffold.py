"""A new environment is written whole, or not at all."""

import os
from pathlib import Path

import pytest

from seal.envs.scaffold import FILES, write_environment
from seal.errors import ConfigError, StorageFailure


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_a_killed_process_left_behind_is_in_nobodys_way(tmp_path):
    for left in (".desk.partial", f".desk.{os.getpid()}.partial"):
        (tmp_path / left).mkdir()
        (tmp_path / left / "env.py").write_text("half")
    write_environment(tmp_path / "desk")
    assert names(tmp_path / "desk") == sorted(FILES)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_what_is_cut_short_leaves_nothing(tmp_path, monkeypatch, error):
    write = Path.write_text

    def stop(path: Path, text: str, **options: str) -> int:
        if path.name == "env.py":
            raise error
        return write(path, text, **options)

    monkeypatch.setattr(Path, "write_text", stop)
    with pytest.raises((KeyboardInterrupt, StorageFailure)):
        write_environment(tmp_path / "desk")
    assert names(tmp_path) == []
    monkeypatch.undo()
    write_environment(tmp_path / "desk")
    assert names(tmp_path) == ["desk"]


def test_a_link_to_nothing_is_there_already(tmp_path):
    (tmp_path / "desk").symlink_to("nowhere")
    with pytest.raises(ConfigError, match="it is there already"):
        write_environment(tmp_path / "desk")
    assert names(tmp_path) == ["desk"]


@pytest.mark.parametrize("long", [240, 255])
def test_a_name_may_be_as_long_as_a_folders(tmp_path, long):
    write_environment(tmp_path / ("a" * long))
    assert names(tmp_path) == ["a" * long]
