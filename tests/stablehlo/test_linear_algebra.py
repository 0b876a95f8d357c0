"""Linear algebra of JAX, which modules call LAPACK and cuSOLVER for: values, JVP, VJP and HVP are those of the function itself."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg as scipy_linalg
import numpy as np
import pytest

from tests.jax.functions.agreement import compared
from tests.stablehlo.claims.written import in_this_process
from tests.tiers import few
from tidu_cli.adapters.stablehlo.files import read_stablehlo
from tidu_cli.errors import DocumentError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.runtime.evaluate import evaluate

NEAR = 1e-9


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("tidu_cli.adapters.stablehlo.files.parsed", in_this_process)
    with jax.enable_x64(True):
        yield


def lowered(function: Callable[..., Any], *args: Any, platform: str = "cpu") -> Document:
    """The document of the module of a function."""
    text = jax.jit(function).trace(*args).lower(lowering_platforms=(platform,)).as_text()
    return read_stablehlo(text.encode(), "text", "f.mlir").document


def square(dtype: str = "f8", *batch: int, n: int = 3, seed: int = 0) -> Any:
    """Matrices with eigenvalues and singular values that are well apart."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((*batch, n, n)) + np.diag(3.0 * np.arange(1, n + 1))
    return x + 1j * rng.standard_normal(x.shape) if dtype == "c16" else x


def definite(x: Any) -> Any:
    return x @ jnp.conj(jnp.swapaxes(x, -1, -2))


def hermitian(x: Any) -> Any:
    return x + jnp.conj(jnp.swapaxes(x, -1, -2))


def phaseless(u: Any, v: Any) -> Any:
    """What does not depend on the phases of vectors."""
    return u * jnp.conj(u[..., :1, :]), v * jnp.conj(v[..., :1, :])


def of_vectors(v: Any) -> Any:
    return phaseless(v, v)[0]


def _svd(x: Any) -> Any:
    u, s, vh = jnp.linalg.svd(x, full_matrices=False)
    return s, *phaseless(u, jnp.conj(jnp.swapaxes(vh, -1, -2)))


def _eigh(x: Any) -> Any:
    w, v = jnp.linalg.eigh(hermitian(x))
    return w, of_vectors(v)


def _eig(x: Any) -> Any:
    w, v = jnp.linalg.eig(x)
    return w, v


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "cholesky": lambda x: jnp.linalg.cholesky(definite(x)),
    "cholesky upper": lambda x: jnp.linalg.cholesky(definite(x), upper=True),
    "qr": jnp.linalg.qr,
    "qr complete": lambda x: jnp.linalg.qr(x, mode="complete"),
    "r": lambda x: jnp.linalg.qr(x, mode="r"),
    "svd": _svd,
    "svdvals": lambda x: jnp.linalg.svd(x, compute_uv=False),
    "eigh": _eigh,
    "eigvalsh": lambda x: jnp.linalg.eigvalsh(hermitian(x)),
    "inv": jnp.linalg.inv,
    "solve": lambda x: jnp.linalg.solve(x, x[..., :2]),
    "det": jnp.linalg.det,
    "slogdet": jnp.linalg.slogdet,
    "pinv": jnp.linalg.pinv,
    "matrix_power": lambda x: jnp.linalg.matrix_power(x, 3),
    "norm 2": lambda x: jnp.linalg.norm(x, 2, axis=(-2, -1)),
    "norm nuc": lambda x: jnp.linalg.norm(x, "nuc", axis=(-2, -1)),
    "lu_factor": lambda x: scipy_linalg.lu_factor(x)[0],
    "lu_solve": lambda x: scipy_linalg.lu_solve(scipy_linalg.lu_factor(x), x[..., :2]),
    "cho_solve": lambda x: scipy_linalg.cho_solve(scipy_linalg.cho_factor(definite(x)), x[..., :2]),
    "solve_triangular": lambda x: scipy_linalg.solve_triangular(x, x[..., :2], lower=True),
    "solve_triangular adjoint": lambda x: scipy_linalg.solve_triangular(x, x[..., :2], trans="C", unit_diagonal=True),
    "tridiagonal_solve": lambda x: jax.lax.linalg.tridiagonal_solve(x[..., 0], x[..., 1] + 9, x[..., 2], x),
}

ONE: dict[str, Callable[[Any], Any]] = {
    "lstsq": lambda x: jnp.linalg.lstsq(x, x[:, 0] ** 2)[0],
    "expm": lambda x: scipy_linalg.expm(x / 4),
    "lu": scipy_linalg.lu,
    "multi_dot": lambda x: jnp.linalg.multi_dot([x, x.T, x]),
}
"""Those that take no batches."""

VALUES: dict[str, Callable[[Any], Any]] = {
    "eigvals": jnp.linalg.eigvals,
    "matrix_rank": jnp.linalg.matrix_rank,
    "eigh_tridiagonal": lambda x: scipy_linalg.eigh_tridiagonal(x[0], x[1, :2], eigvals_only=True),
    "cond": jnp.linalg.cond,
    "schur": scipy_linalg.schur,
    "sqrtm": scipy_linalg.sqrtm,
    "lu pivots": scipy_linalg.lu_factor,
    "polar": scipy_linalg.polar,
    "pivoted": lambda x: jax.lax.linalg.qr(x, pivoting=True),
    "product": lambda x: jax.lax.linalg.householder_product(x, x[0]),
    "qr_multiply": lambda x: scipy_linalg.qr_multiply(x, x)[0],
    "qr_multiply left": lambda x: scipy_linalg.qr_multiply(x[:, :2], x[:2, :2], mode="left")[0],
}
"""Those that JAX has no derivatives of, or second ones."""


@pytest.mark.parametrize(("name", "dtype"), few(product(FUNCTIONS, ("f8", "c16")), 3))
def test_derivatives(name: str, dtype: str) -> None:
    function, x = FUNCTIONS[name], square(dtype, 2)
    second = name not in ("pinv",) or dtype == "f8"
    errors = compared(function, x, document=lowered(function, x), second=second)
    assert max(errors.values()) < NEAR, errors


@pytest.mark.parametrize("name", few(ONE, 1))
def test_derivatives_of_single_matrices(name: str) -> None:
    function, x = ONE[name], square()
    errors = compared(function, x, document=lowered(function, x))
    assert max(errors.values()) < NEAR, errors


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_eigenvectors(dtype: str) -> None:
    """Their phases JAX lets the derivatives choose, so that those of values and of projectors are compared."""
    x = square(dtype)
    assert compared(_eig, x, document=lowered(_eig, x), forward=False)["value"] < NEAR


@pytest.mark.parametrize("name", few(VALUES, 6))
def test_values(name: str) -> None:
    function, x = VALUES[name], square()
    assert compared(function, x, document=lowered(function, x), forward=False)["value"] < NEAR


@pytest.mark.parametrize(
    ("name", "shape"), few(product(("qr", "qr complete", "svd", "svdvals"), [(4, 2), (2, 4), (2, 4, 2), (2, 0), (0, 2)]), 6)
)
def test_matrices_that_are_not_square(name: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).standard_normal(shape)
    function = FUNCTIONS[name]
    # JAX has no derivative of a full Q that is not square, nor of R that is wide.
    smooth = not (name.startswith("qr") and shape[-2] != shape[-1]) or (name == "qr" and shape[-2] > shape[-1])
    errors = compared(function, x, document=lowered(function, x), forward=smooth and 0 not in shape)
    assert max(errors.values()) < NEAR, errors


@pytest.mark.parametrize(("name", "platform"), few(product([*FUNCTIONS, "pivoted", "qr_multiply", "eig"], ("cuda", "rocm")), 9))
def test_modules_for_gpus_compute_alike(name: str, platform: str) -> None:
    function = {**FUNCTIONS, **VALUES, "eig": _eig}[name]
    x = square("f8") if name in VALUES else square("c16" if platform == "cuda" else "f8", 2)
    errors = compared(function, x, document=lowered(function, x, platform=platform), forward=False)
    assert max(errors.values()) < NEAR, errors


@pytest.mark.parametrize("name", ["cholesky", "svdvals", "eigvalsh", "inv", "slogdet", "qr"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_matrices_that_are_not_finite(name: str, bad: float) -> None:
    """Where there is no result there is NaN, and the other matrices of the batch have theirs."""
    x = square("f8", 2)
    x[0, 1, 1] = bad
    with np.errstate(all="ignore"):
        results = evaluate(lowered(FUNCTIONS[name], x).head, {Key("0"): x})
    due = [np.asarray(y) for y in jax.tree.leaves(FUNCTIONS[name](x))]
    for one, other in zip(results.values(), due, strict=True):
        np.testing.assert_array_equal(np.isnan(one[0]).any(), np.isnan(other[0]).any())
        np.testing.assert_allclose(one[1], other[1], 1e-9, 1e-9)


def test_cholesky_of_what_is_not_definite_is_nan() -> None:
    x = np.stack([np.eye(3), -np.eye(3)])
    results = evaluate(lowered(jnp.linalg.cholesky, x).head, {Key("0"): x})
    np.testing.assert_array_equal(next(iter(results.values())), np.asarray(jnp.linalg.cholesky(x)))


@pytest.mark.parametrize("shape", [(3, 2), (2, 3), (700, 1100), (1100, 700)])
@pytest.mark.parametrize("name", ["svdvals", "svd"])
def test_singular_values_for_gpus_by_all_methods(name: str, shape: tuple[int, int]) -> None:
    """Which one it is depends on how large a matrix is; of large ones the shapes show that results are not the other way round."""
    x = jnp.zeros(shape)
    document = lowered(FUNCTIONS[name], x, platform="cuda")
    assert [o.type.shape for o in document.head.outputs] == [y.shape for y in jax.tree.leaves(jax.eval_shape(FUNCTIONS[name], x))]


@pytest.mark.parametrize("function", [scipy_linalg.hessenberg, lambda x: jax.lax.linalg.tridiagonal(x + x.T)])
def test_reductions_are_refused_with_the_way_out(function: Callable[..., Any]) -> None:
    with pytest.raises(DocumentError, match=r"form, which graphs do not have; write j"):
        lowered(function, square())


def test_callbacks_are_refused_by_name() -> None:
    def called(x: Any) -> Any:
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    with pytest.raises(DocumentError, match="calls back into the Python program"):
        lowered(called, square())


CALL = """module {
  func.func @main(%arg0: tensor<2xf64>) -> tensor<2xf64> {
    %0 = stablehlo.custom_call @NAME(%arg0) OPTIONS : (tensor<2xf64>) -> tensor<2xf64>
    return %0 : tensor<2xf64>
  }
}
"""


def test_unknown_calls_are_refused_by_name() -> None:
    with pytest.raises(DocumentError, match=r"f.mlir:3:10: stablehlo.custom_call: @other is"):
        read_stablehlo(CALL.replace("NAME", "other").replace("OPTIONS", "").encode(), "text", "f.mlir")


@pytest.mark.parametrize("name", ["Sharding", "SPMDFullToShardShape", "annotate_device_placement"])
def test_where_arrays_are_makes_no_difference(name: str) -> None:
    document = read_stablehlo(CALL.replace("NAME", name).replace("OPTIONS", "").encode(), "text", "f.mlir").document
    assert document.head.n_nodes == 0


OLD = {"acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atanh": np.arctanh,
       "cosh": np.cosh, "sinh": np.sinh, "tan": np.tan}  # fmt: skip


@pytest.mark.parametrize("name", OLD)
def test_functions_of_older_modules(name: str) -> None:
    text = CALL.replace("NAME", f"mhlo.{name}").replace("OPTIONS", "{mhlo.attributes = {}, mhlo.version = 1 : i64}")
    x = np.asarray([1.5, 2.0]) if name == "acosh" else np.asarray([0.25, -0.5])
    results = evaluate(read_stablehlo(text.encode(), "text", "f.mlir").document.head, {Key("0"): x})
    np.testing.assert_allclose(results[Key("y")], OLD[name](x), 1e-15)


def test_greatest_elements_of_older_modules() -> None:
    text = """module {
      func.func @main(%arg0: tensor<4xf64>) -> (tensor<2xf64>, tensor<2xi32>) {
        %0:2 = stablehlo.custom_call @mhlo.topk(%arg0) {mhlo.attributes = {k = 2 : i64, largest = LARGEST}, mhlo.version = 1 : i64}
          : (tensor<4xf64>) -> (tensor<2xf64>, tensor<2xi32>)
        return %0#0, %0#1 : tensor<2xf64>, tensor<2xi32>
      }
    }
    """
    document = read_stablehlo(text.replace("LARGEST", "true").encode(), "text", "f.mlir").document
    values, places = evaluate(document.head, {Key("0"): np.asarray([1.0, 3.0, 0.0, 2.0])}).values()
    np.testing.assert_array_equal(values, [3.0, 2.0])
    np.testing.assert_array_equal(places, [1, 3])
    with pytest.raises(DocumentError, match="least"):
        read_stablehlo(text.replace("LARGEST", "false").encode(), "text", "f.mlir")


@pytest.mark.parametrize("operands", ["", "%x, %x"])
def test_calls_with_other_operands_than_those_of_jax_are_refused_in_a_line(operands: str) -> None:
    types = ", ".join(["tensor<3x3xf64>"] * operands.count("%"))
    text = f"""module {{
  func.func public @main(%x: tensor<3x3xf64>) -> tensor<3x3xf64> {{
    %0:2 = stablehlo.custom_call @lapack_dpotrf_ffi({operands}) : ({types}) -> (tensor<3x3xf64>, tensor<i32>)
    return %0#0 : tensor<3x3xf64>
  }}
}}"""
    with pytest.raises(DocumentError, match=r"f.mlir:3:12: stablehlo.custom_call: @lapack_dpotrf_ffi has [02] operands, with"):
        read_stablehlo(text.encode(), "text", "f.mlir")
