"""Files that ship beside the code are found from anywhere; fetched data has a place of its own."""

from pathlib import Path

from seal.resources import cache_folder, resource_folder


def test_what_ships_is_found_whatever_the_working_folder():
    assert (resource_folder("env_templates") / "rooms" / "env.toml").is_file()
    assert resource_folder("prompts").is_dir()


def test_the_cache_is_where_the_user_wants_it(monkeypatch, tmp_path):
    monkeypatch.setenv("SEAL_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("SEAL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "seal"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == Path(tmp_path) / ".cache" / "seal"
