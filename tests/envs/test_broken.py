"""Files that are not what they should be: one message of where and what, and never a traceback."""

from functools import partial

import pytest

from seal.envs import load_environment, words
from seal.envs.contract import accept
from seal.envs.time_limit import within
from seal.envs.verify import GoldReplays
from seal.errors import EnvironmentFailure, SealError, TemplateError
from seal.soundness import check_environment
from seal.types import ToolCall
from tests.factories import SLOTS, TOML, TOOLS, WORLD, edited, lamp_task, write_environment

PLUG = '    @tool\n    def plug_in(self, socket: str) -> str:\n        """Plug the lamp in."""\n'
DONE = "        self.plugged = socket\n"


def refused(folder) -> str:
    """What is said of an environment that does not load."""
    with pytest.raises(TemplateError) as error:
        load_environment(folder).tasks(None)
    return str(error.value)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (
            "    @tool\n    def plug_in(self, *socket: str):\n",
            "plug_in(*socket: str) cannot",
        ),
        ("    @tool\n    def plug_in(self, socket: str, /):\n", "cannot be given by name"),
        ("    @tool\n    def plug_in(self, **socket: str):\n", "cannot be given by name"),
        ("    @staticmethod\n    @tool\n    def plug_in(socket: str):\n", "plug_in is no method"),
        ("    @tool\n    @staticmethod\n    def plug_in(socket: str):\n", "plug_in is no method"),
        (
            "    @classmethod\n    @tool\n    def plug_in(self, socket: str):\n",
            "plug_in is no method",
        ),
        ("    @tool\n    def plug_in():\n", "plug_in is no method"),
        ("    @tool\n    async def plug_in(self, socket: str):\n", "env.py:19: plug_in is async"),
        ('    @tool("x")\n    def plug_in(self, socket: str):\n', "env.py:19: cannot be imported"),
        ("    @tool\n    @property\n    def plug_in(self, socket: str):\n", "is given a property"),
        (
            "    @tool\n    def draw(self, socket: str):\n",
            "env.py:19: a tool may not be called 'draw'",
        ),
        ("    @tool\n    def call(self, socket: str):\n", "a tool may not be called 'call'"),
        ("    @tool\n    def state(self, socket: str):\n", "Call it such as 'state_it'"),
        ("    @tool\n    def __len__(self, socket: str):\n", "a tool may not be called '__len__'"),
        ("    @tool\n    def größe(self, socket: str):\n", "'größe' is no name for a tool"),
        (f"    @tool\n    def {'a' * 65}(self, socket: str):\n", "Write at most 64 letters"),
    ],
)
def test_tools_that_no_policy_could_call_are_refused(tmp_path, head, said):
    folder = write_environment(tmp_path / "lamp", world=edited(WORLD, PLUG, head))
    assert said in refused(folder)


def test_a_tool_that_yields_is_refused(tmp_path):
    world = edited(WORLD, 'return "plugged in"', 'yield "plugged in"')
    assert "plug_in is a generator" in refused(write_environment(tmp_path / "lamp", world=world))


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("[limits]\nsteps = true", "limits.steps"),
        ('[limits]\nsteps = "3"', "limits.steps"),
        ("[limits]\ncall_seconds = true", "limits.call_seconds"),
        ("[slots]\nguidance = true", "slots.guidance"),
    ],
)
def test_what_is_no_number_is_not_taken_for_one(tmp_path, line, key):
    folder = write_environment(tmp_path / "lamp", toml=f"{TOML}{line}\n")
    assert refused(folder).startswith(f"{folder}/env.toml: {key}: Input should be a valid ")


@pytest.mark.parametrize("absolute", [True, False])
@pytest.mark.parametrize("line", ["raise ValueError('boom')", "def (:", "raise GeneratorExit"])
def test_a_world_that_cannot_be_imported_has_a_place(tmp_path, absolute, line):
    folder = write_environment(tmp_path / "lamp", world=f"{line}\n{WORLD}")
    given = str(folder) if absolute else "lamp"
    assert refused(given).startswith(f"{given}/env.py:1: cannot be imported: ")


FILES = {
    "env.toml": TOML,
    "env.py": WORLD,
    "slots.toml": SLOTS,
    "tools/dim.jinja": TOOLS["dim"],
}


@pytest.mark.parametrize("name", [*FILES, "tasks.jsonl"])
def test_the_mark_of_utf_8_is_read_over(tmp_path, name):
    path = write_environment(tmp_path / "lamp") / name
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load_environment(tmp_path / "lamp").tasks(None)


@pytest.mark.parametrize("name", [*FILES, "tasks.jsonl"])
def test_another_encoding_is_named_with_its_byte(tmp_path, name):
    path = write_environment(tmp_path / "lamp") / name
    path.write_bytes(path.read_bytes() + "\n# größer".encode("latin-1"))
    said = refused(tmp_path / "lamp")
    assert said.startswith(f"{path}: not UTF-8 (byte ")
    assert "is 0xf6" in said


@pytest.mark.parametrize("name", ["env.py", "slots.toml", "tools/dim.jinja", "tasks.jsonl"])
@pytest.mark.parametrize("instead", ["a folder", "a link to nothing", "a link to itself"])
def test_what_is_no_file_is_not_taken_for_none(tmp_path, name, instead):
    path = write_environment(tmp_path / "lamp") / name
    path.unlink()
    if instead == "a folder":
        path.mkdir()
    else:
        path.symlink_to("nowhere" if instead == "a link to nothing" else path.name)
    assert refused(tmp_path / "lamp").startswith(f"{path}: cannot be read (")


def test_tools_that_are_a_file_are_not_taken_for_none(tmp_path):
    folder = write_environment(tmp_path / "lamp", tools={})
    (folder / "tools").rmdir()
    (folder / "tools").write_text("x")
    assert refused(folder).startswith(f"{folder}/tools: a file")


def test_half_a_surrogate_pair_is_no_text_of_a_task(tmp_path):
    task = lamp_task(0) | {"group": "\ud800"}
    folder = write_environment(tmp_path / "lamp", tasks=[task])
    assert refused(folder).startswith(f"{folder}/tasks.jsonl:1: a text in it is no Unicode")


def test_a_task_may_have_no_tools(tmp_path):
    task = {"id": "a", "scenario": "a", "tools": [], "turns": [{"user": "Sing.", "gold": []}]}
    task["state"] = lamp_task(0)["state"]
    tasks = [task, *map(lamp_task, range(7))]
    found = list(
        check_environment(load_environment(write_environment(tmp_path / "l", tasks=tasks)))
    )
    assert all(finding.passed for finding in found)


@pytest.mark.parametrize("value", ["[]; self.me.append(self.me)", "self", "{'a': self}"])
def test_a_state_that_holds_itself_is_the_environments_failure(tmp_path, value):
    world = edited(WORLD, DONE, f"{DONE}        self.me = {value}\n")
    template = load_environment(write_environment(tmp_path / "lamp", world=world))
    with pytest.raises(EnvironmentFailure, match="a public attribute holds itself"):
        GoldReplays(template).of(template.tasks("train")[0])
    assert not all(finding.passed for finding in check_environment(template))


MUTE = "type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})()"


@pytest.mark.parametrize("raised", ["GeneratorExit", "BaseException('x')", "SystemExit(3)", MUTE])
def test_whatever_a_tool_raises_is_the_environments_failure(tmp_path, raised):
    world = edited(WORLD, DONE, f"        raise {raised}\n")
    template = load_environment(write_environment(tmp_path / "lamp", world=world))
    with pytest.raises(EnvironmentFailure, match="tool plug_in: "):
        GoldReplays(template).of(template.tasks("train")[0])


def test_a_validator_that_crashes_is_the_environments_failure(tmp_path):
    model = """\
from pydantic import BaseModel, field_validator

class Socket(BaseModel):
    name: str

    @field_validator("name")
    def known(cls, name):
        raise RuntimeError("no list of sockets")


COLOURS = {"""
    world = edited(WORLD, "COLOURS = {", model)
    world = edited(world, "socket: str", "socket: Socket")
    template = load_environment(write_environment(tmp_path / "lamp", world=world))
    call = ToolCall(id="a", tool="plug_in", arguments='{"socket": {"name": "x"}}')
    with pytest.raises(EnvironmentFailure, match="arguments of plug_in: RuntimeError: no list"):
        accept(template.contract, call, ("plug_in",))


def test_a_block_that_does_not_end_says_where(tmp_path, monkeypatch):
    monkeypatch.setattr(words, "within", partial(within, work=0.3))
    every = "{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}"
    block = f"{{% block description %}}{every}{{% endblock %}}"
    tools = {"dim": f'{{% extends "_tool.jinja" %}}\n{block}\n'}
    folder = write_environment(tmp_path / "lamp", tools=tools, slots="")
    with pytest.raises(SealError) as error:
        load_environment(folder)
    assert str(error.value).startswith(f"{folder}/tools/dim.jinja:2: block description: it was sti")
