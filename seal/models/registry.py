"""From what a user types after `-m` to a policy."""

from pathlib import Path

from seal.config import ModelConfig
from seal.errors import ConfigError
from seal.models.budget import Budget
from seal.models.gold import GoldPolicy, ReplayPolicy
from seal.models.protocol import Policy
from seal.models.simulated import SimulatedPolicy
from seal.records import RunFolder

FORMS = (
    "gold, replay:RUN, sim:novice|expert|lost, local:NAME_OR_PATH[+ADAPTER], "
    "or a litellm name such as openai/gpt-4o-mini"
)


def open_policy(
    name: str,
    *,
    base_url: str | None = None,
    config: ModelConfig | None = None,
    budget: Budget | None = None,
) -> Policy:
    """The policy of a name.

    Args:
        name: `gold`, `replay:RUN`, `sim:READER`, `local:NAME` or a litellm name.
        base_url: The server of an OpenAI-compatible model.
        config: How a model is called.
        budget: The money it may spend, shared with others; None: no limit.

    Raises:
        ConfigError: The name is of none of these forms.
        MissingExtra: The model needs packages that are not installed.
    """
    kind, colon, rest = name.partition(":")
    if name == "gold":
        return GoldPolicy()
    if kind == "sim" and colon:
        return SimulatedPolicy(rest)
    if kind == "replay" and rest:
        folder = RunFolder(Path(rest))
        folder.settings()
        return ReplayPolicy(name, folder.rollouts())
    if kind == "local" and rest:
        from seal.models.weights import open_local_policy

        return open_local_policy(name)
    if "/" not in name or kind in ("sim", "replay", "local"):
        raise ConfigError(f"-m {name}: no such model.\nModels: {FORMS}.")
    from seal.models.litellm import open_litellm_policy

    return open_litellm_policy(name, base_url, config or ModelConfig(), budget)
