"""What a tool's refusal becomes: an error of the call, with the rules that it cites."""

from typing import Any

from pydantic import ValidationError

from seal.envs.contract import Accepted
from seal.envs.misfits import misfits
from seal.envs.template import EnvironmentTemplate
from seal.errors import EnvironmentFailure, ToolError, did_you_mean
from seal.types import CallError, Rule


def call_error(template: EnvironmentTemplate, accepted: Accepted, refusal: ToolError) -> CallError:
    """The error of a refused call: what it says, and its rules, those of the moment in front.

    Raises:
        EnvironmentFailure: It cites an argument, a rule or a tool that does not exist.
    """
    contract = template.contract[accepted.tool]
    argument = refusal.argument
    if argument is not None and argument not in contract.arguments:
        raise EnvironmentFailure(
            f"{template.name}: {accepted.tool} cites argument '{argument}', which it does not have."
        )
    declared = contract.rules.get(argument, Rule()) if argument else contract.rule
    try:
        cited = Rule.model_validate({k: _rule_value(v) for k, v in refusal.rules.items()})
    except (TypeError, ValueError) as cause:
        found = misfits(cause) if isinstance(cause, ValidationError) else [str(cause)]
        raise EnvironmentFailure(
            f"{template.name}: {accepted.tool} cites a rule that is none: {'; '.join(found)}"
        ) from cause
    if cited.requires is not None and cited.requires not in template.contract.tools:
        raise EnvironmentFailure(
            f"{template.name}: {accepted.tool} cites requires='{cited.requires}', which is no tool."
            f"{did_you_mean(cited.requires, template.contract.tools)}"
        )
    return CallError(
        kind="refused",
        code=refusal.code,
        message=refusal.message,
        argument=argument,
        received=accepted.given.get(argument) if argument else None,
        rule=declared.model_copy(update=cited.stated()),
        masked=refusal.masked,
    )


def _rule_value(value: Any) -> Any:  # noqa: ANN401 - any rule value
    return sorted(value) if isinstance(value, set | frozenset) else value
