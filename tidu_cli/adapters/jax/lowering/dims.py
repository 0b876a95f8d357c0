"""Open sizes as symbolic dimensions of JAX, which lowers functions of them to modules of StableHLO with `?`.

JAX computes with dimensions of one scope together, and decides what it must of them by the constraints of that scope.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from keyword import kwlist
from typing import Any

from tidu_cli.graph.sizes.algebra import Name, Part, terms_of
from tidu_cli.graph.sizes.open import OpenSize

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


@lru_cache(maxsize=1)
def _unconstrained() -> Any:
    """The one scope of sizes that nothing is said of."""
    from jax import export

    return export.SymbolicScope()


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
        return {**_EXACT, "max": jax.core.max_dim, "min": jax.core.min_dim}[atom.op](_dim(atom.a), _dim(atom.b))
    scope = _scope.get()
    (name,) = jax.export.symbolic_shape(dim_name(atom.text), scope=_unconstrained() if scope is None else scope)
    return name // atom.multiple if atom.multiple > 1 else name


_EXACT: Mapping[str, Callable[[Any, Any], Any]] = {"//": operator.floordiv, "%": operator.mod}
