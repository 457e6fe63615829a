"""The author's Jinja files: what may stand in them, and rendering one block at a time."""

import re
import traceback
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, FileSystemLoader, StrictUndefined, Template, nodes
from jinja2.exceptions import TemplateError as JinjaError
from jinja2.exceptions import TemplateSyntaxError

from seal.envs.files import author_text
from seal.envs.sandbox import Sandbox, concat
from seal.envs.time_limit import TookTooLong, within
from seal.errors import TemplateError, did_you_mean

_RENDER_ERRORS = (
    JinjaError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What an author's expressions can raise while a block renders."""


class UnknownNameError(Exception):
    """A block asks a `Lookup` for a name that is not in it."""


class Lookup:
    """Names to texts, by item or attribute; unknown names are an error, not an empty text.

    Args:
        owner: What authors call it: `constraint`, `error` or `rule`.
        texts: What there is.
    """

    __slots__ = ("_owner", "_texts")

    def __init__(self, owner: str, texts: Mapping[str, str]) -> None:
        self._owner = owner
        self._texts = texts

    def __getitem__(self, name: str) -> str:
        # Jinja takes a KeyError or an AttributeError for "undefined" and forgets what there is.
        if name not in self._texts:
            raise UnknownNameError(
                f"{self._owner} has no '{name}'.\n"
                f"{self._owner.capitalize()} has: {', '.join(self._texts) or 'nothing'}."
                f"{did_you_mean(str(name), self._texts)}"
            )
        return self._texts[name]

    def __getattr__(self, name: str) -> str:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]


class WordFile:
    """One template file, checked, whose blocks render one by one."""

    def __init__(self, template: Template, chain: list[Template], path: Path) -> None:
        self._template = template
        self._chain = chain
        self.path = path
        self.source = author_text(path) or ""
        """The author's own text; empty where the default stands."""
        self.blocks = frozenset(name for member in chain for name in member.blocks)

    def render(self, block: str, context: Mapping[str, Any]) -> str:
        """One block's text, whitespace collapsed line by line.

        Raises:
            TemplateError: The block uses a name that is not there.
        """
        values = self._template.new_context(dict(context))
        # `new_context` knows this file's own blocks only: without its ancestors' a block that is
        # inherited would be missing, and `super()` would have nowhere to go.
        for ancestor in self._chain[1:]:
            for name, body in ancestor.blocks.items():
                values.blocks.setdefault(name, []).append(body)
        try:
            return within(lambda: tidy(concat(values.blocks[block][0](values))))
        except TookTooLong as cause:
            raise TemplateError(f"{self._place(cause)}: block {block}: {cause}.") from cause
        except UnknownNameError as cause:
            raise TemplateError(f"{self._place(cause)}: block {block}: {cause}") from cause
        except _RENDER_ERRORS as cause:
            undefined = re.fullmatch(r"'(\w+)' is undefined", str(cause))
            raise TemplateError(
                f"{self._place(cause)}: block {block}: {_sentence(cause)}\n"
                f"Names here: {', '.join(sorted(context))}."
                f"{did_you_mean(undefined[1], context) if undefined else ''}"
            ) from cause

    def _place(self, cause: BaseException) -> str:
        """File and line of the author's text; a traceback has those of the compiled code."""
        place = f"{self.path}:1"
        for frame in traceback.extract_tb(cause.__traceback__):
            for member in self._chain:
                if member.filename == frame.filename and frame.lineno:
                    place = f"{frame.filename}:{member.get_corresponding_lineno(frame.lineno)}"
        return place


def tidy(text: str) -> str:
    """Runs of blanks become one, lines lose their ends, and empty lines do not pile up.

    >>> tidy("  Book a room.   ")
    'Book a room.'
    """
    lines = [re.sub(r"[ \t\f\v]+", " ", line).strip() for line in text.splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


class WordFiles:
    """The Jinja files of one environment, and the defaults that they extend."""

    def __init__(self, folder: Path, defaults: Path) -> None:
        self.folder = folder
        self._jinja = Sandbox(
            undefined=StrictUndefined,
            loader=ChoiceLoader(
                [FileSystemLoader(folder, "utf-8-sig"), FileSystemLoader(defaults)]
            ),
            autoescape=False,
        )

    def load(self, name: str, base: str, blocks: Iterable[str]) -> WordFile:
        """The file `name`, or the default `base` where there is none.

        Raises:
            TemplateError: The file's form is wrong, or a block is none of `blocks`.
        """
        path = self.folder / name
        source = author_text(path)
        if source is None:
            template = self._jinja.get_template(base)
            return WordFile(template, [template], path)
        problems = list(self._problems(path, source, base, set(blocks)))
        if problems:
            raise TemplateError("\n".join(problems))
        template = self._jinja.get_template(name)
        return WordFile(template, [template, self._jinja.get_template(base)], path)

    def _problems(self, path: Path, source: str, base: str, known: set[str]) -> Iterator[str]:
        """Everything wrong with a file's form: stray text would silently vanish."""
        try:
            tree = self._jinja.parse(source)
            # Unknown filters and doubled blocks come to light only here.
            self._jinja.compile(source)
        except TemplateSyntaxError as cause:
            yield f"{path}:{cause.lineno}: {_sentence(cause.message)}"
            return
        except (MemoryError, RecursionError, SyntaxError) as cause:
            # Not of Jinja: of the Python that it makes.
            said = cause.msg if isinstance(cause, SyntaxError) else str(cause)
            yield f"{path}: it is nested too deeply ({said or type(cause).__name__})."
            return
        extends = f'{{% extends "{base}" %}}'
        if source.split("\n", 1)[0].strip() != extends:
            yield f"{path}:1: the first line must be exactly {extends}"
            return
        for node in tree.body[1:]:
            yield from self._stray(path, node)
            for block in (node, *node.find_all(nodes.Block)):
                if isinstance(block, nodes.Block) and block.name not in known:
                    yield f"{path}:{block.lineno}: {_unknown_block(path.stem, block.name, known)}"

    @staticmethod
    def _stray(path: Path, node: nodes.Node) -> Iterator[str]:
        if isinstance(node, nodes.Block):
            return
        if isinstance(node, nodes.Output):
            for part in node.nodes:
                text = part.data if isinstance(part, nodes.TemplateData) else "{{ ... }}"
                if text.strip():
                    line = part.lineno + text[: len(text) - len(text.lstrip())].count("\n")
                    yield (
                        f"{path}:{line}: text outside a block: '{text.strip()[:40]}'.\n"
                        "It would vanish; move it into a block."
                    )
            return
        yield (
            f"{path}:{node.lineno}: {type(node).__name__.lower()} outside a block.\n"
            "Only blocks may stand after the first line."
        )


def _sentence(said: object) -> str:
    """What somebody else's error says, with one full stop."""
    return f"{str(said).rstrip('.') or type(said).__name__}."


def _unknown_block(tool: str, name: str, known: set[str]) -> str:
    """The message for a block that no renderer would ever ask for."""
    if name.startswith("parameter_"):
        parameters = sorted(
            n.removeprefix("parameter_") for n in known if n.startswith("parameter_")
        )
        wrong = name.removeprefix("parameter_")
        return (
            f"no parameter '{wrong}' in {tool}.\n"
            f"Parameters: {', '.join(parameters) or 'none'}.{did_you_mean(wrong, parameters)}"
        )
    return f"no block '{name}'.\nBlocks: {', '.join(sorted(known))}.{did_you_mean(name, known)}"
