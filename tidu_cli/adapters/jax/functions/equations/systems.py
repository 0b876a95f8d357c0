"""Systems of linear equations that a function solves in a way of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tidu_cli.adapters.jax.functions.equations.equation import Equation
from tidu_cli.adapters.jax.functions.known import Value
from tidu_cli.adapters.jax.functions.liveness import equations_within

LARGEST = 2048
"""Unknowns of a system that is solved by its matrix here where the function solves it step by step."""

LOOPS = ("while", "scan")


def custom_linear_solve(eq: Equation, *operands: Value) -> Sequence[Any]:
    """A linear system, by the jaxpr that solves it; where that is a loop, by the matrix of the system.

    The derivative of a system is its own solution for another right side. Where a function takes factors that is what comes of
    differentiating it. A loop that stops when it is near the solution tells nothing of how that moves, or has no reverse mode: then
    the matrix is made of what the function says the system does with each unit vector, and LU factors solve it.
    """
    lengths, jaxprs = eq.params["const_lengths"], eq.params["jaxprs"]
    first = lengths.matvec + lengths.vecmat
    end = first + lengths.solve + lengths.transpose_solve
    if not any(e.primitive.name in LOOPS for e in equations_within(jaxprs.solve.jaxpr)):
        return eq.run(jaxprs.solve, [*operands[first : first + lengths.solve], *operands[end:]], eq.needs)
    size = sum(math.prod(v.aval.shape) for v in eq.equation.outvars)
    if size > LARGEST:
        raise eq.refused(
            f"it solves a system of {size:,} unknowns by a loop, whose derivative is not that of the loop, and no matrix of more "
            f"than {LARGEST:,} is made; solve it by factors, jnp.linalg.solve"
        )
    return eq.traced(_by_matrix(jaxprs.matvec, lengths.matvec), *operands[: lengths.matvec], *operands[end:])


def _by_matrix(matvec: Any, n_consts: int) -> Any:
    """The function of the constants of a linear map and a right side that solves the system by its matrix."""
    import jax
    import jax.numpy as jnp

    def solve(*operands: Any) -> list[Any]:
        consts, right = operands[:n_consts], operands[n_consts:]
        places = [0]
        for b in right:
            places.append(places[-1] + b.size)

        def apart(flat: Any) -> list[Any]:
            return [flat[i:j].reshape(b.shape).astype(b.dtype) for i, j, b in zip(places, places[1:], right, strict=False)]

        def whole(parts: Sequence[Any]) -> Any:
            return jnp.concatenate([p.ravel() for p in parts])

        def moved(flat: Any) -> Any:
            return whole(jax.core.eval_jaxpr(matvec.jaxpr, matvec.consts, *consts, *apart(flat)))

        flat = whole(right)
        matrix = jax.vmap(moved, out_axes=1)(jnp.eye(places[-1], dtype=flat.dtype))
        return apart(jnp.linalg.solve(matrix, flat))

    return solve


SYSTEMS = {"custom_linear_solve": custom_linear_solve}
