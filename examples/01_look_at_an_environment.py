"""Look at an environment: what the policy reads, what it may not read, and what can be rewritten.

Run it with: python examples/01_look_at_an_environment.py
"""

import seal

rooms = seal.load_environment("rooms")
print(rooms.renderer.prompt(rooms.original), end="\n\n")

# The words are all that a policy knows of a tool; the rules behind them live in the contract.
booking = rooms.renderer.tools(rooms.original)["book_room"]
print(f"What the policy reads of {booking.name}:\n  {booking.description}")
for name, schema in booking.parameters["properties"].items():
    print(f"  {name}: {schema['description']}")

print("\nWhat the world demands of it, read or not:")
contract = rooms.contract["book_room"]
for argument, rule in contract.rules.items():
    print(f"  {argument}: {rule.stated()}")

# One task is pure data: what the user says, and the calls of a perfect agent.
task = rooms.tasks("train")[3]
print(f"\nTask {task.id} ({task.group}):")
for turn in task.turns:
    print(f"  user: {turn.user}")
    for call in turn.gold or ():
        print(f"  gold: {call.tool} {call.arguments}")
    if turn.gold == ():
        print("  gold: no call; ask or decline")

# Another convention seed is another house with the same tools.
for name in ("rooms", "rooms@1", "rooms@2"):
    rules = seal.load_environment(name).contract["book_room"].rules
    print(
        f"\nIn {name}, a day is written {rules['day'].format}, a length in {rules['length'].unit}."
    )

child = rooms.original.with_texts({"book_room.constraint.length": "Give it in {unit}."})
print(f"\n{len(rooms.renderer.slots)} slots may be rewritten. Candidate {child.id} changes one:")
evolved = rooms.renderer.tools(child)["book_room"].parameters["properties"]["length"]
print(f"  length: {evolved['description']}")
