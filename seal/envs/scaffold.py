"""The environment that `seal new` writes: small, whole, and sound."""

import os
import re
import shlex
import shutil
from pathlib import Path
from string import Template

from seal.envs.registry import shipped_environments
from seal.errors import ConfigError, StorageFailure

FILES = {
    "env.toml": """\
# What this environment is. `seal check $place` proves it sound, without a model.
name = "$name"
description = "You serve drinks in a small house."  # the policy reads it first
licence = "CC0-1.0"  # of tasks and words: others may want to use them
""",
    "env.py": '''\
# The world: what its tools do, what they insist on, and its tasks. Change it piece by piece:
#   seal show $place                  what a policy reads (words of a tool: tools/serve.jinja)
#   seal show $place --task train-000 a task, and what a perfect agent does
#   seal evolve $place -m sim:novice  words that state the rules below, each behind a test
from seal import Environment, GoldCall, Rule, Task, ToolError, UserTurn, tool


class World(Environment):
    # Conventions: drawn from a seed ($place@7 is another house), so that a policy has to read
    # the words and cannot know the rules by heart. Leave `draw` out if nothing varies.
    @classmethod
    def draw(cls, rng):
        codes = dict(zip(("cocoa", "lemonade", "milk"), rng.sample("BCDFGHJK", 3), strict=True))
        return {"codes": codes, "unit": rng.choice(["ml", "dl"])}

    # One task: user messages, and gold, the calls of a perfect agent. `as_said` is the form in
    # which the user said an argument. SEAL draws 800 tasks and splits them. A turn with gold=()
    # is one where the agent should ask or decline.
    @classmethod
    def generate(cls, drawn, rng):
        drink, code = rng.choice(sorted(drawn["codes"].items()))
        order, cups, cup = rng.randint(1000, 9999), rng.randint(1, 9), {"ml": 200, "dl": 2}
        serve = {"order": order, "drink": code, "amount": cups * cup[drawn["unit"]]}
        gold = GoldCall(tool="serve", arguments=serve, as_said={"drink": drink, "amount": cups})
        yield Task(turns=(UserTurn(user=f"Order {order}: {cups} cups of {drink}.", gold=(gold,)),))

    # Public attributes are the state. What gold leaves in it is what a policy has to reach.
    def reset(self, task):
        self.served = {}

    # Type hints are the contract, and rules are declared; a policy reads a rule only where words
    # state it. A wrong unit raises nothing here: the outcome is just wrong, a silent rule.
    @tool(drink=lambda d: Rule(allowed=d["codes"]), amount=lambda d: Rule(unit=d["unit"]))
    def serve(self, order: int, drink: str, amount: int) -> str:
        """Serve an order."""
        if drink not in self.conventions["codes"].values():
            raise ToolError("unknown_drink", "There is no such drink.", argument="drink")
        self.served[str(order)] = [drink, amount]
        return "served"
''',
}
"""The files of a new environment, by name; `$place` and `$name` are filled in."""
_NAME = re.compile(r"[A-Za-z][\w-]*")


def write_environment(folder: Path) -> list[Path]:
    """Write a new environment into a folder that does not exist yet; the files.

    Raises:
        ConfigError: The name is no name, or is taken.
        StorageFailure: The folder cannot be written.
    """
    name = folder.name
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{folder}: '{name}' is no name for an environment.\n"
            "Write letters, digits, - and _, a letter first, such as: seal new my-desk"
        )
    if name in shipped_environments():
        raise ConfigError(
            f"{name}: an environment of this name comes with SEAL, and `seal check {name}` would "
            "mean that one.\nChoose another name."
        )
    if os.path.lexists(folder):
        raise ConfigError(
            f"{folder}: it is there already, and nothing of it was changed.\n"
            f"Choose another name, or look at it with: seal check {folder}"
        )
    place = shlex.quote(str(folder))
    try:
        _write_whole(folder, name, place)
    except OSError as cause:
        raise StorageFailure(
            f"{folder}: {cause.strerror or cause}.\nName a folder that can be written to."
        ) from cause
    return [folder / file for file in FILES]


def _write_whole(folder: Path, name: str, place: str) -> None:
    """Write by rename, so that the folder is never half there."""
    # Its own name: what a killed process left behind is in nobody's way.
    partial = folder.with_name(f".{name[:100]}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        for file, text in FILES.items():
            (partial / file).write_text(
                Template(text).substitute(name=name, place=place), encoding="utf-8"
            )
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def author_lines(text: str) -> int:
    """How many lines of a file are neither blank nor comments."""
    return sum(bool(line) and not line.startswith("#") for line in map(str.strip, text.split("\n")))
