"""Which slots could have prevented a diagnosis, the best one first."""

from collections.abc import Mapping, Sequence

from seal.envs.render import SYSTEM, SYSTEM_RECOVERIES
from seal.types import Kind

GUIDANCE = f"{SYSTEM}.guidance"


def slots_for(
    kind: Kind,
    tool: str | None,
    argument: str | None,
    *,
    called: Sequence[str] = (),
    texts: Mapping[str, str] | None = None,
) -> list[str]:
    """Slot ids, whether or not the environment has them.

    Args:
        kind: What went wrong.
        tool: The tool it went wrong with; for a call that was not made, the one missing.
        argument: The argument at fault.
        called: The tools called in the turn, most often called first.
        texts: The slot texts in force: what they say may itself be the harm.
    """
    affordance = _of(tool, "affordance")
    prevention = _of(tool, f"constraint.{argument}") if argument else affordance
    slots = prevention
    if kind in SYSTEM_RECOVERIES:
        slots = [f"{SYSTEM}.recovery.{kind}"]
    elif kind in (Kind.LIMIT_REACHED, Kind.OUTPUT_MISSING):
        speaking = [f"{n}.affordance" for n in called if (texts or {}).get(f"{n}.affordance")]
        slots = [*speaking, *affordance, GUIDANCE]
    elif kind in (Kind.SPURIOUS_CALL, Kind.ANSWER_MISMATCH):
        slots = [GUIDANCE, *affordance]
    elif kind in (Kind.MISSING_CALL, Kind.NO_CALL, Kind.WRONG_TOOL):
        slots = [*affordance, GUIDANCE]
    elif kind in (Kind.REFUSED, Kind.RECOVERY_FAILURE):
        slots = [*_of(tool, "recovery.refused"), *prevention]
    elif kind.value.startswith("argument_"):
        slots = [*prevention, *_of(tool, f"recovery.{kind}")]
    return slots


def _of(tool: str | None, slot: str) -> list[str]:
    return [f"{tool}.{slot}"] if tool else []
