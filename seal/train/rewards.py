"""What a rollout is worth to the trainer: the verifier's word, or how far it came before its fault.

Pure functions over records. What could not be scored is None here as everywhere: it stays out of
every mean and every gradient.
"""

from seal.types import DiagnosedRollout, Kind, Rollout, Task, UserTurn

CALL_TURN = 1.0
ABSTENTION_TURN = 0.5
"""Weights of turns. Abstaining earns less than acting, else a policy that never acts does well."""
FAILED = 0.5
"""What is left of the progress of a rollout that the verifier refused."""


def outcome_reward(rollout: Rollout) -> float | None:
    """The verifier's word, None if there is none."""
    return rollout.reward


def progress_reward(task: Task, diagnosed: DiagnosedRollout, rollout: Rollout) -> float | None:
    """How far a rollout came, in [0, 1]: 1 if it passed, below 1/2 if it failed.

    A failed rollout earns half of the share of its task, by weight, that lies in turns passed
    before the fault; nothing if no call turn is among them, or if no fault could be placed. So a
    policy can earn nothing by only abstaining, and no failure is worth as much as a success.

    Returns:
        None if the rollout is unscored, or failed and could not be diagnosed.

    Raises:
        ValueError: The three are not about the same rollout.
    """
    if diagnosed.rollout != rollout.id or rollout.task != task.id:
        raise ValueError(
            f"progress of {rollout.id} asked with task {task.id} and the diagnoses of "
            f"{diagnosed.rollout}"
        )
    if rollout.reward is None:
        return None
    if rollout.reward >= 1.0:
        return 1.0
    if any(diagnosis.kind is Kind.UNSCORABLE for diagnosis in diagnosed.diagnoses):
        return None
    passed = [task.turns[index] for index in passed_turns(task, diagnosed)]
    if all(turn.gold == () for turn in passed):
        return 0.0
    return FAILED * sum(map(turn_weight, passed)) / sum(map(turn_weight, task.turns))


def turn_weight(turn: UserTurn) -> float:
    """A turn's share of its task, before division by the sum over all turns."""
    return ABSTENTION_TURN if turn.gold == () else CALL_TURN


def passed_turns(task: Task, diagnosed: DiagnosedRollout) -> list[int]:
    """The turns of a failed rollout that were passed before its fault; empty if it has no fault.

    A turn before the fault's turn is passed if no diagnosis says that its outcome deviates: errors
    that did no harm or were corrected are forgiven, as the verifier forgives them. Two sorts of
    turns are not passed for all that: one that asks for abstention and got a call, however
    harmless, and one that nothing verifies (it has neither gold nor an answer to check).
    """
    if diagnosed.fault is None:
        return []
    spoilt = {d.turn for d in diagnosed.diagnoses if d.deviates or d.kind is Kind.SPURIOUS_CALL}
    return [
        index
        for index, turn in enumerate(task.turns[: diagnosed.fault.turn])
        if index not in spoilt and (turn.gold is not None or turn.answer)
    ]
