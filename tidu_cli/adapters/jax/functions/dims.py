"""Symbolic dimensions of JAX, as jax.export has them, as open sizes; `lowering/dims.py` has the way back."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from tidu_cli.adapters.numpy.arrays.sizes import number_of
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.graph.sizes.algebra import Name, size_named
from tidu_cli.graph.sizes.open import larger, smaller


def sizes_of(shape: Any) -> tuple[Any, ...]:
    """A shape of JAX's, of which some dimensions may be symbolic."""
    return tuple([n if type(n) is int else size_of(n) for n in shape])


def size_of(dim: Any) -> Any:
    """A dimension as a size. Raises BuildError unless it is an expression of names."""
    if not hasattr(dim, "scope"):
        return int(dim)
    return _size_of_text(str(dim), frozenset(map(str, getattr(dim.scope, "_explicit_constraints", ()))))


_OPERATORS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
}
_FUNCTIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": larger,
    "min": smaller,
}


@lru_cache(maxsize=4096)
def _size_of_text(text: str, constraints: frozenset[str]) -> Any:
    """What JAX prints of a dimension, such as `floordiv(b*n + 3, 2)`, under constraints such as `b >= 2`."""
    try:
        return _value(ast.parse(text.replace("^", "**"), mode="eval").body, constraints)
    except (SyntaxError, KeyError, AttributeError, ValueError, RecursionError):
        raise BuildError(f"the symbolic dimension {text[:60]} is not an expression that a size may be") from None


def _value(node: ast.expr, constraints: frozenset[str]) -> Any:
    if isinstance(node, ast.Constant):
        return int(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        return _named(node.id, constraints)
    if isinstance(node, ast.UnaryOp):
        return -_value(node.operand, constraints)
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_value(node.left, constraints), _value(node.right, constraints))
    parts = [_value(x, constraints) for x in node.args]  # type: ignore[attr-defined]
    return _FUNCTIONS[node.func.id](*parts)  # type: ignore[attr-defined]


_BOUND = re.compile(r"Constraint\((\w+)\s*(>=|<=)\s*(\d+)\)")
_MULTIPLE = re.compile(r"Constraint\(mod\((\w+),\s*(\d+)\)\s*==\s*0\)")


def _named(name: str, constraints: frozenset[str]) -> Any:
    """A name, with the bounds and the divisor that constraints say of it alone."""
    least, most, multiple = 1, None, 1
    for constraint in constraints:
        if (m := _BOUND.fullmatch(constraint)) and m[1] == name:
            least, most = (max(least, int(m[3])), most) if m[2] == ">=" else (least, int(m[3]))
        elif (m := _MULTIPLE.fullmatch(constraint)) and m[1] == name:
            multiple = int(m[2])
    return size_named(Name(name, least, most, multiple))


def as_value(eq: Any) -> Any:
    """A dimension as a number."""
    return number_of(eq.reader.recorder, size_of(eq.params["dim"]), eq.results[0].dtype)
