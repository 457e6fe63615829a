"""Let the words evolve: rewrites are proposed from diagnoses, and adopted only on evidence.

Run it with: python examples/03_evolve_the_words.py
"""

import seal

# One small generation; the defaults use four larger ones and reach further.
config = seal.EvolveConfig(
    generations=1,
    profile_tasks=60,
    proposals=4,
    screen_scenarios=12,
    gate=seal.GateConfig(scenarios=60, removal_scenarios=20),
)
evolution = seal.evolve("rooms@3", "sim:novice", config=config)

generation = evolution.generations[0]
print(f"{generation.failed} of {generation.profiled} train rollouts failed. Proposed for that:\n")
for patch in generation.patches:
    print(f"{patch.slot}    {patch.verdict}, {patch.support or patch.reason}")
    print(f"  before: {patch.before or '(empty)'}")
    print(f"  after:  {patch.after or '(empty)'}")
    for behind in patch.evidence[:1]:
        print(f"  because {behind.share:.0%} of the failures are: {behind.row}\n")

for test in generation.gates:
    if test.test != "removal":
        print(
            f"gate, {test.test} of {len(test.slots)}: {test.verdict} after {test.pairs} scenarios "
            f"({test.wins} won, {test.losses} lost; {test.reason})"
        )

result = evolution.test
print(
    f"\nOn {result.pairs} test scenarios that no stage has looked at: "
    f"{result.first:.2f} with the original words, {result.second:.2f} with the evolved ones\n"
    f"(difference {result.effect:+.2f}, 95% {result.low:+.2f} to {result.high:+.2f}; simulated)"
)
