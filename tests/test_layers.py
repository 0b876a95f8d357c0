"""The layers: imports point down only, and the transforms know no primitive by name."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import tidu_cli
from tidu_cli.lax.vocabulary import BUILTIN

ROOT = Path(tidu_cli.__file__).parent
COMMON = {"entry_points", "errors", "frozen", "limits", "notes", "streams", "watching"}
"""What serves all layers: it is below them, and the page on architecture does not list it."""

MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "frozen": set(),
    "notes": set(),
    "limits": {"errors", "frozen"},
    "streams": set(),
    "watching": set(),
    "entry_points": {"frozen"},
    "graph": {"errors", "frozen", "limits"},
    "port_data": {"frozen", "graph"},
    "ports": {"graph", "port_data"},
    "installed": {"adapters", "entry_points", "errors", "port_data", "ports"},
    "rules": {"errors", "frozen", "graph"},
    "lax": {"errors", "frozen", "graph", "rules"},
    "transforms": {"errors", "frozen", "graph", "lax", "limits", "rules", "watching"},
    "runtime": {"errors", "frozen", "graph", "installed", "lax", "limits", "ports", "rules", "watching"},
    "render": {"errors", "frozen", "graph", "lax", "rules"},
    "custom": {"entry_points", "errors", "frozen", "graph", "lax", "limits", "rules", "transforms"},
    "control_flow": {"errors", "frozen", "graph", "lax", "limits", "rules", "transforms", "watching"},
    "formats": {
        "custom",
        "errors",
        "frozen",
        "graph",
        "installed",
        "lax",
        "limits",
        "port_data",
        "rules",
        "runtime",
        "streams",
        "watching",
    },
    "checking": {"custom", "errors", "frozen", "graph", "lax", "limits", "port_data", "render", "rules", "runtime", "transforms"},
    "cluster": {
        "custom",
        "errors",
        "formats",
        "frozen",
        "graph",
        "installed",
        "lax",
        "limits",
        "notes",
        "runtime",
        "transforms",
        "watching",
    },
    "sparse": {"errors", "formats", "frozen", "graph", "lax", "limits", "notes", "rules", "transforms"},
    "arguments": {"errors", "graph", "installed", "limits"},
    "options": {"arguments", "errors", "graph", "installed", "limits", "port_data"},
    "adapters": {
        "arguments",
        "checking",
        "cluster",
        "custom",
        "errors",
        "formats",
        "frozen",
        "graph",
        "lax",
        "limits",
        "options",
        "port_data",
        "ports",
        "rules",
        "runtime",
        "transforms",
        "watching",
    },
    "api": {
        "arguments",
        "checking",
        "cluster",
        "custom",
        "errors",
        "formats",
        "frozen",
        "graph",
        "installed",
        "lax",
        "limits",
        "notes",
        "options",
        "port_data",
        "render",
        "rules",
        "runtime",
        "sparse",
        "transforms",
        "watching",
    },
    "cli": {
        "api",
        "checking",
        "custom",
        "errors",
        "formats",
        "frozen",
        "graph",
        "installed",
        "lax",
        "limits",
        "notes",
        "options",
        "port_data",
        "render",
        "rules",
        "runtime",
        "sparse",
        "streams",
        "transforms",
        "watching",
    },
    "__init__": {"adapters", "api", "errors", "graph"},
    "__main__": {"cli"},
}
"""What each layer may import besides itself."""

ADAPTERS = {
    "numpy": set(),
    "jax": {"numpy"},
    "onnx": {"numpy"},
    "stablehlo": {"jax"},
    "native": set(),
    "c": set(),
    "dask": set(),
}
"""What each adapter may import of the others."""

MODULES = sorted(ROOT.rglob("*.py"))

FINDER = "installed"
"""The one layer that imports adapters, by the names in their table."""


def layer_of(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


MOST_LINES, FEW_LINES = 400, 40
"""A file is one idea: of more lines it has several, and of fewer it is a part of one, which files beside it share."""

MOST_SHORT = 20
"""Files of few lines: where programs begin, tables of a room's files, and what only some may import."""

MOST_IN_A_FOLDER = 14


def test_files_are_neither_long_nor_many_of_them_short() -> None:
    lines = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in MODULES}
    assert not {name: n for name, n in lines.items() if n > MOST_LINES}
    short = sorted(name for name, n in lines.items() if 0 < n < FEW_LINES)
    assert len(short) <= MOST_SHORT, f"put those that belong together into one: {short}"


def test_no_folder_has_many_modules() -> None:
    for root in (ROOT, Path(__file__).parent):
        folders = Counter(path.relative_to(root.parent).parent for path in root.rglob("*.py") if path.name != "__init__.py")
        assert not {str(folder): n for folder, n in folders.items() if n > MOST_IN_A_FOLDER}


@cache
def imported_modules(path: Path) -> list[tuple[Path, int]]:
    """The modules that a module imports, wherever in it, with their lines: also those that only types are taken of."""
    modules = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}:{node.lineno}: a relative import"
            # `from tidu_cli.graph import keys` may import a module by its name.
            names = [f"{node.module}.{alias.name}" for alias in node.names] + [str(node.module)]
        else:
            continue
        for name in names:
            place = ROOT.parent / name.replace(".", "/")
            file = next((f for f in (place.with_suffix(".py"), place / "__init__.py") if f.is_file()), None)
            if name.startswith(f"{ROOT.name}.") and file is not None and (file, node.lineno) not in modules:
                modules.append((file, node.lineno))
    return modules


def named_modules(path: Path) -> Iterator[tuple[Path, str]]:
    """The modules and rooms that a module names in a string, to import them later."""
    lines = path.read_text().splitlines()
    if not any(f"{ROOT.name}." in line and not line.lstrip().startswith(("from ", "import ")) for line in lines):
        return
    for text, _ in string_literals(path):
        for name in re.findall(rf"\b{ROOT.name}(?:\.\w+)+", text):
            place = ROOT.parent / name.replace(".", "/")
            if place.with_suffix(".py").is_file() or place.is_dir():
                yield place, text


def rooms(path: Path) -> tuple[str, ...]:
    """The folders of the package in which a module lies, from the outermost on."""
    return path.relative_to(ROOT).parent.parts


def test_imports_point_down_only() -> None:
    used: dict[str, set[str]] = {layer: set() for layer in MAY_IMPORT}
    faults = []
    for path in MODULES:
        layer = layer_of(path)
        for imported, line in imported_modules(path):
            below = layer_of(imported)
            if below != layer:
                used[layer].add(below)
                if below not in MAY_IMPORT[layer]:
                    faults.append(f"{path.relative_to(ROOT)}:{line}: {layer} may not import {below}")
    assert not faults
    unused = {layer: MAY_IMPORT[layer] - below for layer, below in used.items() if MAY_IMPORT[layer] - below}
    assert not unused, "permissions that nothing uses"


def test_modules_named_in_strings_are_ones_that_may_be_imported() -> None:
    faults = []
    for path in MODULES:
        for place, text in named_modules(path):
            layer, below = layer_of(path), place.relative_to(ROOT).parts[0] if place != ROOT else ""
            if below not in MAY_IMPORT[layer] | {layer, ""} and layer != "adapters":
                faults.append(f"{path.relative_to(ROOT)}: names {text!r}")
    assert not faults


def test_nothing_outside_adapters_names_one() -> None:
    """But for the table, by way of which they are found, and the names of their functions in the API, for type checkers."""
    faults = [
        f"{path.relative_to(ROOT)}:{line}: {imported.relative_to(ROOT)}"
        for path in MODULES
        if layer_of(path) not in ("adapters", "__init__")
        for imported, line in imported_modules(path)
        if rooms(imported)[:1] == ("adapters",) and len(rooms(imported)) > 1
    ]
    assert not faults
    assert {layer_of(p) for p in MODULES if (ROOT / "adapters" / "__init__.py") in dict(imported_modules(p))} <= {
        FINDER,
        "__init__",
        "adapters",
    }


PACKAGES = {
    "onnx": {"onnx", "google", "onnxruntime"},
    "stablehlo": {"jaxlib", "jax"},
    "jax": {"jax", "jaxlib"},
    "native": {"llvmlite"},
    "dask": {"distributed", "dask", "tornado"},
}
"""The packages that adapters know, which nothing else imports."""


def test_packages_of_others_are_imported_by_their_adapters_alone() -> None:
    known = set().union(*PACKAGES.values())
    faults = []
    # Parsing takes long, and few modules have a line that begins so.
    imports = re.compile(rf"^\s*(from|import) ({'|'.join(known)})\b", re.MULTILINE)
    for path in MODULES:
        inside = rooms(path)[1] if rooms(path)[:1] == ("adapters",) and len(rooms(path)) > 1 else ""
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if imports.search(text) else ():
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [str(node.module)]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            for name in names:
                package = name.partition(".")[0]
                if package in known - PACKAGES.get(inside, set()):
                    faults.append(f"{path.relative_to(ROOT)}:{node.lineno}: imports {name}")
    assert not faults


def test_adapters_import_only_what_they_are_built_on() -> None:
    faults, used = [], {name: set[str]() for name in ADAPTERS}
    for path in MODULES:
        if rooms(path)[:1] != ("adapters",) or len(rooms(path)) < 2:
            continue
        own = rooms(path)[1]
        for imported, line in imported_modules(path):
            if rooms(imported)[:1] == ("adapters",) and len(rooms(imported)) > 1 and (other := rooms(imported)[1]) != own:
                used[own].add(other)
                if other not in ADAPTERS[own]:
                    faults.append(f"{path.relative_to(ROOT)}:{line}: {own} may not import {other}")
    assert not faults
    assert used == ADAPTERS


def test_no_modules_import_one_another() -> None:
    graph = {path: [imported for imported, _ in imported_modules(path) if imported.name != "__init__.py"] for path in MODULES}
    list(TopologicalSorter(graph).static_order())  # raises CycleError


def test_rooms_in_a_room_form_no_circle() -> None:
    """Of the rooms in one folder, wherever it is, and of modules that stand beside them."""
    below: dict[tuple[str, ...], dict[str, set[str]]] = {}
    for path in MODULES:
        for imported, _ in imported_modules(path):
            a, b = (p.relative_to(ROOT).parts for p in (path, imported))
            n = next(k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y) if a != b else None
            # What stands in the folder itself is both above and below its rooms: one builds on it, the other is built of them.
            if n and len(a) > n + 1 and len(b) > n + 1:
                below.setdefault(a[:n], {}).setdefault(a[n], set()).add(b[n])
    for folder in below.values():
        list(TopologicalSorter(folder).static_order())


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
    path = ROOT / "transforms" / "transpose.py"
    assert {layer_of(imported) for imported, _ in imported_modules(path)} == {
        "errors",
        "frozen",
        "watching",
        "graph",
        "rules",
        "lax",
        "transforms",
    }
    assert "dot_general" in {text for text, _ in string_literals(ROOT / "lax" / "linear_algebra" / "contraction.py")}
    assert {layer_of(path) for path in MODULES} <= set(MAY_IMPORT)
    assert ROOT / "adapters" / "onnx" / "port" in {place for place, _ in named_modules(ROOT / "adapters" / "__init__.py")}
