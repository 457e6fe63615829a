"""SEAL: agents and the words of their learning environments evolve together.

import seal

result = seal.run("rooms", "sim:novice", seal.RunSettings(limit=20))
evolution = seal.evolve("rooms", "sim:novice")
training = seal.train("rooms", "local:tiny")
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seal.config import EvolveConfig, GateConfig
    from seal.diagnose.run import diagnose
    from seal.envs.environment import Environment, check, tool
    from seal.envs.registry import load_environment
    from seal.errors import SealError, ToolError
    from seal.evolve.run import EvolveOptions, evolve
    from seal.loop.run import train
    from seal.report.compare import compare
    from seal.rollout.run import RunSettings, run
    from seal.train.elsewhere import as_trl_environment
    from seal.types import Candidate, GoldCall, Rule, Task, UserTurn

__version__ = "0.1.0"
__all__ = [
    "Candidate",
    "Environment",
    "EvolveConfig",
    "EvolveOptions",
    "GateConfig",
    "GoldCall",
    "Rule",
    "RunSettings",
    "SealError",
    "Task",
    "ToolError",
    "UserTurn",
    "as_trl_environment",
    "check",
    "compare",
    "diagnose",
    "evolve",
    "load_environment",
    "run",
    "tool",
    "train",
]
_HOMES = {
    "seal.config": ["EvolveConfig", "GateConfig"],
    "seal.diagnose.run": ["diagnose"],
    "seal.envs.environment": ["Environment", "check", "tool"],
    "seal.envs.registry": ["load_environment"],
    "seal.errors": ["SealError", "ToolError"],
    "seal.evolve.run": ["EvolveOptions", "evolve"],
    "seal.loop.run": ["train"],
    "seal.report.compare": ["compare"],
    "seal.rollout.run": ["RunSettings", "run"],
    "seal.train.elsewhere": ["as_trl_environment"],
    "seal.types": ["Candidate", "GoldCall", "Rule", "Task", "UserTurn"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


class _Package(ModuleType):
    """Public names are loaded when they are first used, so that `seal --help` stays quick.

    `diagnose`, `evolve` and `train` are functions and folders. Importing a module of such a folder
    would bind the folder here; the function stays, and the folder is reached by `from seal.evolve`.
    """

    def __getattr__(self, name: str) -> object:
        if name not in _HOME_OF:
            raise AttributeError(f"module 'seal' has no attribute {name!r}")
        value = getattr(importlib.import_module(_HOME_OF[name]), name)
        super().__setattr__(name, value)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME_OF and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
