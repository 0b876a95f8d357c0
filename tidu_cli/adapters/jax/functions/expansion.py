"""What a jaxpr stands for: functions that call functions are counted before they are written out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidu_cli.adapters.jax.functions.equations.index import CALLS
from tidu_cli.limits import require


def require_written_out(jaxpr: Any) -> None:
    """Raises LimitError if a jaxpr with its calls written out has more equations than one may, beyond those that stand in it.

    The graphs of loops and branches are read once, whoever holds them.
    """
    pending, sizes, written = [jaxpr], dict[int, int](), 0
    roots: dict[int, int] = {}

    def size(some: Any) -> int:
        nonlocal written
        if id(some) not in sizes:
            written += len(some.eqns)
            found = len(some.eqns)
            for equation in some.eqns:
                if equation.primitive.name in CALLS:
                    found += sum(map(size, _jaxprs(equation.params.values())))
                else:
                    pending.extend(_jaxprs(equation.params.values()))
            sizes[id(some)] = found
        return sizes[id(some)]

    while pending:
        root = pending.pop()
        roots[id(root)] = size(root)
    require("expansion", sum(roots.values()) - written, "functions that call functions, written out")


def _jaxprs(values: Any) -> Iterator[Any]:
    """The jaxprs among these, also in tuples, as branches are."""
    for value in values:
        if isinstance(value, tuple | list):
            yield from _jaxprs(value)
        elif hasattr(inner := getattr(value, "jaxpr", value), "eqns"):
            yield inner
