"""What `worlds_elsewhere` runs in another process: prints of tasks, as one line of JSON."""

import json
import os
import sys

from seal.envs.registry import load_environment
from seal.soundness.worlds import ANSWER, prints


def main() -> None:
    """Read an environment and task ids from stdin, write their prints to stdout."""
    given = json.load(sys.stdin)
    # Whatever code of the environment does to stdout, the answer goes where it is read.
    stdout = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    template = load_environment(given["environment"])
    wanted = set(given["tasks"])
    tasks = [task for task in template.tasks(None) if task.id in wanted]
    answer = {task.id: prints(template, task) for task in tasks}
    stdout.write(f"\n{ANSWER}{json.dumps(answer)}\n")
    stdout.close()


if __name__ == "__main__":
    main()
