"""What the local server answers: a plain tool user, and a plain rewriter of slot texts.

Both are deterministic, and know nothing of any environment: they read the request alone.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

_WORD = re.compile(r"[a-z0-9]+")
_ERROR = re.compile(
    r"\b(error|must|invalid|missing|no such|not accepted|wrong|first|instead)\b", re.I
)
_STATED = re.compile(r"\"([^\"]{1,60})\"|'([^']{1,60})'")


def words(text: str) -> set[str]:
    """Lower-case words, plurals cut, little ones left out."""
    return {w.rstrip("s") for w in _WORD.findall(text.lower()) if len(w) > 2}


# The tool user


def act(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """One assistant message: a call on a new request, an answer on its result."""
    last = max(i for i, m in enumerate(messages) if m["role"] == "user")
    request, since = messages[last]["content"], messages[last + 1 :]
    functions = [tool["function"] for tool in tools]
    if not since:
        chosen = _choose(request, functions)
        if chosen is None:
            return _say("Could you tell me more about what you need?")
        return _call(chosen, request, number=len(messages))
    result = since[-1]["content"] or ""
    made = [m for m in since if m.get("tool_calls")]
    if len(made) == 1 and _ERROR.search(result):
        return _retry(made[0], result, request, functions, number=len(messages))
    return _say(f"Done. {result[:200]}")


def _choose(request: str, functions: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The tool whose name and description share the most words with the request."""
    asked = words(request)

    def shared(function: dict[str, Any]) -> float:
        name = words(function["name"].replace("_", " "))
        return 2 * len(asked & name) + len(asked & words(function.get("description") or ""))

    best = max(functions, key=shared, default=None)
    return best if best is not None and shared(best) else None


def _retry(
    made: dict[str, Any], result: str, request: str, functions: list[dict[str, Any]], number: int
) -> dict[str, Any]:
    """The other tool that a message asks for first, or the same one with the values it states."""
    name = made["tool_calls"][0]["function"]["name"]
    for function in functions:
        other = function["name"]
        if other != name and re.search(rf"\b{re.escape(other)}\b.*\bfirst\b", result):
            return _call(function, request, number)
    same = next((f for f in functions if f["name"] == name), None)
    stated = " ".join(a or b for a, b in _STATED.findall(result))
    if same is None or not stated:
        return _say(f"That did not work: {result[:200]}")
    return _call(same, stated, number)


def _call(function: dict[str, Any], text: str, number: int) -> dict[str, Any]:
    schema = function.get("parameters") or {}
    properties = schema.get("properties") or {}
    values = _values(text)
    arguments = {
        name: _fill(properties.get(name) or {}, values, text) for name in schema.get("required", [])
    }
    call = {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": function["name"], "arguments": json.dumps(arguments)},
    }
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _values(text: str) -> dict[str, Iterator[Any]]:
    """What a text offers to fill arguments with, in its order."""
    quoted = [a or b for a, b in _STATED.findall(text)]
    capital = re.findall(r"(?<=\s)[A-Z][\w.-]+", text)
    plain = [w for w in re.findall(r"[\w.-]+", text) if len(w) > 3]
    return {
        "numbers": iter([float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", text)]),
        "words": iter(quoted + capital + plain),
    }


def _fill(schema: dict[str, Any], values: dict[str, Iterator[Any]], text: str) -> Any:
    for option in schema.get("anyOf") or []:
        if option.get("type") != "null":
            return _fill(option, values, text)
    if choices := schema.get("enum") or ([schema["const"]] if "const" in schema else []):
        return next((v for v in choices if str(v).lower() in text.lower()), choices[0])
    if schema.get("type") == "array":
        return [_fill(schema.get("items") or {}, values, text)]
    if schema.get("type") == "object":
        inner = schema.get("properties") or {}
        return {n: _fill(inner[n], values, text) for n in schema.get("required", [])}
    return _simple(str(schema.get("type")), values)


def _simple(kind: str, values: dict[str, Iterator[Any]]) -> Any:
    if kind in ("integer", "number"):
        number = next(values["numbers"], 1.0)
        return int(number) if kind == "integer" else number
    return True if kind == "boolean" else next(values["words"], "text")


def _say(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


# The rewriter


def rewrite(request: dict[str, Any]) -> str:
    """Typed fields, in whichever form the prompt asks for."""
    prompt = "\n".join(str(m.get("content") or "") for m in request["messages"])
    evidence = _evidence(prompt)
    if evidence is None:
        return "ok"
    text = compose(evidence)
    rows = evidence["rows"]
    seen = f"{rows[0]['kind']} in {rows[0]['share']:.0%} of failures" if rows else "no failures"
    fields = {"text": text, "rationale": f"The profile shows {seen}; the facts say what is taken."}
    asks = str(request["messages"][-1].get("content") or "")
    if request.get("response_format") or "JSON object" in asks.rpartition("Respond with")[2]:
        return json.dumps(fields)
    return "".join(f"[[ ## {n} ## ]]\n{v}\n\n" for n, v in fields.items()) + "[[ ## completed ## ]]"


def _evidence(prompt: str) -> dict[str, Any] | None:
    """The JSON object of evidence in a prompt; the last one, as examples may come before."""
    for match in reversed(list(re.finditer(r"\{\s*\"slot\"", prompt))):
        try:
            found, _ = json.JSONDecoder().raw_decode(prompt, match.start())
        except ValueError:
            continue
        if isinstance(found, dict) and isinstance(found.get("slot"), dict):
            return found
    return None


_SENTENCES = {
    "requires": "Call {requires} first.",
    "format": "Write it like {format}.",
    "unit": "Give it in {unit}.",
    "allowed": "Use one of {allowed}.",
    "minimum": "At least {minimum}.",
    "maximum": "At most {maximum}.",
}


def compose(evidence: dict[str, Any]) -> str:
    """A text within the budget, of the facts and placeholders that the evidence lists."""
    slot, rows = evidence["slot"], evidence["rows"]
    if evidence["current"] and any(row["kind"] == "limit_reached" for row in rows):
        return ""
    if slot["kind"] == "guidance":
        sentences = list(_guidance({row["kind"] for row in rows})) or [evidence["current"]]
    elif slot["kind"] == "affordance":
        sentences = list(_plain(evidence["facts"]))
    else:
        offered = [key for key in _SENTENCES if key in evidence["placeholders"]]
        known = {fact.rpartition(".")[2] for fact in evidence["facts"]}
        # A recovery text meets errors whose rule is known only then: a sentence without a value
        # is dropped. In a constraint text a sentence without a fact would never be seen.
        use = offered if slot["kind"] == "recovery" else [key for key in offered if key in known]
        sentences = [_SENTENCES[key] for key in use]
        if slot["kind"] == "recovery" and "tool" in evidence["placeholders"]:
            sentences.append("Then call {tool} again.")
    return _within(sentences, slot["max_chars"])


def _guidance(kinds: set[str]) -> Iterator[str]:
    if kinds & {"spurious_call", "argument_missing"}:
        yield "If the user has not said something that a call needs, ask for it and call nothing."
    if kinds & {"no_call", "missing_call"}:
        yield "Do everything the user asks for before answering."


def _plain(facts: dict[str, str]) -> Iterator[str]:
    for name, value in facts.items():
        argument, _, key = name.rpartition(".")
        value = value.replace("{", "{{").replace("}", "}}")
        if key == "requires":
            yield f"Call {value} first."
        elif key in _SENTENCES and argument:
            yield f"The {key} of {argument}: {value}."


def _within(sentences: list[str], most: int) -> str:
    text = ""
    for sentence in sentences:
        longer = f"{text} {sentence}".strip()
        if len(longer) <= most:
            text = longer
    return text
