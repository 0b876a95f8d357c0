"""The layers: imports point down only, and the transforms know no primitive by name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import tidu_cli
from tidu_cli.lax.builtin import BUILTIN

ROOT = Path(tidu_cli.__file__).parent
COMMON = {"errors", "limits", "streams", "watching"}
MAY_IMPORT = {
    "errors": set(),
    "limits": {"errors"},
    "streams": set(),
    "watching": set(),
    "graph": COMMON,
    "rules": COMMON | {"graph"},
    "lax": COMMON | {"graph", "rules"},
    "transforms": COMMON | {"graph", "rules", "lax"},
    "runtime": COMMON | {"graph", "rules", "lax"},
    "render": COMMON | {"graph", "rules", "lax"},
    "custom": COMMON | {"graph", "rules", "lax", "transforms"},
    "control_flow": COMMON | {"graph", "rules", "lax", "transforms"},
    "build": COMMON | {"graph", "rules", "lax", "transforms", "custom"},
    "formats": COMMON | {"graph", "rules", "lax", "custom", "runtime", "build"},
    "checking": COMMON | {"graph", "rules", "lax", "transforms", "custom", "runtime", "render"},
    "cluster": COMMON | {"graph", "lax", "transforms", "custom", "runtime", "formats"},
    "cli": COMMON
    | {"graph", "rules", "lax", "transforms", "custom", "runtime", "render", "formats", "checking", "build", "cluster"},
    "arguments": {"errors", "graph", "limits"},
    "api": COMMON
    | {
        "arguments",
        "graph",
        "rules",
        "lax",
        "transforms",
        "custom",
        "runtime",
        "render",
        "formats",
        "build",
        "checking",
        "cluster",
    },
    "__init__": {"api"},
    "__main__": {"cli"},
}
"""What each layer may import besides itself."""

MODULES = sorted(ROOT.rglob("*.py"))


def layer_of(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


def imported_layers(path: Path) -> Iterator[tuple[str, int]]:
    """The layers that a module imports, wherever in it, with their lines."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}:{node.lineno}: a relative import"
            # `from tidu_cli import x` may import a layer by its name.
            modules = [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "tidu_cli" else [str(node.module)]
        else:
            continue
        for module in modules:
            package, _, rest = module.partition(".")
            if package == "tidu_cli" and rest and (ROOT / rest.split(".")[0]).exists() | (ROOT / f"{rest}.py").exists():
                yield rest.split(".")[0], node.lineno


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down_only(path: Path) -> None:
    layer = layer_of(path)
    for imported, line in imported_layers(path):
        assert imported == layer or imported in MAY_IMPORT[layer], f"line {line}: {layer} may not import {imported}"


def imported_modules(path: Path) -> Iterator[Path]:
    """The modules that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            names = [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
            yield from (found for name in names if (found := ROOT.parent / f"{name.replace('.', '/')}.py").is_file())


def test_no_modules_import_one_another() -> None:
    list(TopologicalSorter({path: list(imported_modules(path)) for path in MODULES}).static_order())  # raises CycleError


def string_literals(path: Path) -> Iterator[tuple[str, int]]:
    """The string constants of a module but for docstrings and other bare strings."""
    tree = ast.parse(path.read_text())
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.value, node.lineno


@pytest.mark.parametrize("path", sorted((ROOT / "transforms").rglob("*.py")), ids=lambda p: p.name)
def test_transforms_name_no_primitive(path: Path) -> None:
    names = {primitive.name for primitive in BUILTIN}
    for text, line in string_literals(path):
        assert text not in names, f"line {line}: names the primitive {text}"


def test_the_checks_see_what_they_look_for() -> None:
    assert {layer for layer, _ in imported_layers(ROOT / "transforms" / "transpose.py")} == MAY_IMPORT["transforms"] - {
        "limits",
        "streams",
    } | {"transforms"}
    assert "dot_general" in {text for text, _ in string_literals(ROOT / "lax" / "linear_algebra" / "contraction.py")}
    assert {layer_of(path) for path in MODULES} <= set(MAY_IMPORT)
