"""Systems of linear equations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidu_cli.build.jax.equations.equation import Equation
from tidu_cli.build.jax.known import Value


def custom_linear_solve(eq: Equation, *operands: Value) -> Sequence[Any]:
    """A linear system, by the jaxpr that solves it."""
    lengths, solve = eq.params["const_lengths"], eq.params["jaxprs"].solve
    first = lengths.matvec + lengths.vecmat
    end = first + lengths.solve + lengths.transpose_solve
    return eq.run(solve, [*operands[first : first + lengths.solve], *operands[end:]])


SYSTEMS = {"custom_linear_solve": custom_linear_solve}
