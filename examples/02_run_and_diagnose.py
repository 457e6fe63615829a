"""Roll a policy out on an environment, and see what went wrong and which words could have helped.

Run it with: python examples/02_run_and_diagnose.py
"""

import tempfile
from pathlib import Path

import seal

# The simulated reader knows the answers and spoils what the words leave open. A model goes in its
# place: "openai/gpt-4.1-mini", or any other name that litellm knows.
settings = seal.RunSettings(split="train", limit=40)

with tempfile.TemporaryDirectory() as runs:
    perfect = seal.run("rooms", "gold", settings, out=Path(runs, "gold"))
    reader = seal.run("rooms", "sim:novice", settings, out=Path(runs, "novice"))
    for name, result in (("gold", perfect), ("sim:novice", reader)):
        score = result.summary
        print(
            f"{name:<11}score {score.score:.2f}   95% {score.low:.2f} to {score.high:.2f}   "
            f"{score.scored} of {score.total} scored"
        )
    levels = ", ".join(f"{name} {score:.0%}" for name, score in reader.summary.groups.items())
    print(f"by level:  {levels}\n")

    found = seal.diagnose(Path(runs, "novice"))
    print("What failed rollouts failed at, and the slot that could have prevented it:")
    for row in found.profile.rows[:5]:
        place = ".".join(part for part in (row.tool, row.argument) if part)
        print(f"  {row.share:5.0%}  {row.kind:<16}{place:<24}{row.slots[0] if row.slots else '-'}")

    first = next(one for one in found.diagnosed if one.fault)
    turn = next(r for r in reader.rollouts if r.id == first.rollout).turns[first.fault.turn]
    print(f"\nOne of them, {first.rollout}:\n  user: {turn.user}")
    for step in turn.steps:
        for call, result in zip(step.calls, step.results, strict=True):
            print(f"  {call.tool}{call.arguments}\n    -> {result.content}")
    print(f"  fault: {first.fault.kind} at {first.fault.tool}.{first.fault.argument}")
