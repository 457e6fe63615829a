import json
import subprocess
import sys

HEAVY = {
    "torch",
    "transformers",
    "trl",
    "peft",
    "datasets",
    "dspy",
    "litellm",
    "bfcl_eval",
    "mpmath",
    "jinja2",
}
PROBE = """
import json, sys
{code}
print(json.dumps(sorted(name for name in sys.modules if "." not in name)))
"""


def _loaded_by(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(code=code)],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_probe_sees_what_is_loaded():
    assert "jinja2" in _loaded_by("import seal.envs")


def test_importing_the_command_line_loads_no_heavy_package():
    assert not _loaded_by("import seal.cli") & HEAVY


def test_help_loads_no_heavy_package():
    code = "from seal.cli import main\nassert main(['--help']) == 0"
    assert not _loaded_by(code) & HEAVY


def test_help_of_every_command_loads_no_heavy_package():
    code = (
        "from seal.cli import app, main\n"
        "for command in app.registered_commands:\n"
        "    assert main([command.name, '--help']) == 0"
    )
    assert not _loaded_by(code) & HEAVY


def test_environments_load_no_model_package():
    loaded = _loaded_by("import seal.envs, seal.soundness, seal.models.registry, seal.models.gold")
    assert not loaded & (HEAVY - {"jinja2"})
