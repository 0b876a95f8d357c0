"""Tests that `.ci/run` runs once: those that `make test` has passed, and that are the same in `make check`.

A test is the same in all tiers unless its module, or one of the tests' own modules that it imports, asks for the tier, draws
examples with hypothesis, or looks at what is installed. Which of its cases run does not matter: those that `make test` leaves out
run in `make check`.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
VARYING = {"tests.tiers", "hypothesis", "importlib.util"}
"""What a module imports whose tests depend on the tier, or look at what is installed: `make check` has more than `make test`."""


@cache
def imported_by(module: str) -> frozenset[str]:
    """The modules that a module of tests names in its imports, at the top or within functions."""
    path = ROOT / module.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if not path.exists():  # a name that is imported from a module
        return frozenset()
    modules = set[str]()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(modules)


@cache
def is_same_in_all_tiers(file: str) -> bool:
    """Whether the tests of a file, by its path from the root, are the same in all tiers."""
    todo, seen = [file.removesuffix(".py").replace("/", ".")], set[str]()
    while todo:
        module = todo.pop()
        if VARYING & {module, module.partition(".")[0]}:
            return False
        # What `tests.programs` finds lacking skips a test, which has not passed then.
        if module.startswith("tests.") and module not in seen and not module.startswith("tests.programs"):
            seen.add(module)
            todo += imported_by(module)
    return True
