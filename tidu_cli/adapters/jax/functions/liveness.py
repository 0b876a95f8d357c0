"""Which equations of a jaxpr are read, and which stop no gradient though they say so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

Needs = list[bool] | None
"""Which results of an equation are needed."""

FACTORS: Needs = None
"""What stands in the place of which results are needed where a `stop_gradient` is none: before the factors of a linear system.

`jnp.linalg.solve` takes LU factors of what it holds constant, as JAX differentiates a system by its solution. Here it is
differentiated by what solves it, which comes to the same, to any order, as long as the factors are not held constant.
"""


def needed(jaxpr: Any, results: Iterable[Any]) -> list[tuple[Any, Needs]]:
    """The equations that results depend on, or that have effects, in order, each with which of its results are needed."""
    live = {v for v in results if not hasattr(v, "val")}
    plain = set(live)  # those that something else needs than factors
    found: list[tuple[Any, Needs]] = []
    for equation in reversed(jaxpr.eqns):
        each = [v in live for v in equation.outvars]
        if not any(each) and not equation.effects:
            continue
        name = equation.primitive.name
        held = _held(equation) if name == "custom_linear_solve" else range(0)
        is_plain = any(v in plain for v in equation.outvars) or bool(equation.effects)
        for k, v in enumerate(equation.invars):
            if not hasattr(v, "val"):
                live.add(v)
                if is_plain and k not in held:
                    plain.add(v)
        found.append((equation, FACTORS if name == "stop_gradient" and not is_plain else each))
    return found[::-1]


def _held(equation: Any) -> range:
    """The operands of a system that only say how it is solved, and are held constant."""
    lengths = equation.params["const_lengths"]
    first = lengths.matvec + lengths.vecmat
    return range(first, first + lengths.solve + lengths.transpose_solve)


def equations_within(jaxpr: Any) -> Iterator[Any]:
    """The equations of a jaxpr, and of those in them, at any depth."""
    pending = [jaxpr]
    while pending:
        for equation in pending.pop().eqns:
            yield equation
            for value in equation.params.values():
                for inner in value if isinstance(value, tuple | list) else (value,):
                    if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                        pending.append(getattr(inner, "jaxpr", inner))
