"""What litellm knows about a model: provider, key, price, and whether it takes tools."""

import logging
import os
import re
import threading
from functools import cached_property
from typing import Any

from seal.errors import ConfigError, ModelFailure, blame, did_you_mean, missing_extra
from seal.models.failures import TOOLS_NEEDED

_IMPORT = threading.Lock()


def litellm_library() -> Any:  # noqa: ANN401 - an untyped module
    """The litellm package, silent and offline but for the calls we make.

    Raises:
        MissingExtra: It is not installed.
    """
    with _IMPORT:
        # Its price list comes with the package: without this it is fetched at import. In its
        # default mode it would also read a `.env` file from wherever the command runs.
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
        os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
        try:
            import litellm
        except ImportError as cause:
            raise missing_extra("Calling a language model", "lm") from cause
        litellm.telemetry = False
        litellm.suppress_debug_info = True
        for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        return litellm


class Provider:
    """Who serves a model, found without a call.

    Args:
        given: The model's name as the user wrote it.
        own_server: Whether the user gave an address: then no key is demanded, and what is known
            of the hosted model of that name says nothing about its tool support.

    Raises:
        MissingExtra: litellm is not installed.
        ModelFailure: The name means no provider, or its key is missing.
    """

    def __init__(self, given: str, *, own_server: bool) -> None:
        self.given = given
        self.own_server = own_server
        self.library = litellm_library()
        # litellm writes tools into the prompt for `ollama/`; `ollama_chat/` passes them natively.
        self.model: str = re.sub(r"^ollama/", "ollama_chat/", given)
        name = ""
        try:
            with blame(ModelFailure, given):
                name, self.name, _, _ = self.library.get_llm_provider(model=self.model)
        except ModelFailure:
            name = ""
        if not name:
            raise self._unknown()
        missing = self._missing_key()
        if missing and not own_server:
            raise ConfigError(
                f"{given}: the key for {self.name} is not in the environment.\n"
                f"Set it with: export {missing}=...\n"
                "A server of your own needs none: give its address with --base-url."
            )
        self.key = "unused" if missing else None
        """A stand-in where none is needed; None: litellm takes the one in the environment."""

    @property
    def key_name(self) -> str:
        """The environment variable that holds the key."""
        return f"{self.name.upper()}_API_KEY"

    def _unknown(self) -> ConfigError:
        first = self.given.partition("/")[0]
        known = [str(getattr(p, "value", p)) for p in self.library.provider_list]
        return ConfigError(
            f"'{self.given}': no provider and model can be read from this name.\n"
            "Write it as PROVIDER/MODEL, such as openai/gpt-4.1-mini, anthropic/claude-sonnet-4-5 "
            "or ollama/qwen3; for an OpenAI-compatible server openai/MODEL with --base-url."
            + (did_you_mean(first, known) if first not in known else "")
        )

    def _missing_key(self) -> str | None:
        """The variable to set; other credentials, such as those of clouds, are litellm's matter."""
        with blame(ModelFailure, self.given):
            names = [str(n) for n in self.library.validate_environment(self.model)["missing_keys"]]
        return next((name for name in names if name.endswith("_API_KEY")), None)

    def check_tools(self) -> None:
        """Refuse a model that is known not to take tools: litellm would silently drop them.

        Raises:
            ModelFailure: It is.
        """
        with blame(ModelFailure, self.given):
            accepted = self.library.get_supported_openai_params(
                model=self.model.partition("/")[2] or self.model, custom_llm_provider=self.name
            )
        refused = self._listed.get("supports_function_calling") is False and not self.own_server
        if "tools" not in (accepted or ()) or refused:
            raise ModelFailure(f"{self.given}: this model does not accept tools.\n{TOOLS_NEEDED}")

    @cached_property
    def _listed(self) -> dict[str, Any]:
        """The model's entry in litellm's list; empty if it has none."""
        for name in (self.model, self.model.partition("/")[2]):
            entry = self.library.model_cost.get(name)
            if entry and str(entry.get("litellm_provider", "")).startswith(self.name):
                return dict(entry)
        return {}

    @cached_property
    def prices(self) -> tuple[float, float] | None:
        """Dollars of one prompt token and of one completion token; None if unknown."""
        found = [self._listed.get(f"{side}_cost_per_token") for side in ("input", "output")]
        return None if None in found else (float(found[0] or 0), float(found[1] or 0))
