"""Custom calls: functions of libraries by name. Those that JAX makes for linear algebra are read, of LAPACK and of cuSOLVER.

What they return follows LAPACK: factors in the memory of the matrix, pivots from 1 up, and at last a status, here always 0, as our
primitives say by NaN where there is no result. Memory that holds nothing of meaning is NaN, so that whoever reads it sees that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

from tidu_cli.adapters.stablehlo.reading.equivalents import by_jax
from tidu_cli.adapters.stablehlo.reading.site import Reader, RefusedError, Site, adjoint, reader_of
from tidu_cli.errors import counted
from tidu_cli.frozen import replace
from tidu_cli.graph.types import COMPLEXES, TensorType
from tidu_cli.rules.terms import Term

CALLBACKS = re.compile(r"xla(_ffi)?(_partitioned)?_python_(cpu|gpu)_callback")

_LIBRARY = re.compile(r"(?:lapack_[sdcz]|(?:cu|hip)(?:solver|hybrid|sparse|blas)_)(\w+?)(?:_ffi)?")


def _custom_call(site: Site, *operands: Term) -> Term | Sequence[Term]:
    name = str(site.attribute("call_target_name"))
    library = _LIBRARY.fullmatch(name)
    reader = CALLS.get(name) or (LINEAR_ALGEBRA.get(library[1]) if library else None)
    if reader is not None:
        try:
            signature(reader).bind(site, *operands)
        except TypeError:
            raise RefusedError(f"@{name} has {counted(len(operands), 'operand')}, with which JAX does not call it") from None
        return reader(site, *operands)
    dialect, _, short = name.partition(".")
    if dialect in ("mhlo", "chlo"):
        return _of_dialect(site, f"chlo.{NAMES.get(short, short)}", operands)
    if CALLBACKS.fullmatch(name):
        raise RefusedError(f"@{name} calls back into the Python program that wrote the module; leave out the callback")
    raise RefusedError(
        f"@{name} {REFUSED.get(library[1] if library else name, 'is a function of a library that is not known here')}"
    )


def _of_dialect(site: Site, name: str, operands: Sequence[Term]) -> Term | Sequence[Term]:
    """An operation that has become a call, as older modules have it, with its attributes in one."""
    attributes = site.attribute("mhlo.attributes") or site.attribute("composite_attributes") or {}
    if not isinstance(attributes, dict):
        raise RefusedError("has mhlo.attributes that are not a dictionary")
    if attributes.get("largest") is False:
        raise RefusedError("takes the least elements, not the greatest; negate the array")
    return reader_of(name)(replace(site, operation=replace(site.operation, attributes=attributes)), *operands)


def _option(site: Site, name: str, default: object = None) -> Any:
    """An option of the call; letters of LAPACK's come as their codes."""
    given = site.attribute("mhlo.backend_config") or site.attribute("backend_config")
    option = given.get(name, default) if isinstance(given, dict) else default
    if option is None:
        raise RefusedError(f"@{site.attribute('call_target_name')} has no option {name}")
    return chr(option) if type(option) is int and 65 <= option < 91 else option


def _is_lower(site: Site) -> bool:
    lower = _option(site, "lower", "")
    return bool(lower) if lower != "" else _option(site, "uplo") == "L"


def _status(site: Site, number: int = -1) -> Term:
    return site.recording.full(0, site.results[number])


def _nothing(site: Site, type_: TensorType) -> Term:
    return site.recording.full(math.nan, type_)


def _below(site: Site, x: TensorType) -> Term:
    """Where matrices of this type have what is below the diagonal."""
    axes = [site.emit("iota", dtype="i32", shape=x.shape, dimension=x.rank + k) for k in (-2, -1)]
    return site.emit("gt", *axes)


def _cholesky(site: Site, x: Term) -> Sequence[Term]:
    """The factor in one triangle, and the matrix itself in the other."""
    below = _below(site, x.type)
    if _is_lower(site):
        return site.emit("select_n", adjoint(site, below), site.emit("cholesky", x), x), _status(site)
    return site.emit("select_n", below, adjoint(site, site.emit("cholesky", adjoint(site, x))), x), _status(site)


def _lu(site: Site, x: Term) -> Sequence[Term]:
    factors, pivots, _ = site.emit_all("lu", x)
    return factors, site.emit("add", pivots, 1), _status(site)


def _permutation(site: Site, pivots: Term) -> Term:
    return site.emit("lu_pivots_to_permutation", pivots, permutation_size=site.result.shape[-1])


def _geqrf(site: Site, x: Term) -> Sequence[Term]:
    """R above Householder's vectors, for which there is NaN; of their factors it is known which matrix they are of."""
    q, r = site.emit_all("qr", x, full_matrices=False)
    return _packed(site, x, q, r, pivoting=False)


def _geqp3(site: Site, x: Term, first: Term) -> Sequence[Term]:
    """Likewise, with columns exchanged, and the permutation, from 1 up."""
    known = site.known(first)
    if known is None or known.any():
        raise RefusedError("has columns that are to come first, which is not read; leave all of them free")
    q, r, permutation = site.emit_all("qr", x, full_matrices=False, pivoting=True)
    packed, factors = _packed(site, x, q, r, pivoting=True)
    return packed, site.emit("add", permutation, 1), factors


def _packed(site: Site, x: Term, q: Term, r: Term, *, pivoting: bool) -> Sequence[Term]:
    *batch, m, n = x.type.shape
    if m > n:
        nan = site.recording.full(math.nan, TensorType(x.type.dtype))
        r = site.emit("pad", r, nan, padding_config=(*[(0, 0, 0)] * len(batch), (0, m - n, 0), (0, 0, 0)))
    packed = site.emit("select_n", _below(site, x.type), r, _nothing(site, x.type))
    # Factors are made of R, and so depend on the matrix, and each call has its own.
    row = site.emit("slice", r, start_indices=(0,) * r.type.rank, limit_indices=(*batch, min(m, n, 1), min(m, n)), strides=None)
    row = site.emit("reshape", row, new_sizes=(*batch, min(m, n)))
    factors = site.emit("mul", row, _nothing(site, row.type))
    site.recording.origins[factors.slot] = x, q, pivoting
    return packed, factors


def _orgqr(site: Site, packed: Term, factors: Term) -> Term:
    columns = site.result.shape[-1]
    if factors.slot not in site.recording.origins:
        from jax.lax.linalg import householder_product

        return by_jax(site.recording, householder_product, (packed, factors))[0]
    x, q, _ = site.recording.origins[factors.slot]
    if columns > min(x.type.shape[-2:]):
        q = _square_q(site, factors)
    if q.type.shape[-1] > columns:
        q = site.emit("slice", q, start_indices=(0,) * q.type.rank, limit_indices=(*q.type.shape[:-1], columns), strides=None)
    return q


def _square_q(site: Site, factors: Term) -> Term:
    x, _, pivoting = site.recording.origins[factors.slot]
    q: Term = site.emit_all("qr", x, full_matrices=True, pivoting=pivoting)[0]
    return q


def _ormqr(site: Site, packed: Term, factors: Term, c: Term) -> Term:
    """A product with Q, or its adjoint, from the left or right."""
    if factors.slot not in site.recording.origins:
        raise RefusedError("is a product with Q of Householder's vectors that are not those of a QR decomposition just before")
    q = _square_q(site, factors)
    q = adjoint(site, q) if _option(site, "transpose") else q
    batch = tuple(range(c.type.rank - 2))
    pair = (q, c) if _option(site, "left") else (c, q)
    return site.emit("dot_general", *pair, dimension_numbers=(((c.type.rank - 1,), (c.type.rank - 2,)), (batch, batch)))


def _tridiagonal(site: Site, *operands: Term) -> Sequence[Term]:
    """The solution of a system of three diagonals, after what LAPACK makes of these, and before a status."""
    from jax.lax.linalg import tridiagonal_solve

    solution = by_jax(site.recording, tridiagonal_solve, operands)
    if len(site.results) == 1:
        return solution
    return *[_nothing(site, t) for t in site.results[:3]], *solution, _status(site)


def _eigh(site: Site, x: Term) -> Sequence[Term]:
    v, w = site.emit_all("eigh", x, lower=_is_lower(site))
    return v, w, _status(site)


def _svd(site: Site, x: Term) -> Sequence[Term]:
    """LAPACK's u, s and vᴴ; cuSOLVER's by Jacobi's method has v, and that of a matrix by rows has them the other way round."""
    mode = _option(site, "mode", "") or ("N" if not _option(site, "compute_uv") else "A" if _option(site, "full_matrices") else "S")
    if mode == "N":
        (s,) = site.emit_all("svd", x, compute_uv=False)
        return _nothing(site, x.type), s, *[_nothing(site, t) for t in site.results[2:-1]], _status(site)
    s, u, vh = site.emit_all("svd", x, full_matrices=mode == "A")
    if re.search("gesvd[jp]", site.attribute("call_target_name")):
        vh = adjoint(site, vh)
    vectors = (vh, u) if _option(site, "transposed", False) else (u, vh)
    return _nothing(site, x.type), s, *vectors, _status(site)


def _eig(site: Site, x: Term) -> Sequence[Term]:
    left, right = (_option(site, f"compute_{side}", "") or _option(site, side) for side in ("left", "right"))
    left, right = left in ("V", True), right in ("V", True)
    w, *vectors = site.emit_all("eig", x, compute_left_eigenvectors=left, compute_right_eigenvectors=right)
    given = iter(vectors)
    types = site.results[-3:-1]
    both = [next(given) if there else _nothing(site, t) for there, t in zip((left, right), types, strict=True)]
    parts = [w] if x.type.dtype in COMPLEXES else [site.emit("real", w), site.emit("imag", w)]
    return *parts, *both, _status(site)


def _schur(site: Site, x: Term) -> Sequence[Term]:
    """T, Z, eigenvalues, which are NaN as JAX does not read them, and how many were sorted to the top: none."""
    if _option(site, "sort") != "N":
        raise RefusedError("sorts eigenvalues by a function that the module has not got")
    vectors = _option(site, "mode") == "V"
    t, *z = site.emit_all("schur", x, compute_schur_vectors=vectors)
    values = [_nothing(site, due) for due in site.results[2:-2]]
    return t, *(z or [_nothing(site, site.results[1])]), *values, _status(site, -2), _status(site)


def _triangular(site: Site, a: Term, b: Term) -> Term:
    turned = _option(site, "trans_x")
    return site.emit(
        "triangular_solve",
        a,
        b,
        left_side=_option(site, "side") == "L",
        lower=_is_lower(site),
        transpose_a=turned != "N",
        conjugate_a=turned == "C",
        unit_diagonal=_option(site, "diag") == "U",
    )


def _same(site: Site, *operands: Term) -> Sequence[Term]:
    return operands


def _assertion(site: Site, holds: Term, *operands: Term) -> Sequence[Term]:
    """What a module with shapes that are not known requires of them; of those that are it holds."""
    known = site.known(holds)
    if known is None or not known.all():
        raise RefusedError(f"@shape_assertion {site.attribute('error_message', 'of a shape')} does not hold or is not known")
    return ()


LINEAR_ALGEBRA: dict[str, Callable[..., Term | Sequence[Term]]] = {
    **dict.fromkeys(["eig_comp", "eig_real", "geev"], _eig),
    "gees": _schur,
    "geqp3": _geqp3,
    "geqrf": _geqrf,
    **dict.fromkeys(["gesdd", "gesvd", "gesvdj", "gesvdp"], _svd),
    "getrf": _lu,
    **dict.fromkeys(["gtsv", "gtsv2"], _tridiagonal),
    **dict.fromkeys(["heevd", "syevd"], _eigh),
    **dict.fromkeys(["orgqr", "ungqr"], _orgqr),
    **dict.fromkeys(["ormqr", "unmqr"], _ormqr),
    "potrf": _cholesky,
    "trsm": _triangular,
}
"""LAPACK's functions, after the letter of the type, and those of cuSOLVER and the like."""

CALLS: dict[str, Callable[..., Term | Sequence[Term]]] = {
    **dict.fromkeys(["Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement"], _same),
    **dict.fromkeys(["cu_lu_pivots_to_permutation", "hip_lu_pivots_to_permutation"], _permutation),
    "ProductOfElementaryHouseholderReflectors": _orgqr,
    "Qr": _geqrf,
    "shape_assertion": _assertion,
}
"""Other functions, also those of TPUs."""

NAMES = {"topk": "top_k"}
"""Names of chlo, by those of calls."""

REFUSED = {
    **dict.fromkeys(["gehrd"], "reduces a matrix to Hessenberg form, which graphs do not have; write jax.scipy.linalg.schur"),
    **dict.fromkeys(["hetrd", "sytrd"], "reduces a matrix to tridiagonal form, which graphs do not have; write jnp.linalg.eigh"),
    **dict.fromkeys(
        ["tpu_custom_call", "mosaic_gpu_v2", "__gpu$xla.gpu.triton"], "is a kernel (of Pallas or Triton) for one kind of device"
    ),
}
"""Why calls are refused."""

OPERATIONS: dict[str, Reader] = {"stablehlo.custom_call": _custom_call}
