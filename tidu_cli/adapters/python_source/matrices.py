"""Linear algebra, Fourier transforms, and windows that slide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidu_cli.adapters.python_source.arrays import Results, Write, number
from tidu_cli.adapters.python_source.elements import dtype_text, extreme
from tidu_cli.adapters.python_source.text import ATOM, Text, call, shape_text, size_text, tuple_text
from tidu_cli.adapters.source_code import UnwrittenError


def _cholesky(unit: Any, case: Any, xs: list[Text]) -> Results:
    return call(f"np.linalg.cholesky({unit.full(xs[0], case.operands[0])})", case.results[0].shape)


def _solve(unit: Any, case: Any, xs: list[Text]) -> Results:
    """By rows: x a = b is aᵀ xᵀ = bᵀ."""
    attrs, type_ = case.attrs, case.operands[0]
    a, b = (unit.full(x, t) for x, t in zip(xs, case.operands, strict=True))
    turned = attrs.transpose_a == attrs.left_side
    lower = attrs.lower != turned
    if attrs.conjugate_a and type_.complex:
        a = f"np.conj({a})"
    if turned:
        a = f"np.swapaxes({a}, -1, -2)"
    if not attrs.left_side:
        b = f"np.swapaxes({b}, -1, -2)"
    code = f"{unit.module.use('_solve_triangular')}({a}, {b}, {lower}, {attrs.unit_diagonal})"
    return call(code if attrs.left_side else f"np.swapaxes({code}, -1, -2)", case.results[0].shape)


def _lu(unit: Any, case: Any, xs: list[Text]) -> Results:
    return list(unit.several(case, f"{unit.module.use('_lu')}({unit.full(xs[0], case.operands[0])})"))


def _permutation(unit: Any, case: Any, xs: list[Text]) -> Results:
    code = f"{unit.module.use('_permutation')}({unit.full(xs[0], case.operands[0])}, {size_text(case.attrs.permutation_size)})"
    return call(code, case.results[0].shape)


def _qr(unit: Any, case: Any, xs: list[Text]) -> Results:
    if case.attrs.pivoting:
        raise UnwrittenError("NumPy has no qr with pivoting; leave out pivoting")
    mode = ', mode="complete"' if case.attrs.full_matrices else ""
    return list(unit.several(case, f"np.linalg.qr({unit.full(xs[0], case.operands[0])}{mode})"))


def _fft(unit: Any, case: Any, xs: list[Text]) -> Results:
    lengths, name = case.attrs.fft_lengths, case.attrs.fft_type.lower()
    x = unit.full(xs[0], case.operands[0])
    if len(lengths) == 1:
        return call(f"np.fft.{name}({x}, {size_text(lengths[0])})", case.results[0].shape)
    axes = tuple_text(str(k) for k in range(-len(lengths), 0))
    return call(f"np.fft.{name}n({x}, {_numbers(lengths)}, axes={axes})", case.results[0].shape)


def _conv(unit: Any, case: Any, xs: list[Text]) -> Results:
    a, (lhs, rhs), (result,), numbers = case.attrs, case.operands, case.results, case.attrs.dimension_numbers
    n_axes, groups, batches = lhs.rank - 2, a.feature_group_count, a.batch_group_count
    x, w = (unit.full(x, t) for x, t in zip(xs, case.operands, strict=True))
    if lhs.dtype == "f16" or result.dtype != lhs.dtype:
        through = dtype_text("f32" if result.dtype == "f16" else result.dtype)
        x, w = (f"({code}).astype({through})" for code in (x, w))
    ordered = list(range(lhs.rank))
    x, w = (
        code if list(spec) == ordered else f"np.transpose({code}, {_numbers(spec)})"
        for code, spec in ((x, numbers.lhs_spec), (w, numbers.rhs_spec))
    )
    spread, windows = unit.module.use("_spread"), unit.module.use("_windows")
    padding = tuple_text(f"({size_text(low)}, {size_text(high)})" for low, high in ((0, 0), (0, 0), *a.padding))
    x = unit.assign(call(f"{spread}({x}, 0, {padding}, {_numbers((1, 1, *a.lhs_dilation))})", ())).code
    kernel = [rhs.shape[k] for k in numbers.rhs_spec]
    shape = _numbers(kernel[2:])
    x = unit.assign(call(f"{windows}({x}, {shape}, {_numbers(a.window_strides)}, {_numbers(a.rhs_dilation)})", ())).code
    out, inner = "stuvwx"[:n_axes], "hijklm"[:n_axes]
    if n_axes > len("stuvwx"):
        raise UnwrittenError("NumPy source has convolutions along six axes at most")
    n_groups = groups * batches
    w = f"np.reshape({w}, {_numbers((n_groups, kernel[0] // n_groups, *kernel[1:]))})"
    n = lhs.shape[numbers.lhs_spec[0]]
    counts = [result.shape[k] for k in numbers.out_spec[2:]]
    split = (batches, n // batches, kernel[1]) if batches > 1 else (n, groups, kernel[1])
    x = f"np.reshape({x}, {_numbers((*split, *counts, *kernel[2:]))})"
    left = f"gnc{out}{inner}" if batches > 1 else f"ngc{out}{inner}"
    y = f'np.einsum("{left},goc{inner}->ngo{out}", {x}, {w}, optimize=True)'
    y = f"np.reshape({y}, {_numbers((n // batches, kernel[0], *counts))})"
    if list(numbers.out_spec) != ordered:
        y = f"np.transpose({y}, {tuple_text(str(numbers.out_spec.index(k)) for k in ordered)})"
    return call(y + (".astype(np.float16)" if result.dtype == "f16" else ""), result.shape)


_WINDOWS = {"reduce_window_sum": "sum", "reduce_window_max": "max", "reduce_window_min": "min"}


def _reduce_window(unit: Any, case: Any, xs: list[Text]) -> Results:
    a, (type_,), dtype = case.attrs, case.operands, case.operands[0].dtype
    name, x = _WINDOWS[case.op], unit.full(xs[0], type_)
    if any(n != 0 for pair in a.padding for n in pair) or set(a.base_dilation) - {1}:
        fill = "0" if name == "sum" else extreme(dtype, low=name == "max")
        padding = tuple_text(f"({size_text(low)}, {size_text(high)})" for low, high in a.padding)
        x = f"{unit.module.use('_spread')}({x}, {fill}, {padding}, {_numbers(a.base_dilation)})"
    sizes = ", ".join(map(_numbers, (a.window_dimensions, a.window_strides, a.window_dilation)))
    x = unit.simple(call(f"{unit.module.use('_windows')}({x}, {sizes})", ())).code
    axes = tuple_text(str(k) for k in range(-type_.rank, 0))
    wide = ", dtype=np.float32).astype(np.float16)" if dtype == "f16" else f", dtype={dtype_text(dtype)})"
    return call(f"np.{name}({x}, axis={axes}{wide if name == 'sum' else ')'}", case.results[0].shape)


def _select(unit: Any, case: Any, xs: list[Text]) -> Results:
    """What is at the extrema of windows, or is added there."""
    a, (type_, operand), (result,) = case.attrs, case.operands, case.results
    if 0 in (type_.size, operand.size):
        return number(result.dtype, 0)
    low, ones = a.select_prim == "ge", (1,) * operand.rank
    for name in ("_spread", "_windows", "_chosen"):
        unit.module.use(name)
    padding = tuple_text(f"({size_text(low)}, {size_text(high)})" for low, high in a.padding)
    sizes = a.base_dilation or ones, a.window_dimensions, a.window_strides, a.window_dilation or ones
    given = [unit.full(xs[1], operand), "np.max" if low else "np.min", extreme(operand.dtype, low=low), padding]
    places = unit.assign(call(f"_chosen({', '.join([*given, *map(_numbers, sizes)])})", ())).code
    x = unit.full(xs[0], type_, ATOM)
    if case.op == "select_and_gather_add":
        zero = f"{dtype_text(result.dtype)}(0)"
        return call(f"np.where({places} < 0, {zero}, np.reshape({x}, -1)[{places}])", result.shape)
    through = "f32" if result.dtype == "f16" else result.dtype
    sums = unit.assign(call(f"np.zeros({size_text(result.size)}, dtype={dtype_text(through)})", ())).code
    unit.emit(f"np.add.at({sums}, np.maximum({places}, 0), np.where({places} < 0, {dtype_text(result.dtype)}(0), {x}))")
    back = f".astype({dtype_text(result.dtype)})" if through != result.dtype else ""
    return call(f"np.reshape({sums}, {shape_text(result.shape)}){back}", result.shape)


def _numbers(sizes: Sequence[int]) -> str:
    return tuple_text(map(size_text, sizes))


def _eigh(unit: Any, case: Any, xs: list[Text]) -> Results:
    _require_real(case)
    part = "" if case.attrs.lower else ', "U"'
    return list(unit.several(case, f"np.linalg.eigh({unit.full(xs[0], case.operands[0])}{part})", (1, 0)))


def _require_real(case: Any) -> None:
    """Raises UnwrittenError for complex vectors, whose phases NumPy chooses otherwise."""
    if case.operands[0].complex and len(case.results) > 1:
        raise UnwrittenError(f"NumPy has other phases in {case.op} of complex matrices")


def _svd(unit: Any, case: Any, xs: list[Text]) -> Results:
    a, (type_,) = case.attrs, case.operands
    _require_real(case)
    x = unit.full(xs[0], type_)
    if not a.compute_uv:
        return call(f"np.linalg.svd({x}, compute_uv=False)", case.results[0].shape)
    if a.full_matrices and type_.shape[-1] != type_.shape[-2]:
        raise UnwrittenError("NumPy completes the vectors in svd otherwise; leave out full_matrices")
    return list(unit.several(case, f"np.linalg.svd({x}, full_matrices=False)", (1, 0, 2)))


def _eig(unit: Any, case: Any, xs: list[Text]) -> Results:
    a, x, dtype = case.attrs, unit.full(xs[0], case.operands[0]), dtype_text(case.results[0].dtype)
    if a.compute_left_eigenvectors:
        raise UnwrittenError("NumPy has no left eigenvectors; take those of the adjoint matrix")
    if not a.compute_right_eigenvectors:
        return call(f"np.linalg.eigvals({x}).astype({dtype})", case.results[0].shape)
    return [call(f"{name.code}.astype({dtype})", name.shape) for name in unit.several(case, f"np.linalg.eig({x})")]


def _pinv(unit: Any, case: Any, xs: list[Text]) -> Results:
    return call(f"np.linalg.pinv({unit.full(xs[0], case.operands[0])}, rtol={case.attrs.rtol!r})", case.results[0].shape)


def _det(unit: Any, case: Any, xs: list[Text]) -> Results:
    if len(xs) > 1:
        raise UnwrittenError("NumPy source has no derivatives of cofactors; write the determinant as a sum of products")
    function = "np.linalg.det" if case.op == "det" else unit.module.use("_cofactors")
    return call(f"{function}({unit.full(xs[0], case.operands[0])})", case.results[0].shape)


MATRICES: dict[str, Write] = {
    "cholesky": _cholesky, "triangular_solve": _solve, "lu": _lu, "lu_pivots_to_permutation": _permutation, "qr": _qr, "fft": _fft,
    "conv_general_dilated": _conv, **dict.fromkeys(_WINDOWS, _reduce_window), "select_and_gather_add": _select,
    "select_and_scatter_add": _select, "eigh": _eigh, "svd": _svd, "eig": _eig, "pinv": _pinv, "det": _det, "cofactors": _det,
}  # fmt: skip
"""By op."""
