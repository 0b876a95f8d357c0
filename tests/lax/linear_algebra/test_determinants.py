"""Derivatives of determinants by minors, also where matrices are singular: the gradient is of minors of n - 1 rows, and so on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.graphs.templates import apply, make_case, type_of
from tests.lax.linear_algebra.test_matrices import run
from tests.lax.sampling.decomposition_samples import derivative
from tests.tiers import few
from tidu_cli.adapters.numpy.formulas.formula import build_formula
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType
from tidu_cli.transforms.linearize import linearize


def of_rank(n: int, rank: int, dtype: Any, batch: tuple[int, ...] = ()) -> Any:
    rng = np.random.default_rng(n + rank)

    def drawn(*shape: int) -> Any:
        return rng.normal(size=(*batch, *shape)) + (1j * rng.normal(size=(*batch, *shape)) if dtype is complex else 0)

    return drawn(n, rank) @ drawn(rank, n)


def moved(document: Any, x: Any, *directions: Any) -> Any:
    """The derivative of a document in directions, one after the other."""
    values = {Key("x"): x}
    for k, e in enumerate(directions, 1):
        document = linearize(document, [Key("x")])
        values[Key("x").tangent(k)] = e
    with np.errstate(all="ignore"):
        return run(document, values)[0]


SINGULAR = [
    (n, rank, dtype, batch)
    for n in (1, 2, 3, 4, 5)
    for rank in sorted({0, max(n - 3, 0), max(n - 2, 0), n - 1, n})
    for dtype in (float, complex)
    for batch in ((), (3,))
]


@pytest.mark.parametrize("order", few([1, 2, 3], 3))
def test_derivatives_are_sums_of_minors(order: int) -> None:
    for n, rank, dtype, batch in few(SINGULAR, 23):
        if order == 3 and n > 4:
            continue
        x = of_rank(n, rank, dtype, batch)
        directions = [of_rank(n, n, dtype, batch) + k for k in range(order)]
        tangent = moved(trace(lambda x: np.linalg.det(x), x), x, *directions)
        np.testing.assert_allclose(tangent, derivative(x, *directions), 1e-11, 1e-11, err_msg=str((n, rank, dtype, batch)))


@pytest.mark.parametrize("x", [np.ones((4, 4)), np.arange(9.0).reshape(3, 3), np.zeros((2, 2)), np.outer([1.0, 2, 3], [3.0, 1, 2])])
def test_formulas_at_matrices_that_are_singular_but_for_rounding(x: Any) -> None:
    n = len(x)
    e, f = of_rank(n, n, float), of_rank(n, n, float) + 1
    document = build_formula("det(x)", {"x": type_of(x)})
    np.testing.assert_allclose(moved(document, x, e), derivative(x, e), 1e-11, 1e-11)
    np.testing.assert_allclose(moved(document, x, e, f), derivative(x, e, f), 1e-11, 1e-11)


def test_large_matrices_have_third_derivatives_where_they_are_regular() -> None:
    """For these there is no room for all sets of three rows: A⁻¹ serves, and nothing finite where there is none."""
    n = 130
    x = np.eye(n)
    e = [np.diag(np.arange(n) % 3 == k).astype(float) for k in range(3)]
    counts = [np.count_nonzero(np.diag(d)) for d in e]
    np.testing.assert_allclose(moved(trace(lambda x: np.linalg.det(x), x), x, *e), np.prod(counts), 1e-12)
    x[0, 0] = 0
    assert not np.isfinite(moved(trace(lambda x: np.linalg.det(x), x), x, *e))


def test_the_logarithm_has_no_finite_derivative_at_singular_matrices() -> None:
    for n, rank, dtype, batch in SINGULAR:
        if rank < n:
            x = of_rank(n, rank, dtype, batch)
            x[..., -1, :] = 0
            tangent = moved(trace(lambda x: np.linalg.slogdet(x)[1], x), x, of_rank(n, n, dtype, batch))
            assert not np.isfinite(tangent).any(), (n, rank)


def test_no_room() -> None:
    for n, k in ((130, 2), (9, 6), (2, 7)):
        with pytest.raises(TypeRuleError, match=f"no room for {k} directions"):
            make_case("cofactors", {}, [TensorType("f64", (n, n))] * (k + 1))


@pytest.mark.parametrize("x", [[[1e-20, 1e-21], [1e10, 2e10]], [[1e-100, 1e100], [3e-100, 2e100]], [[1e-20, 0], [0, 0]]])
def test_small_rows_keep_their_digits(x: Any) -> None:
    (a, b), (c, d) = x
    (cofactors,) = apply(make_case("cofactors", {}, [TensorType("f64", (2, 2))]), [np.array(x)])
    np.testing.assert_allclose(cofactors, [[d, -c], [-b, a]], 1e-14)
