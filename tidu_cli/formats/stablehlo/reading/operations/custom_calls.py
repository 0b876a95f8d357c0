"""Custom calls: functions of libraries by name. Those that JAX makes for linear algebra are read, of LAPACK and of cuSOLVER.

What they return follows LAPACK: factors in the memory of the matrix, pivots from 1 up, and at last a status, here always 0, as our
primitives say by NaN where there is no result. Memory that holds nothing of meaning is NaN, so that whoever reads it sees that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from tidu_cli.formats.stablehlo.reading.site import Reader, RefusedError, Site
from tidu_cli.graph.types import COMPLEXES, TensorType
from tidu_cli.rules.terms import Term

CALLBACKS = re.compile(r"xla_(ffi_)?(partitioned_)?python_(cpu|gpu)_callback|xla_python_.*callback")

_LIBRARY = re.compile(r"(?:lapack_[sdcz]|cusolver_|hipsolver_|cuhybrid_|hiphybrid_|cusparse_)(\w+?)(?:_ffi)?")


def _custom_call(site: Site, *operands: Term) -> Term | Sequence[Term]:
    name = str(site.attribute("call_target_name"))
    found = CALLS.get(name)
    library = _LIBRARY.fullmatch(name)
    if found is None and library is not None:
        found = LINEAR_ALGEBRA.get(library[1])
    if found is not None:
        return found(site, *operands)
    if CALLBACKS.fullmatch(name):
        raise RefusedError(f"@{name} calls back into the Python program that wrote the module; leave out the callback")
    raise RefusedError(f"@{name} is a function of a library that is not known here")


def _option(site: Site, name: str) -> object:
    """An option of the call; letters of LAPACK's come as their codes."""
    given = site.attribute("mhlo.backend_config") or site.attribute("backend_config")
    found = given.get(name) if isinstance(given, dict) else None
    if found is None:
        raise RefusedError(f"@{site.attribute('call_target_name')} has no option {name}")
    return chr(found) if type(found) is int and 65 <= found < 91 else found


def _is_lower(site: Site) -> bool:
    given = site.attribute("mhlo.backend_config")
    if isinstance(given, dict) and "lower" in given:
        return bool(given["lower"])
    return _option(site, "uplo") == "L"


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
        swapped = (*range(x.type.rank - 2), x.type.rank - 1, x.type.rank - 2)
        above = site.emit("transpose", below, permutation=swapped)
        return site.emit("select_n", above, site.emit("cholesky", x), x), _status(site)
    return site.emit("select_n", below, _adjoint(site, site.emit("cholesky", _adjoint(site, x))), x), _status(site)


def _adjoint(site: Site, x: Term) -> Term:
    turned = site.emit("transpose", x, permutation=(*range(x.type.rank - 2), x.type.rank - 1, x.type.rank - 2))
    return site.emit("conj", turned) if x.type.dtype in COMPLEXES else turned


def _lu(site: Site, x: Term) -> Sequence[Term]:
    factors, pivots, _ = site.emit_all("lu", x)
    return factors, site.emit("add", pivots, 1), _status(site)


def _permutation(site: Site, pivots: Term) -> Term:
    return site.emit("lu_pivots_to_permutation", pivots, permutation_size=site.result.shape[-1])


def _geqrf(site: Site, x: Term) -> Sequence[Term]:
    """R above Householder's vectors, for which there is NaN; of their factors it is known which matrix they are of."""
    m, n = x.type.shape[-2:]
    _, r = site.emit_all("qr", x, full_matrices=False)
    if m > n:
        nan = site.recording.full(math.nan, TensorType(x.type.dtype))
        r = site.emit("pad", r, nan, padding_config=(*[(0, 0, 0)] * (x.type.rank - 2), (0, m - n, 0), (0, 0, 0)))
    packed = site.emit("select_n", _below(site, x.type), r, _nothing(site, x.type))
    row = site.emit("slice", r, start_indices=(0,) * r.type.rank, limit_indices=(*r.type.shape[:-2], 1, min(m, n)), strides=None)
    row = site.emit("reshape", row, new_sizes=(*r.type.shape[:-2], min(m, n)))
    factors = site.emit("mul", row, _nothing(site, row.type))
    site.recording.origins[factors.slot] = x
    return packed, factors


def _orgqr(site: Site, packed: Term, factors: Term) -> Term:
    x = site.recording.origins.get(factors.slot)
    if x is None:
        raise RefusedError("makes Q of Householder's vectors that are not those of a QR decomposition just before")
    columns = site.result.shape[-1]
    q, _ = site.emit_all("qr", x, full_matrices=columns > min(x.type.shape[-2:]))
    if q.type.shape[-1] > columns:
        q = site.emit("slice", q, start_indices=(0,) * q.type.rank, limit_indices=(*q.type.shape[:-1], columns), strides=None)
    return q


def _eigh(site: Site, x: Term) -> Sequence[Term]:
    v, w = site.emit_all("eigh", x, lower=_is_lower(site))
    return v, w, _status(site)


def _svd(site: Site, x: Term) -> Sequence[Term]:
    mode = _option(site, "mode")
    _, _, u_type, vh_type, _ = site.results
    if mode == "N":
        (s,) = site.emit_all("svd", x, compute_uv=False)
        return _nothing(site, x.type), s, _nothing(site, u_type), _nothing(site, vh_type), _status(site)
    s, u, vh = site.emit_all("svd", x, full_matrices=mode == "A")
    return _nothing(site, x.type), s, u, vh, _status(site)


def _eig(site: Site, x: Term) -> Sequence[Term]:
    left, right = (_option(site, f"compute_{side}") == "V" for side in ("left", "right"))
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


LINEAR_ALGEBRA: dict[str, Callable[..., Term | Sequence[Term]]] = {
    "geev": _eig,
    "gees": _schur,
    "geqrf": _geqrf,
    "gesdd": _svd,
    "gesvd": _svd,
    "getrf": _lu,
    "heevd": _eigh,
    "orgqr": _orgqr,
    "potrf": _cholesky,
    "syevd": _eigh,
    "trsm": _triangular,
    "ungqr": _orgqr,
}
"""LAPACK's functions, after the letter of the type, and those of cuSOLVER that are called alike."""

CALLS: dict[str, Callable[..., Term | Sequence[Term]]] = {
    **dict.fromkeys(["Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement"], _same),
    "cu_lu_pivots_to_permutation": _permutation,
    "hip_lu_pivots_to_permutation": _permutation,
}

OPERATIONS: dict[str, Reader] = {"stablehlo.custom_call": _custom_call}
