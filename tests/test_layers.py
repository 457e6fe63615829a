"""The shape of the package: a layer imports layers to its left, and files stay short."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAYERS = (
    ("errors",),
    ("types",),
    ("resources",),
    ("records",),
    ("config",),
    ("models",),
    ("envs",),
    ("rollout",),
    ("soundness",),
    ("diagnose",),
    ("evolve", "train"),
    ("loop",),
    ("report",),
    ("cli",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
BANNED = {"utils", "helpers", "common", "base", "core", "manager", "handler", "misc"}
LONGEST = 400


def layer_of(path: Path) -> str:
    return path.relative_to(ROOT / "seal").parts[0].removesuffix(".py")


def imports_of(source: str) -> Iterator[tuple[int, str]]:
    """Line and layer of every import from seal, wherever in the file it stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "seal":
            names = [f"seal.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            continue
        yield from ((node.lineno, name.split(".")[1]) for name in names if name.startswith("seal."))


def wrong_imports(layer: str, source: str) -> list[str]:
    """The imports that a module of this layer may not have."""
    wrong = []
    for line, other in imports_of(source):
        if other == "__version__":
            continue
        known = layer in RANK and other in RANK
        if not known or (other != layer and RANK[other] >= RANK[layer]):
            wrong.append(f"line {line}: {layer} imports {other}")
    return wrong


def package_files() -> list[Path]:
    found = sorted((ROOT / "seal").rglob("*.py"))
    assert found
    # The package's own __init__ is the public door: it stands outside the layers.
    return [path for path in found if path != ROOT / "seal" / "__init__.py"]


@pytest.mark.parametrize("path", package_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_layer_imports_only_layers_to_its_left(path):
    assert wrong_imports(layer_of(path), path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("layer", "source"),
    [
        ("envs", "import seal.cli"),
        ("envs", "def later():\n    from seal.rollout.agent import roll_out"),
        ("evolve", "from seal.train import advantage"),
        ("train", "from seal import evolve"),
        ("types", "from seal.nowhere import thing"),
    ],
)
def test_an_import_to_the_right_is_found(layer, source):
    assert len(wrong_imports(layer, source)) == 1


def test_every_module_of_the_package_is_in_a_layer():
    assert {layer_of(path) for path in package_files()} <= RANK.keys()


def test_no_file_is_longer_than_400_lines():
    long = {
        str(path.relative_to(ROOT)): lines
        for folder in ("seal", "env_templates", "tests", "examples")
        for path in (ROOT / folder).rglob("*.py")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST
    }
    assert long == {}


def test_no_module_has_a_name_that_says_nothing():
    assert [path for path in package_files() if path.stem in BANNED] == []
