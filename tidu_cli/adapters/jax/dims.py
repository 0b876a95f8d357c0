"""Symbolic dimensions of JAX, as jax.export has them, and open sizes: each as the other.

By open sizes as dimensions JAX lowers functions to modules of StableHLO with `?`. It computes with dimensions of one scope
together, and decides what it must of them by the constraints of that scope.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from keyword import kwlist
from typing import Any

from tidu_cli.adapters.numpy.arrays.sizes import number_of
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.graph.sizes.algebra import Name, Part, size_named, terms_of
from tidu_cli.graph.sizes.open import OpenSize, larger, smaller


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


_RESERVED = frozenset({"", "mod", "floordiv", "max", "min", *kwlist})
"""What is not a name of a dimension in JAX, or not one in what it prints, whatever underscores follow it."""


def dim_name(text: str) -> str:
    """What JAX calls a size: its own name, or one more underscore behind a word that JAX has for something else."""
    return f"{text}_" if text.rstrip("_") in _RESERVED else text


def size_name(text: str) -> str:
    """Which size is called so."""
    return text[:-1] if text.rstrip("_") in _RESERVED else text


_scope: ContextVar[Any] = ContextVar("scope of symbolic dimensions", default=None)


@contextmanager
def scope_of(names: Iterable[Name]) -> Iterator[None]:
    """Within it, dimensions have a scope of their own, which says what is known of these names.

    Raises ValueError for bounds that JAX takes for a contradiction.
    """
    token = _scope.set(_constrained(tuple(sorted(names, key=lambda name: name.text))))
    try:
        yield
    finally:
        _scope.reset(token)


@lru_cache(maxsize=1024)
def _constrained(names: tuple[Name, ...]) -> Any:
    from jax import export

    return export.SymbolicScope([constraint for name in names for constraint in _constraints(name)])


def _constraints(name: Name) -> Iterator[str]:
    dim = dim_name(name.text)
    if name.multiple > 1:
        yield f"mod({dim}, {name.multiple}) == 0"
    if name.least > 1:  # at least 1 are all dimensions to JAX
        yield f"{dim} >= {name.least}"
    if name.most is not None:
        yield f"{dim} <= {name.most}"


def dims_of(shape: Any) -> tuple[Any, ...]:
    """A shape as JAX has it, with symbolic dimensions for open sizes."""
    return tuple([dim_of(n) for n in shape])


def dim_of(size: Any) -> Any:
    """A size as JAX has it; other values are as they are, and parts of lists, tuples and dicts are likewise."""
    if isinstance(size, OpenSize):
        return _dim(size)
    if isinstance(size, tuple | list):
        return type(size)([dim_of(part) for part in size]) if type(size) in (tuple, list) else size
    return {key: dim_of(part) for key, part in size.items()} if type(size) is dict else size


def _dim(size: Any) -> Any:
    total: Any = 0
    for monomial, coefficient in terms_of(size):
        product: Any = coefficient
        for atom, power in monomial:
            product = product * _factor(atom) ** power
        total = total + product
    return total


def _factor(atom: Any) -> Any:
    import jax

    if isinstance(atom, Part):
        parts = {"//": operator.floordiv, "%": operator.mod, "max": jax.core.max_dim, "min": jax.core.min_dim}
        return parts[atom.op](_dim(atom.a), _dim(atom.b))
    scope = _scope.get()
    (name,) = jax.export.symbolic_shape(dim_name(atom.text), scope=_constrained(()) if scope is None else scope)
    return name // atom.multiple if atom.multiple > 1 else name
