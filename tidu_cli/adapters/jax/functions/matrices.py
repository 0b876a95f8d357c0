"""Equations of linear algebra that are several operations here, written in JAX's functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from tidu_cli.adapters.jax.functions.equation import LOOPS, Equation
from tidu_cli.adapters.jax.functions.jaxpr import Value, equations_within
from tidu_cli.adapters.numpy.arrays.array import Array


def contracted(eq: Equation, lhs: Array, rhs: Array) -> Sequence[Array]:
    """Products and convolutions, whose result may have another dtype than the operands, which may differ."""
    dtype = eq.results[0].dtype
    if dtype == "bool":  # whether any pair is true
        (count,) = eq.as_named(eq.name, lhs.convert("i32"), rhs.convert("i32"), preferred_element_type=None)
        return [count.convert("bool")]
    if lhs.type.dtype != rhs.type.dtype:
        lhs, rhs = lhs.convert(dtype), rhs.convert(dtype)
    return eq.as_named(eq.name, lhs, rhs, preferred_element_type=None if lhs.type.dtype == dtype else dtype)


def tridiagonal_solve(eq: Equation, *operands: Array) -> Sequence[Array]:
    """A system of three diagonals by elimination without pivots, from the first row on and back (Thomas)."""
    import jax
    import jax.numpy as jnp

    def solve(lower: Any, diagonal: Any, upper: Any, b: Any) -> Any:
        rows = [jnp.moveaxis(x, -1, 0) for x in (lower, diagonal, upper)]
        right = jnp.moveaxis(b, -2, 0)

        def down(carry: Any, row: Any) -> Any:
            c, d = carry
            low, middle, high, r = row
            pivot = middle - low * c
            new = high / pivot, (r - low[..., None] * d) / pivot[..., None]
            return new, new

        def up(x: Any, row: Any) -> Any:
            c, d = row
            x = d - c[..., None] * x
            return x, x

        zero = jnp.zeros_like(rows[0][0]), jnp.zeros_like(right[0])
        _, made = jax.lax.scan(down, zero, (*rows, right))
        _, solution = jax.lax.scan(up, zero[1], made, reverse=True)
        return jnp.moveaxis(solution, 0, -2)

    return eq.traced_arrays(solve, *operands)


def householder_product(eq: Equation, *operands: Array) -> Sequence[Array]:
    """The first columns of a product of reflections 1 - τ v vᴴ, v being 0 above the diagonal and 1 on it."""
    import jax
    import jax.numpy as jnp

    def product(a: Any, taus: Any) -> Any:
        m, n = a.shape[-2:]
        rows = jnp.arange(m)

        def reflect(q: Any, k: Any) -> tuple[Any, None]:
            column = jnp.take(a, k, axis=-1)
            v = jnp.where(rows > k, column, jnp.where(rows == k, 1, 0).astype(a.dtype))
            along = jnp.einsum("...i,...ij->...j", v.conj(), q)
            return q - jnp.take(taus, k, axis=-1)[..., None, None] * v[..., :, None] * along[..., None, :], None

        start = jnp.broadcast_to(jnp.eye(m, n, dtype=a.dtype), a.shape)
        return jax.lax.scan(reflect, start, jnp.arange(taus.shape[-1]), reverse=True)[0]

    return eq.traced_arrays(product, *operands)


def cholesky_update(eq: Equation, *operands: Array) -> Sequence[Array]:
    """The upper factor of RᵀR + w wᵀ."""
    import jax.numpy as jnp

    return eq.traced_arrays(lambda r, w: jnp.linalg.cholesky(r.T @ r + jnp.outer(w, w)).T, *operands)


def symmetric_product(eq: Equation, *operands: Array) -> Sequence[Array]:
    """α A Aᵀ + β C."""
    alpha, beta = eq.params["alpha"], eq.params["beta"]
    return eq.traced_arrays(lambda a, c: alpha * a @ a.mT + beta * c, *operands)


def ragged_dot_general(eq: Equation, *operands: Array) -> Sequence[Array]:
    """Products of the rows of a matrix with one of several matrices each: the rows of each group, and others as zeros."""
    import jax.numpy as jnp

    numbers = eq.params["ragged_dot_dimension_numbers"]
    plain = ((1,), (1,)), ((), ())
    given = tuple(tuple(map(tuple, pair)) for pair in numbers.dot_dimension_numbers)
    if given != plain or tuple(numbers.lhs_ragged_dimensions) != (0,) or tuple(numbers.rhs_group_dimensions) != (0,):
        raise eq.refused("of ragged products those of jax.lax.ragged_dot are read; write it so")
    dtype = eq.results[0].dtype

    def product(lhs: Any, rhs: Any, sizes: Any) -> Any:
        ends = jnp.cumsum(sizes)
        row = jnp.arange(lhs.shape[0])[:, None]
        chosen = (row < ends) & (row >= ends - sizes)
        return jnp.einsum("mg,mk,gkn->mn", chosen.astype(lhs.dtype), lhs, rhs)

    return [x.convert(dtype) for x in eq.traced_arrays(product, *operands)]


MATRICES: dict[str, Callable[..., Any]] = {
    "dot_general": contracted,
    "conv_general_dilated": contracted,
    "tridiagonal_solve": tridiagonal_solve,
    "householder_product": householder_product,
    "cholesky_update": cholesky_update,
    "symmetric_product": symmetric_product,
    "ragged_dot_general": ragged_dot_general,
}


# Systems of linear equations that a function solves in a way of its own.


def custom_linear_solve(eq: Equation, *operands: Value) -> Sequence[Any]:
    """A linear system, by the jaxpr that solves it; where that is a loop, as a linear_solve.

    The derivative of a system is its own solution for another right side. Where a function takes factors that is what comes of
    differentiating it. A loop that stops when it is near the solution tells nothing of how that moves, or has no reverse mode: then
    the system is kept, with what solves it.
    """
    lengths, jaxprs = eq.params["const_lengths"], eq.params["jaxprs"]
    first = lengths.matvec + lengths.vecmat
    end = first + lengths.solve + lengths.transpose_solve
    n_unknowns = len(operands) - end
    if not any(e.primitive.name in LOOPS for e in equations_within(jaxprs.solve.jaxpr)):
        return eq.run(jaxprs.solve, [*operands[first : first + lengths.solve], *operands[end:]], eq.needs)
    if len(eq.equation.outvars) != n_unknowns:
        raise eq.refused("it solves a system by a loop that gives more than the solution, has_aux=True; let it give that alone")
    kept = {
        "matvec": (jaxprs.matvec, range(lengths.matvec), False),
        "solve": (jaxprs.solve, range(first, first + lengths.solve), False),
        "transpose_solve": (jaxprs.transpose_solve, range(first + lengths.solve, end), True),
    }
    consts = sorted(k for jaxpr, own, _ in kept.values() if jaxpr is not None for k in own)
    arrays = [eq.lifted(x) for x in (*[operands[k] for k in consts], *operands[end:])]
    graphs = {
        name: eq.reader.made([x.type for x in arrays], _of_its_own(jaxpr, [consts.index(k) for k in own], n_unknowns, adjoint))
        for name, (jaxpr, own, adjoint) in kept.items()
        if jaxpr is not None
    }
    return eq.emit_all("linear_solve", *arrays, num_consts=len(consts), **graphs)


def custom_root(eq: Equation, lengths: Any, jaxprs: Any, *operands: Value) -> Sequence[Any]:
    """The root of an equation, `jax.lax.custom_root`, of what each of its jaxprs closes over and of a guess."""
    arrays = [eq.lifted(x) for x in operands[eq.params["num_consts"] :]]
    closed_over, guess = arrays[: sum(lengths)], arrays[sum(lengths) :]
    distinct = {x.value: x for x in closed_over}
    numbers = iter([list(distinct).index(x.value) for x in closed_over])
    consts, graphs = list(distinct.values()), {}
    for name, jaxpr, length in zip(("f", "solve", "tangent_solve"), jaxprs, lengths, strict=True):
        unknowns = guess * 2 if name == "tangent_solve" else guess  # x and a right side
        own = list(islice(numbers, length))
        graphs[name] = eq.reader.made([x.type for x in (*consts, *unknowns)], _of_its_own(jaxpr, own, len(unknowns), False))
    return eq.emit_all("root", *consts, *guess, num_consts=len(consts), **graphs)


def _of_its_own(jaxpr: Any, consts: Sequence[int], n_unknowns: int, adjoint: bool) -> Callable[[Any, list[Array]], Sequence[Any]]:
    """What a jaxpr gives of its own constants among those of all, and of unknowns.

    JAX's transpose conjugates nothing, and that of a graph is the adjoint: what solves the one solves the other for conjugates.
    """

    def compute(inner: Any, arrays: list[Array]) -> Sequence[Any]:
        unknowns = arrays[len(arrays) - n_unknowns :]
        given = [x.conj() for x in unknowns] if adjoint else unknowns
        results = inner.run(jaxpr.jaxpr, jaxpr.consts, [*[arrays[k] for k in consts], *given])
        return [inner.lifted(x).conj() for x in results] if adjoint else results

    return compute
