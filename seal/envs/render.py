"""From contract, author templates and slot texts to what the policy reads.

JSON is built here, from the contract and rendered blocks; no template ever emits JSON.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from seal.envs.contract import Contract, Tool
from seal.envs.environment import Conventions
from seal.envs.slots import (
    BUDGETS,
    constraint_values,
    fill,
    parse_text,
    recovery_values,
    rule_values,
)
from seal.envs.words import Lookup, WordFile, WordFiles
from seal.errors import TemplateError, did_you_mean
from seal.types import (
    CallError,
    Candidate,
    RecoveryKind,
    RenderedTool,
    Rule,
    Slot,
    SlotKind,
    ToolContract,
)

TOOL_RECOVERIES: tuple[RecoveryKind, ...] = (
    "argument_missing",
    "argument_unexpected",
    "argument_type",
    "argument_value",
    "refused",
)
SYSTEM_RECOVERIES: tuple[RecoveryKind, ...] = ("malformed_call", "unknown_tool")
SYSTEM = "system"


def argument_paths(tool: ToolContract) -> list[str]:
    """Every argument of a tool, nested ones as `outer.inner`."""
    return [path for path, _ in _walk(tool.parameters, "")]


def _walk(schema: JsonValue, prefix: str) -> Iterator[tuple[str, dict[str, JsonValue]]]:
    if not isinstance(schema, dict):
        return
    properties = schema.get("properties")
    for name, inner in (properties if isinstance(properties, dict) else {}).items():
        if isinstance(inner, dict):
            yield f"{prefix}{name}", inner
            yield from _walk(inner, f"{prefix}{name}.")
            yield from _walk(inner.get("items"), f"{prefix}{name}.")


def _block_of(path: str) -> str | None:
    """The block that overrides one argument's words, if its name can be a block's."""
    name = path.replace(".", "__")
    return f"parameter_{name}" if name.isidentifier() else None


class Renderer:
    """The words of one environment: its slots, and rendering under any candidate."""

    def __init__(
        self,
        folder: Path,
        defaults: Path,
        contract: Contract,
        conventions: Conventions,
        description: str,
        budgets: Mapping[SlotKind, int],
    ) -> None:
        self._contract = contract
        self._conventions = conventions
        self._description = description
        self._budgets = {**BUDGETS, **budgets}
        if SYSTEM in contract.tools:
            raise TemplateError(
                f"{folder}: a tool may not be called '{SYSTEM}'.\n"
                "The slots and the file of that name are those of the system prompt."
            )
        files = WordFiles(folder, defaults)
        problems: list[str] = []
        self._files: dict[str, WordFile] = {}
        for name, tool in contract.tools.items():
            blocks = {"description", "parameter", *(f"recovery_{k}" for k in TOOL_RECOVERIES)}
            blocks |= {b for path in argument_paths(tool.contract) if (b := _block_of(path))}
            self._load(files, name, f"tools/{name}.jinja", "_tool.jinja", blocks, problems)
        blocks = {"prompt", *(f"recovery_{k}" for k in SYSTEM_RECOVERIES)}
        self._load(files, SYSTEM, "system.jinja", "_system.jinja", blocks, problems)
        if (folder / "tools").is_file():
            problems.append(f"{folder / 'tools'}: a file; words of tools are in a folder so named.")
        for path in sorted((folder / "tools").glob("*.jinja")):
            if path.stem not in contract.tools:
                problems.append(
                    f"{path}: no tool '{path.stem}'.\nTools: {', '.join(contract.tools)}."
                    + did_you_mean(path.stem, contract.tools)
                )
        if problems:
            raise TemplateError("\n".join(problems))
        self.printed: dict[str, int] = {}
        """How often its block prints each slot text that there could be; a slot is printed once."""
        self.slots: dict[str, Slot] = {slot.id: slot for slot in self._discover()}

    def _load(
        self,
        files: WordFiles,
        key: str,
        name: str,
        base: str,
        blocks: set[str],
        problems: list[str],
    ) -> None:
        try:
            self._files[key] = files.load(name, base, blocks)
        except TemplateError as cause:
            problems.append(str(cause))

    def _discover(self) -> Iterator[Slot]:
        """Slots whose sentinel appears exactly once in the block it belongs to."""
        potential = list(self._potential_slots())
        sentinels = {slot.id: f"\u27e6{number}\u27e7" for number, slot in enumerate(potential)}
        rendered: dict[str, str] = {}
        for slot in potential:
            owner = f"{slot.tool}/{slot.recovery or 'words'}"
            if owner not in rendered:
                rendered[owner] = self._everything(slot, sentinels)
            self.printed[slot.id] = rendered[owner].count(sentinels[slot.id])
            if self.printed[slot.id] == 1:
                yield slot

    def _potential_slots(self) -> Iterator[Slot]:
        def slot(name: str, kind: SlotKind, **of: Any) -> Slot:  # noqa: ANN401
            return Slot(id=name, kind=kind, max_chars=self._budgets[kind], **of)

        yield slot(f"{SYSTEM}.guidance", "guidance")
        for kind in SYSTEM_RECOVERIES:
            yield slot(f"{SYSTEM}.recovery.{kind}", "recovery", recovery=kind)
        for name, tool in self._contract.tools.items():
            yield slot(f"{name}.affordance", "affordance", tool=name)
            for path in argument_paths(tool.contract):
                yield slot(f"{name}.constraint.{path}", "constraint", tool=name, argument=path)
            for kind in TOOL_RECOVERIES:
                yield slot(f"{name}.recovery.{kind}", "recovery", tool=name, recovery=kind)

    def _everything(self, slot: Slot, texts: Mapping[str, str]) -> str:
        """All the text in which this slot's may appear."""
        if slot.recovery:
            error = CallError(kind=slot.recovery, code="code", message="message")
            return self._recovery_block(slot.tool, error, texts.get(slot.id, ""))
        if slot.tool is None:
            return self._prompt(texts[slot.id])
        return self._tool(self._contract.tools[slot.tool], texts).words()

    def problems_of(self, texts: Mapping[str, str]) -> list[str]:
        """Why these slot texts cannot be rendered: unknown slots, wrong placeholders, length."""
        problems = []
        for slot_id, text in texts.items():
            slot = self.slots.get(slot_id)
            if slot is None:
                problems.append(self.absence(slot_id))
                continue
            if len(text) > slot.max_chars:
                problems.append(f"{slot_id}: {len(text)} characters, at most {slot.max_chars}.")
            try:
                parse_text(text, slot.kind)
            except ValueError as cause:
                problems.append(f"{slot_id}: {cause}.")
        return problems

    def absence(self, slot_id: str) -> str:
        """Why there is no such slot."""
        times = self.printed.get(slot_id)
        if times is None:
            return f"no slot '{slot_id}' in the words.{did_you_mean(slot_id, self.slots)}"
        if times == 0:
            return f"'{slot_id}' is not printed whole by its block, so it is no slot."
        count = "twice" if times == 2 else f"{times} times"
        return f"'{slot_id}' appears {count} in the block, so it is no slot; print it once."

    def sources(self) -> list[str]:
        """The text of every template file, those for recoveries included."""
        return [words.source for _, words in sorted(self._files.items())]

    def prompt(self, candidate: Candidate) -> str:
        """The system prompt under a candidate."""
        return self._prompt(fill(candidate.texts.get(f"{SYSTEM}.guidance", ""), "guidance", {}))

    def tools(self, candidate: Candidate) -> dict[str, RenderedTool]:
        """Every tool as the policy reads it under a candidate, by name."""
        rendered = {}
        for name, tool in self._contract.tools.items():
            texts = {
                slot.id: self._filled(slot, candidate)
                for slot in self._slots_of(name)
                if slot.kind != "recovery"
            }
            rendered[name] = self._tool(tool, texts)
        return rendered

    def _slots_of(self, tool: str) -> Iterator[Slot]:
        prefix = f"{tool}."
        return (slot for key, slot in self.slots.items() if key.startswith(prefix))

    def _filled(self, slot: Slot, candidate: Candidate) -> str:
        text = candidate.texts.get(slot.id, "")
        if slot.tool is None or slot.argument is None:
            return fill(text, slot.kind, {})
        values = constraint_values(self._contract[slot.tool], slot.argument)
        return fill(text, slot.kind, values)

    def recovery(
        self, tool: str | None, error: CallError, candidate: Candidate
    ) -> tuple[str, str | None]:
        """What the policy is told about a failed call, and the slot whose text is in it."""
        owner = tool if error.kind in TOOL_RECOVERIES else None
        slot_id = f"{owner or SYSTEM}.recovery.{error.kind}"
        contract = self._contract[tool] if tool and tool in self._contract.tools else None
        values = recovery_values(contract, error.rule, error.argument, error.received)
        text = fill(candidate.texts.get(slot_id, ""), "recovery", values)
        content = self._recovery_block(owner, error, text)
        return content, slot_id if text and slot_id in self.slots else None

    def _recovery_block(self, tool: str | None, error: CallError, text: str) -> str:
        contract = self._contract[tool] if tool else None
        values = recovery_values(contract, error.rule, error.argument, error.received)
        shown = {
            **values,
            "kind": error.kind,
            "code": error.code,
            "message": error.message,
            "argument": error.argument or "",
        }
        context = {
            "error": Lookup("error", shown),
            "recovery": text,
            "tool": tool or "",
            "conventions": self._conventions,
        }
        return self._files[tool or SYSTEM].render(f"recovery_{error.kind}", context)

    def _prompt(self, guidance: str) -> str:
        context = {
            "guidance": guidance,
            "prose": self._description,
            "conventions": self._conventions,
        }
        return self._files[SYSTEM].render("prompt", context)

    def _tool(self, tool: Tool, texts: Mapping[str, str]) -> RenderedTool:
        name = tool.contract.name
        paths = argument_paths(tool.contract)
        shared = {
            "tool": name,
            "conventions": self._conventions,
            "affordance": texts.get(f"{name}.affordance", ""),
            "constraint": Lookup(
                "constraint", {p: texts.get(f"{name}.constraint.{p}", "") for p in paths}
            ),
        }
        words = self._files[name]
        described = {}
        for path in paths:
            block = _block_of(path)
            rule = tool.contract.rules.get(path.split(".")[0], Rule())
            described[path] = words.render(
                block if block in words.blocks else "parameter",
                {
                    **shared,
                    "argument": path,
                    "prose": tool.prose.parameters.get(path, ""),
                    "rule": Lookup("rule", rule_values(rule)),
                },
            )
        description = words.render(
            "description",
            {
                **shared,
                "prose": tool.prose.description,
                "rule": Lookup("rule", rule_values(tool.contract.rule)),
            },
        )
        parameters = _describe(tool.contract.parameters, described, "")
        return RenderedTool(name=name, description=description, parameters=parameters)


def _describe(schema: Any, described: Mapping[str, str], prefix: str) -> Any:  # noqa: ANN401
    """The schema with a description at every argument that has one."""
    if not isinstance(schema, dict):
        return schema
    result = dict(schema)
    if isinstance(items := schema.get("items"), dict):
        result["items"] = _describe(items, described, prefix)
    if isinstance(properties := schema.get("properties"), dict):
        result["properties"] = {
            name: {
                **_describe(inner, described, f"{prefix}{name}."),
                **({"description": d} if (d := described.get(f"{prefix}{name}")) else {}),
            }
            for name, inner in properties.items()
        }
    return result
