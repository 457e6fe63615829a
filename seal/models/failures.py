"""What went wrong at a model server, said in one message that can hold no secret.

Nothing that a server or a client library says is trusted to be free of keys: texts are quoted
briefly, never where a key was the matter, and only after everything that looks like one is masked.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, urlsplit

from seal.errors import ModelFailure

_QUOTED_CHARS = 200
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_SECRET_CHARS = 6
"""Shorter values of such variables are no secrets, and masking them would garble a message."""
_SECRET_FORM = re.compile(
    r"\b(?:sk|pk|rk|key|xai|gsk|hf|pplx|nvapi|AIza|AKIA|ghp|eyJ)[-_]?[\w*.\-]{8,}"
    r"|\b(?:bearer|basic)\s+[\w*.\-+/=]{6,}"
    r"|(?<=://)[^/\s@]+@",
    re.IGNORECASE,
)
_NO_TOOLS = re.compile(
    r"(support|enable|require|unknown|unrecogni[sz]ed|unsupported|extra|jinja|not permitted)"
    r"[^.]{0,80}\b(tools?|functions?|function.calling)\b"
    r"|\b(tools?|tool.choice|tool.use|functions?|function.calling)\b[^.]{0,80}"
    r"(support|enable|require|unrecogni[sz]ed|unsupported|not allowed|not permitted|jinja)",
    re.IGNORECASE,
)
_CONTEXT = re.compile(
    r"context.{0,12}(length|window|size)|maximum context|too many tokens|prompt is too long",
    re.IGNORECASE,
)
_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota")
_UNREACHABLE = {"ConnectError", "ConnectionRefusedError", "gaierror", "UnsupportedProtocol"}
_TIMEOUT = {"Timeout", "APITimeoutError", "TimeoutException"}

Cause = Literal[
    "unreachable", "timeout", "busy", "key", "quota", "no_tools", "no_model", "too_long", "other"
]


@dataclass(frozen=True, slots=True)
class Failed:
    """How one call failed: the sort, whether trying again can help, and the server's words."""

    cause: Cause
    passing: bool
    words: str
    status: int | None
    wait_s: float | None
    """Seconds the server asked to be left alone; None if it named none."""


def shown_url(url: str) -> str:
    """An address without user, password and query, fit for a message.

    >>> shown_url("http://ann:pw@127.0.0.1:8000/v1?key=x")
    'http://127.0.0.1:8000/v1'
    """
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "the given address"
    scheme = f"{parts.scheme}://" if parts.netloc else ""
    host = f"{parts.hostname or ''}{port}"
    return f"{scheme}{host}{parts.path.rpartition('@')[2]}"


def secrets(environment: Mapping[str, str], base_url: str | None) -> set[str]:
    """The texts that no message may hold: keys in the environment, user and password of a URL."""
    keys = {value for name, value in environment.items() if _SECRET_NAME.search(name)}
    userinfo, _, _ = (base_url or "").rpartition("@")
    parts = [part for part in re.split(r"[:/]+", userinfo.partition("://")[2]) if part]
    return {key for key in keys if len(key) >= _SECRET_CHARS} | {
        form for part in parts for form in (part, unquote(part))
    }


def masked(text: str, base_url: str | None) -> str:
    """The start of a foreign text on one line, with everything that may be a key masked."""
    line = " ".join(text.split())
    for secret in sorted(secrets(os.environ, base_url), key=len, reverse=True):
        line = line.replace(secret, "[masked]")
    line = _SECRET_FORM.sub("[masked]", line)
    return line if len(line) <= _QUOTED_CHARS else f"{line[: _QUOTED_CHARS - 1]}…"


def chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and what led to it, the nearest first."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def read_failure(error: BaseException, *, tools: bool, base_url: str | None) -> Failed:
    """Sort a client library's exception by what it means for the caller.

    Args:
        error: What the library raised.
        tools: Whether the request held tools, so that their refusal can be told.
        base_url: The server's address, whose user and password are masked.
    """
    links = list(chain(error))
    status = next((s for e in links if isinstance(s := getattr(e, "status_code", None), int)), None)
    names = {kind.__name__ for e in links for kind in type(e).__mro__}
    said = str(error)
    cause = _cause(names, status, said, tools=tools)
    passing = cause in ("unreachable", "timeout", "busy")
    return Failed(cause, passing, masked(_server_words(said), base_url), status, _wait(links))


def _cause(names: set[str], status: int | None, said: str, *, tools: bool) -> Cause:
    """The first sort that fits; client libraries blur them, so the order matters."""
    code = status or 0
    fits: list[tuple[Cause, object]] = [
        ("unreachable", names & _UNREACHABLE),
        ("timeout", names & _TIMEOUT),
        ("key", code in (401, 403) or "Missing credentials" in said),
        ("quota", code == 402 or _QUOTA.search(said)),
        ("no_tools", tools and code != 429 and _NO_TOOLS.search(said)),
        ("too_long", "ContextWindowExceededError" in names),
        ("too_long", code == 400 and _CONTEXT.search(said)),
        ("no_model", code == 404),
        ("busy", code in (408, 429) or code >= 500),
    ]
    return next((cause for cause, fit in fits if fit), "other")


def _server_words(said: str) -> str:
    """What is left of a message without the client library's own prefixes."""
    return re.sub(r"^(?:[\w.]*(?:Error|Exception|Timeout)\b[:\s-]*)+", "", said) or said


def _wait(links: list[BaseException]) -> float | None:
    for link in links:
        headers = getattr(getattr(link, "response", None), "headers", None)
        value = headers.get("retry-after") if headers is not None else None
        if value is not None and str(value).replace(".", "", 1).isdigit():
            return float(value)
    return None


def say(failed: Failed, *, model: str, key: str, base_url: str | None, tries: int) -> ModelFailure:
    """The message for the user.

    Args:
        failed: How the last try failed.
        model: The model's name as the user gave it.
        key: The environment variable that holds the model's key.
        base_url: The server's address, if the user gave one.
        tries: How often the call was made.
    """
    url = shown_url(base_url) if base_url else None
    where = f" at {url}" if url else ""
    again = f" ({tries} tries)" if tries > 1 else ""
    words = f": {failed.words}" if failed.words else ""
    texts: dict[Cause, str] = {
        "unreachable": (
            f"{model}: no model server answers{where}{again}.\n"
            "Start it, or point to one that runs with --base-url "
            "(--rewriter-base-url for the rewriter).\n"
            + (f"See whether it is up with: curl {url}/models" if url else "Is the network up?")
        ),
        "timeout": (
            f"{model}: the server{where} gave no answer in time{again}.\n"
            "Allow more with --set model.timeout_s=300, or call it less at once with -j 1."
        ),
        "busy": (
            f"{model}: the server{where} answered {failed.status}{again}{words}.\n"
            "Call it less at once with -j 1, or try more often with --set model.retries=8."
        ),
        "key": (
            f"{model}: the server{where} refused the key, or there is none.\n"
            f"Put a valid one into the environment: export {key}=..."
        ),
        "quota": (
            f"{model}: the account behind the key in {key} has no credit left.\n"
            "Add credit there, or choose another model with -m."
        ),
        "no_tools": (f"{model}: this model does not accept tools{where}{words}.\n" + TOOLS_NEEDED),
        "no_model": (
            f"{model}: the server{where} has no such model{words}.\n"
            + (f"See its models with: curl {url}/models" if url else "Check the name after '/'.")
        ),
        "too_long": (
            f"{model}: the dialogue is longer than the model can read{words}.\n"
            "Choose a model with a larger context window with -m."
        ),
        "other": (
            f"{model}: the call failed{where}"
            + (f" with {failed.status}" if failed.status else "")
            + f"{words}.\nCheck the name and the settings of the model."
        ),
    }
    return ModelFailure(texts[failed.cause])


TOOLS_NEEDED = (
    "A policy acts by calling tools: use a model and a server that do native tool calling, such as "
    "openai/gpt-4.1-mini, ollama/qwen3, or vLLM with --enable-auto-tool-choice and its "
    "--tool-call-parser."
)
