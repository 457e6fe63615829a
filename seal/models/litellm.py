"""One client for every hosted or local model, and the policy that acts through it.

Both the policy and the rewriter call models through `LanguageModel`: retries, budget, cassette and
the wording of failures are the same for both.
"""

import json
import random
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from seal.config import ModelConfig
from seal.errors import ConfigError, ModelFailure, blame
from seal.models.budget import Budget
from seal.models.cassette import Cassette, RecordedAnswer, open_cassette, request_key
from seal.models.failures import Failed, read_failure, say, shown_url
from seal.models.protocol import Message, PolicyInput, Reply
from seal.models.provider import Provider
from seal.models.wire import message_on_wire, read_calls, tool_on_wire
from seal.types import RenderedTool, Sampling, ToolCall, Usage, content_hash

BACKOFF_S = 1.0
"""Mean wait before the first further try; it doubles with every one after."""
LONGEST_WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer: text, calls as the model wrote them, and what it cost."""

    content: str
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)


class LanguageModel:
    """A chat model behind litellm; `complete` may be called from several threads.

    Args:
        model: A litellm name such as `openai/gpt-4.1-mini` or `ollama/qwen3`.
        config: Sampling, retries and timeout.
        base_url: The address of a compatible server; None: the provider's own.
        budget: Money shared with other clients; None: spending is only counted.
        cassette: Recorded answers; requests that it holds are not made.
        seed: What the waits between tries are drawn from, and the default seed of requests.
        backoff_s: Mean wait before the first further try, in seconds.
    """

    def __init__(
        self,
        model: str,
        config: ModelConfig | None = None,
        *,
        base_url: str | None = None,
        budget: Budget | None = None,
        cassette: Cassette | None = None,
        seed: int = 0,
        backoff_s: float = BACKOFF_S,
    ) -> None:
        self.model = model
        self.config = config or ModelConfig()
        self.base_url = base_url
        self.budget = budget or Budget()
        self.seed = seed
        self._cassette = cassette
        self._backoff_s = backoff_s
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._usage = Usage()

    @property
    def sampling(self) -> Sampling:
        """The settings of a request that names none."""
        return Sampling(temperature=self.config.temperature, max_tokens=self.config.max_tokens)

    def spent(self) -> Usage:
        """What all calls of this client cost so far; replayed answers cost nothing."""
        with self._lock:
            return self._usage

    @property
    def price_known(self) -> bool:
        """Whether spending can be counted; a budget cannot hold where it is not."""
        return self._provider.prices is not None

    def check(self, *, tools: bool = False) -> None:
        """Find what would make every call fail, before the first one is made.

        With a cassette nothing is checked: it may hold all the answers.

        Args:
            tools: Whether requests will hold tools.

        Raises:
            ConfigError: The base URL has no scheme.
            MissingExtra: litellm is not installed.
            ModelFailure: The name means no provider, its key is missing, the model is known to
                accept no tools, or nothing listens at the base URL.
        """
        if self._cassette is not None:
            return
        provider = self._provider
        if tools:
            provider.check_tools()
        if self.base_url:
            _connect(self.model, self.base_url)

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[RenderedTool] = (),
        *,
        sampling: Sampling | None = None,
        seed: int | None = None,
    ) -> Completion:
        """One answer to a dialogue.

        Args:
            messages: The dialogue, oldest first.
            tools: Passed natively; none: the model answers in text.
            sampling: None: the client's.
            seed: Sent where the provider knows seeds; None: the client's.

        Raises:
            MissingExtra: litellm is not installed.
            BudgetReached: The call could cost more than what is left.
            ModelFailure: The model could not be called; the message holds no secret.
        """
        sampling = sampling or self.sampling
        seed = self.seed if seed is None else seed
        wire, functions = [message_on_wire(m) for m in messages], [tool_on_wire(t) for t in tools]
        key = request_key(self.model, wire, functions, sampling, seed)
        if self._cassette and (known := self._cassette.find(key)):
            return Completion(known.content, known.calls)
        request: dict[str, Any] = {
            "messages": wire,
            "temperature": sampling.temperature,
            "max_tokens": sampling.max_tokens,
            "seed": seed,
        }
        if functions:
            self._provider.check_tools()
            request["tools"] = functions
        with self.budget.reserve(self._most(request)) as charges:
            done = self._read(self._try(request), messages)
            charges.append(done.usage.dollars)
        with self._lock:
            self._usage += done.usage
        if self._cassette is None:
            return done
        kept = self._cassette.record(
            RecordedAnswer(
                key=key,
                model=self.model,
                content=done.content,
                calls=done.calls,
                usage=done.usage,
            )
        )
        return Completion(kept.content, kept.calls, done.usage)

    def _try(self, request: Mapping[str, Any]) -> Any:  # noqa: ANN401 - litellm's response
        """Call until it works, fails for good, or tries run out."""
        provider = self._provider
        for attempt in range(self.config.retries + 1):
            try:
                with blame(ModelFailure, self.model):
                    return provider.library.completion(
                        model=provider.model,
                        api_base=self.base_url,
                        api_key=provider.key,
                        timeout=self.config.timeout_s,
                        drop_params=True,
                        num_retries=0,
                        max_retries=0,
                        **request,
                    )
            except ModelFailure as failure:
                failed = read_failure(
                    failure.__cause__ or failure, tools="tools" in request, base_url=self.base_url
                )
            if not failed.passing or attempt == self.config.retries:
                # Outside the `except`: a chained cause could show a key in a traceback.
                raise self._failure(failed, attempt + 1)
            time.sleep(self._wait(attempt, failed))
        raise AssertionError("the last try returns or raises")

    def _failure(self, failed: Failed, tries: int) -> ModelFailure:
        return say(
            failed,
            model=self.model,
            key=self._provider.key_name,
            base_url=self.base_url,
            tries=tries,
        )

    def _wait(self, attempt: int, failed: Failed) -> float:
        """Seconds until the next try: doubling, spread by half, or what the server asked for."""
        with self._lock:
            spread = self._random.uniform(0.5, 1.5)
        own = self._backoff_s * 2.0**attempt * spread
        return min(max(own, failed.wait_s or 0.0), LONGEST_WAIT_S)

    @cached_property
    def _provider(self) -> Provider:
        if self.base_url and not self.base_url.startswith(("http://", "https://")):
            raise ConfigError(
                f"--base-url {shown_url(self.base_url)}: this is no address of a server.\n"
                "Write it with its scheme, such as http://127.0.0.1:8000/v1"
            )
        return Provider(self.model, own_server=self.base_url is not None)

    def _most(self, request: Mapping[str, Any]) -> float:
        """The most that a request can cost: two bytes a token is dense text in any language."""
        prices = self._provider.prices if self.budget.dollars is not None else None
        if prices is None:
            return 0.0
        sent = {"messages": request["messages"], "tools": request.get("tools", [])}
        prompt = len(json.dumps(sent, ensure_ascii=False).encode()) / 2
        return prompt * prices[0] + int(request["max_tokens"]) * prices[1]

    def _read(self, response: Any, dialogue: Sequence[Message]) -> Completion:  # noqa: ANN401
        """The first choice of an answer, and what it cost."""
        choices = getattr(response, "choices", None)
        if not choices:
            raise ModelFailure(
                f"{self.model}: the server answered without a message.\n"
                "Check that it speaks the OpenAI chat API."
            )
        message = choices[0].message
        return Completion(
            str(message.content or ""),
            read_calls(message.tool_calls or (), dialogue),
            self._usage_of(response),
        )

    def _usage_of(self, response: Any) -> Usage:  # noqa: ANN401
        counted = getattr(response, "usage", None)
        prompt = int(getattr(counted, "prompt_tokens", None) or 0)
        completion = int(getattr(counted, "completion_tokens", None) or 0)
        dollars, provider = 0.0, self._provider
        if provider.prices is not None:
            dollars = prompt * provider.prices[0] + completion * provider.prices[1]
            # litellm knows about cached and tiered tokens, but not about every answer.
            with suppress(ModelFailure), blame(ModelFailure, self.model):
                dollars = float(provider.library.completion_cost(completion_response=response))
        return Usage(calls=1, prompt_tokens=prompt, completion_tokens=completion, dollars=dollars)


class LiteLLMPolicy:
    """A policy that is any model litellm can call; it reads messages and tools, nothing else.

    Args:
        name: What the user called it, stamped on its rollouts.
        client: The model; may be shared.
    """

    def __init__(self, name: str, client: LanguageModel) -> None:
        self.name = name
        self.client = client
        self.version = client.model

    @property
    def price_known(self) -> bool:
        """Whether spending can be counted."""
        return self.client.price_known

    def act(self, given: PolicyInput) -> Reply:
        """The model's next message, its calls as it wrote them.

        Raises:
            ModelFailure: The model could not be called, or the budget is reached.
        """
        # Samples of one task must differ, and be the same again in the same run.
        seed = int(content_hash([given.seed, given.sample], 8), 16) >> 1
        done = self.client.complete(given.messages, given.tools, sampling=given.sampling, seed=seed)
        return Reply(done.content, done.calls, done.usage)


def _connect(model: str, base_url: str) -> None:
    """Make sure that something listens at an address."""
    import socket

    try:
        parts = urlsplit(base_url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname or "", port), timeout=5):
            return
    except (OSError, ValueError):
        failed = Failed("unreachable", passing=True, words="", status=None, wait_s=None)
    raise say(failed, model=model, key="", base_url=base_url, tries=1)


def open_language_model(
    model: str,
    config: ModelConfig,
    *,
    base_url: str | None = None,
    budget: Budget | float | None = None,
    seed: int = 0,
) -> LanguageModel:
    """A client as the settings want it, its cassette included.

    Raises:
        ConfigError: The cassette is none.
    """
    return LanguageModel(
        model,
        config,
        base_url=base_url,
        budget=budget if isinstance(budget, Budget) else Budget(budget),
        cassette=open_cassette(Path(config.cassette)) if config.cassette else None,
        seed=seed,
    )


def open_litellm_policy(
    name: str, base_url: str | None, config: ModelConfig, budget: Budget | float | None
) -> LiteLLMPolicy:
    """The policy of a litellm name, after a check that it can be called at all.

    Raises:
        MissingExtra: litellm is not installed.
        ModelFailure: The name, the key, the server or the model's tool support is wrong.
    """
    client = open_language_model(name, config, base_url=base_url, budget=budget)
    client.check(tools=True)
    return LiteLLMPolicy(name, client)
