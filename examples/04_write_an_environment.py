"""Write an environment of your own: three files, here in a temporary folder, and try it.

Run it with: python examples/04_write_an_environment.py
"""

import json
import tempfile
from pathlib import Path

import seal

MANIFEST = 'name = "lamp"\ndescription = "You serve a lamp."\nlicence = "CC0-1.0"\n'
WORLD = """
from seal import Environment, Rule, Task, ToolError, tool
class Lamp(Environment):
    def reset(self, task: Task) -> None:
        self.plugged, self.level = False, 0

    @tool
    def plug_in(self) -> str:
        self.plugged = True
        return "plugged in"

    @tool(requires="plug_in", level=Rule(unit="percent"))
    def dim(self, level: int) -> str:
        if not self.plugged:
            raise ToolError("no_power", "The lamp stays dark.")
        self.level = level
        return f"level {level}"
"""
TASKS = []
for said, level in {"half": 50, "a quarter": 25, "a tenth": 10}.items():
    dim = {"tool": "dim", "arguments": {"level": level}, "as_said": {"level": said}}
    turn = {"user": f"Let it shine at {said}.", "gold": [{"tool": "plug_in"}, dim]}
    TASKS.append(json.dumps({"id": said, "scenario": said, "turns": [turn]}))

with tempfile.TemporaryDirectory() as folder:
    Path(folder, "env.toml").write_text(MANIFEST)
    Path(folder, "env.py").write_text(WORLD)
    Path(folder, "tasks.jsonl").write_text("\n".join(TASKS))
    original = seal.load_environment(folder).original
    texts = {"dim.affordance": "Call plug_in first.", "dim.constraint.level": "Give it in {unit}."}
    told = original.with_texts(texts)
    for policy, words in (("gold", original), ("sim:novice", original), ("sim:novice", told)):
        settings = seal.RunSettings(split=None, samples=40, candidate=words)
        score = seal.run(folder, policy, settings).summary.score
        print(f"{policy:<11}{'told the rules' if words == told else 'as written':<15}{score:>5.0%}")
