"""What `worlds_elsewhere` runs in another process: prints of tasks, as one line of JSON."""

import json
import sys

from seal.envs.registry import load_environment
from seal.soundness.worlds import prints


def main() -> None:
    """Read an environment and task ids from stdin, write their prints to stdout."""
    given = json.load(sys.stdin)
    template = load_environment(given["environment"])
    wanted = set(given["tasks"])
    tasks = [task for task in template.tasks(None) if task.id in wanted]
    answer = {task.id: prints(template, task) for task in tasks}
    sys.stdout.write(f"\n{json.dumps(answer)}\n")


if __name__ == "__main__":
    main()
