"""The names that formulas and files of Python hold, read and not run. Nothing here needs NumPy."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping


def parsed(text: str | bytes) -> ast.Module | None:
    """The syntax tree of a text, None if it has none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def free_names(formula: str) -> list[str]:
    """The names that a formula reads, but does not call or define; NumPy's name and constants are none of its inputs."""
    tree = parsed(formula.strip())
    nodes = [] if tree is None else list(ast.walk(tree))
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    names = [node for node in nodes if isinstance(node, ast.Name) and id(node) not in called]
    defined = {node.id for node in names if isinstance(node.ctx, ast.Store)} | _CONSTANTS
    return list(dict.fromkeys(node.id for node in sorted(names, key=_place) if node.id not in defined))


def _place(node: ast.Name) -> tuple[int, int]:
    return node.lineno, node.col_offset


_CONSTANTS = {"np", "numpy", "pi", "e", "inf", "nan", "newaxis"}


def functions_of(file: str) -> Mapping[str, ast.FunctionDef]:
    """The functions that a file of Python defines. Raises OSError."""
    with open(file, "rb") as source:
        tree = parsed(source.read())
    return {node.name: node for node in (tree.body if tree else ()) if isinstance(node, ast.FunctionDef)}


def parameters_of(function: ast.FunctionDef) -> list[str]:
    """The names of its parameters, but for *those and **those."""
    of = function.args
    return [a.arg for a in (*of.posonlyargs, *of.args, *of.kwonlyargs)]
