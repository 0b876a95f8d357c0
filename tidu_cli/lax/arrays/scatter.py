"""Scattering: windows of an array replaced by updates, or combined with them, at computed places.

Where windows overlap, updates apply one after the other, in the row-major order of the indices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tidu_cli.errors import MissingRuleError
from tidu_cli.graph.sizes.open import surely
from tidu_cli.graph.types import ANY, DATETIMES, DURATIONS, NUMERIC, TensorType
from tidu_cli.lax.arrays.dtypes import ORDERED, numpy_dtype, ordered_dtype
from tidu_cli.lax.arrays.slicing import operand_type, zeros
from tidu_cli.lax.arrays.windows import (
    Mode,
    ScatterDimensionNumbers,
    batched_numbers,
    locator,
    scatter_windows,
    staying,
    transposed,
)
from tidu_cli.rules import contract
from tidu_cli.rules.analysis import Spread, Spreading, adding, free, multiplying, updating
from tidu_cli.rules.batching import stacked
from tidu_cli.rules.families import Adjoint, by_counts, conj, linear_jvp, linear_transpose, primitive, require_dtype, summed
from tidu_cli.rules.terms import Term, op

broadcast_in_dim, convert, eq, gather, reshape, scatter, scatter_add, scatter_mul, select_n = map(
    op, ("broadcast_in_dim", "convert_element_type", "eq", "gather", "reshape", "scatter", "scatter-add", "scatter-mul", "select_n")
)


class ScatterAttrs(contract.Attrs):
    """`dimension_numbers`: StableHLO's, index_vector_dim being the last axis of the indices.

    `mode`: what becomes of a window that does not fit. `clip` moves its start so that it fits, and so does `promise_in_bounds`,
    which says that there is none; `fill` drops its update. Negative indices do not count from the end.
    """

    dimension_numbers: ScatterDimensionNumbers
    mode: Mode


class UniqueScatterAttrs(ScatterAttrs):
    """`dimension_numbers`, `mode`: as scatter-add's. `unique_indices` promises that no windows overlap."""

    unique_indices: bool = False


_INDICES = (1, 2)
"""Which operands are indices."""


def _types(dtypes: frozenset[str]) -> contract.TypeRule:
    def types(attrs: Any, operands: contract.Types) -> contract.Types:
        require_dtype(dtypes, operands[:1])
        scatter_windows(attrs.dimension_numbers, *operands)
        return operands[:1]

    return types


Combine = Callable[[Any, Any, Any, Any], None]
"""From (NumPy, a matrix, row numbers, rows), to put the rows into the matrix."""


def _replace(np: Any, matrix: Any, numbers: Any, rows: Any) -> None:
    # By one list of row numbers: for several index arrays NumPy does not say which of equal indices comes last.
    matrix[numbers] = rows


def _combine(function: str) -> Combine:
    def combine(np: Any, matrix: Any, numbers: Any, rows: Any) -> None:
        # NumPy is fast at this for one axis alone.
        width = matrix.shape[1]
        elements = numbers if width == 1 else np.add.outer(numbers * width, np.arange(width)).ravel()
        getattr(np, function).at(matrix.reshape(-1), elements, rows.reshape(-1))

    return combine


def _kernel(combine: Combine, *, reusing: bool = False) -> contract.KernelRule:
    """The kernel rule of a scatter. If `reusing`, results are made in the memory of the operand, where its layout allows it."""

    def kernel(np: Any, attrs: Any, operands: contract.Types, results: contract.Types) -> contract.Kernel:
        if not operands[0].size or not operands[2].size:
            return (lambda x, indices, updates: x) if reusing else (lambda x, indices, updates: np.array(x))
        windows = scatter_windows(attrs.dimension_numbers, *operands)
        locate, inverse = locator(np, windows, attrs.mode), sorted(range(len(windows.layout)), key=windows.layout.__getitem__)
        width = math.prod(windows.operand[len(windows.operand) - windows.n_tail :])
        dtype = numpy_dtype(np, results[0].dtype)
        # Half precision accumulates in single.
        through = np.float32 if results[0].dtype in ("f16", "bf16") and combine is not _replace else dtype
        seen = ordered_dtype(np, results[0].dtype) if results[0].dtype in DATETIMES else through

        def scattered(x: Any, indices: Any, updates: Any) -> Any:
            out = np.asarray(x, through, order="C") if reusing else np.array(x, through, order="C")
            numbers, fits = locate(indices)
            rows = np.reshape(np.transpose(updates, inverse), (*numbers.shape, width)).astype(through, copy=False)
            if not fits.all():
                numbers, rows = numbers[fits], rows[fits]
            combine(np, np.reshape(out, (-1, width)).view(seen), numbers.ravel(), np.reshape(rows, (-1, width)).view(seen))
            return out.astype(dtype, copy=False)

        return scattered

    return kernel


def _tangents(node: contract.JVP) -> tuple[Term, Term]:
    """The tangents of operand and updates, zeros where they are inactive."""
    (x, _, updates), (t, _, tu) = node.operands, node.tangents
    some = t or tu
    assert some is not None
    dtype = some.type.dtype
    return t or zeros(x.type.with_dtype(dtype), some), tu or zeros(updates.type.with_dtype(dtype), some)


def _read_back(x: Term, indices: Term, attrs: Any, updates: TensorType, fill_value: int | None = None) -> Term:
    """Of each update, the values of x that it is put on: gather is scatter's inverse."""
    windows = scatter_windows(attrs.dimension_numbers, x.type, indices.type, updates.with_dtype(x.type.dtype))
    numbers, mode = transposed(attrs.dimension_numbers), attrs.mode
    fill_value = fill_value if mode == "fill" else None
    return gather(x, indices, dimension_numbers=numbers, slice_sizes=windows.sizes, mode=mode, fill_value=fill_value)


def _not_replaced(node: contract.Transposition, ct: Term, type_: TensorType) -> Term:
    """The cotangent of a scatter's operand: zero where updates are put."""
    return scatter(ct, node.operands[1], zeros(operand_type(node, 2), ct), **dict(node.attrs))


def _of_updates(node: contract.Transposition, ct: Term, type_: TensorType) -> Term | None:
    """The cotangents of all updates, from where they are put."""
    indices = node.operands[1]
    assert indices is not None
    return _read_back(ct, indices, node.attrs, type_, fill_value=0) if ct.type.size != 0 else None


def _of_last(node: contract.Transposition, cotangent: Term, type_: TensorType) -> Term | None:
    """The updates' cotangents, zero for those that others overwrote: scattering the windows' numbers tells which did."""
    ct, indices, attrs, operand = _of_updates(node, cotangent, type_), node.operands[1], node.attrs, cotangent.type
    if ct is None or indices is None or attrs.unique_indices:
        return ct
    windows = scatter_windows(attrs.dimension_numbers, operand, indices.type, ct.type)
    count = math.prod(windows.batch)
    if surely(lambda: count <= 1):
        return ct
    dtype = "i32" if surely(lambda: count < 2**31) else "i64"
    numbers = reshape(ct.trace.emit("iota", dtype=dtype, shape=(count,), dimension=0), new_sizes=windows.batch)
    batch_axes = tuple(axis for axis in range(ct.type.rank) if axis not in windows.window_dims)
    numbers = broadcast_in_dim(numbers, shape=ct.type.shape, broadcast_dimensions=batch_axes)
    left = scatter(zeros(operand.with_dtype(dtype), ct), indices, numbers, **dict(attrs))
    return select_n(eq(_read_back(left, indices, attrs, ct.type), numbers), 0, ct)


def _taken_away(node: contract.Transposition, ct: Term, type_: TensorType) -> Term | None:
    read = _of_updates(node, ct, type_)
    return None if read is None else -read


def _mul_jvp(node: contract.JVP) -> Sequence[Term | None]:
    (x, indices, updates), (t, _, tu), attrs = node.operands, node.tangents, node.attrs
    terms = [None if t is None else scatter_mul(t, indices, updates, **dict(attrs))]
    if tu is not None:
        if not attrs.unique_indices:
            raise MissingRuleError("missing derivative rule for scatter-mul in its updates, but where unique_indices is true")
        added = scatter_add(zeros(x.type, tu), indices, tu, dimension_numbers=attrs.dimension_numbers, mode=attrs.mode)
        terms.append(x * added)
    return [summed(terms)]


def _mul_transpose(node: contract.Transposition) -> Sequence[Term | None]:
    _, indices, updates = node.operands
    if updates is None:
        raise MissingRuleError("missing transpose rule for scatter-mul in its updates: what they do not touch stays")
    return [scatter_mul(node.cotangent, indices, conj(updates), **dict(node.attrs)), None, None]


def _extremum_jvp(node: contract.JVP) -> Sequence[Term | None]:
    # Shared equally among the operand's element and the updates that tie for the place.
    (x, indices, updates), (y,), attrs = node.operands, node.results, node.attrs
    if x.type.size == 0:
        return [node.tangents[0]]
    t, tu = _tangents(node)
    is_kept, is_taken = eq(x, y), eq(updates, _read_back(y, indices, attrs, updates.type))

    def put(at_operand: Term, at_updates: Term) -> Term:
        return scatter_add(at_operand, indices, at_updates, **dict(attrs))

    ties = put(*(convert(mask, new_dtype=t.type.dtype) for mask in (is_kept, is_taken)))
    # A tangent that is zero stays a constant, for all to see that the sum is linear in the other.
    shares = (select_n(mask, 0, x) if x.linear else x for mask, x in ((is_kept, t), (is_taken, tu)))
    return [put(*shares) / ties]


def _ties(np: Any, attrs: Any, operands: Sequence[Any], results: Sequence[Any]) -> Any:
    """The elements that several of the operand's element and the updates are."""
    x, indices, updates = operands
    if not updates.size or not x.size:
        return np.zeros(x.shape, bool)

    def count(np: Any, matrix: Any, numbers: Any, rows: Any) -> None:
        best = np.reshape(results[0], matrix.shape)
        counts = (matrix == best).astype(np.int64)
        np.add.at(counts, numbers, np.reshape(rows, (-1, matrix.shape[1])) == best[numbers])
        matrix[...] = counts > 1

    types = [TensorType(dtype, each.shape) for dtype, each in zip(("f64", "i64", "f64"), operands, strict=True)]
    return _kernel(count)(np, attrs, tuple(types), (types[0],))(x, indices, updates) != 0


def _batch(name: str) -> contract.BatchRule:
    apply = op(name)

    def batch(node: contract.Batching) -> Sequence[Term]:
        # The result is a batch whichever operand is, so that operand and updates must both be.
        of_indices, indices = node.batched[1], node.operands[1]
        numbers = batched_numbers(node.attrs.dimension_numbers, operand=True, indices=of_indices)
        return [apply(stacked(node, 0), indices, stacked(node, 2), **(dict(node.attrs) | {"dimension_numbers": numbers}))]

    return batch


_DIMENSIONS = {"update_window_dims": [1], "inserted_window_dims": [0], "scatter_dims_to_operand_dims": [0]}
_BLOCKS = {
    "update_window_dims": [0],
    "inserted_window_dims": [],
    "scatter_dims_to_operand_dims": [1],
    "operand_batching_dims": [0],
    "scatter_indices_batching_dims": [0],
}


def _examples(operand: str, **attrs: bool) -> tuple[contract.Example, ...]:
    return (
        contract.Example(
            (f"{operand}[4,3]", "i32[3,1]", f"{operand}[3,3]"),
            {"dimension_numbers": _DIMENSIONS, "mode": "fill", **attrs},
            ((-2.0, 2.0), (0, 6), (-2.0, 2.0)),
        ),
        contract.Example(
            (f"{operand}[2,5]", "i32[2,1]", f"{operand}[3,2]"),
            {"dimension_numbers": _BLOCKS, "mode": "clip", **attrs},
            ((-2.0, 2.0), (0, 4), (-2.0, 2.0)),
        ),
    )


def _primitive(
    name: str,
    dtypes: frozenset[str],
    combine: Combine,
    jvp: contract.JVPRule,
    transpose: contract.TransposeRule | None,
    *,
    summary: str,
    **rest: Any,
) -> contract.Primitive:
    """A scatter; unless it is told, of as many operations as sums would be."""
    told: dict[str, Any] = {"attrs": ScatterAttrs, "examples": _examples("T"), "flops": updating(adding)}
    return primitive(
        name,
        3,
        _types(dtypes),
        _kernel(combine),
        jvp=jvp,
        transpose=transpose,
        batch=_batch(name),
        indices=_INDICES,
        dtypes=dtypes,
        fresh=True,
        reusing=_kernel(combine, reusing=True),
        summary=f"{summary}; inputs are operand, indices and updates",
        **(told | rest),
    )


def _unplaced(node: Spreading) -> Sequence[Spread]:
    """The operand stays where it is."""
    if node.k == 0:
        return [(axis, axis, None) for axis in range(node.operand.rank)]
    return [(r, o, None) for o, r in staying(node.attrs.dimension_numbers, node.operand.shape, node.result.shape)]


def _accumulating(name: str, function: str, done: str, sign: str, to_updates: Adjoint) -> contract.Primitive:
    return _primitive(
        name,
        NUMERIC | DURATIONS,
        _combine(function),
        lambda node: [node.tangents[0]] if node.tangents[2] is None else linear_jvp(name, _INDICES)(node),
        linear_transpose(lambda node, ct, type_: ct, None, to_updates),
        linear=contract.TOGETHER,
        sparsity="summed",
        unplaced=_unplaced,
        formula=f"x[indices] {sign}= u",
        summary=f"updates {done} windows of an array",
        caption=(f"{{2}} {done} {{0}} at {{1}}", f"{done.partition(' ')[0]} at the indices {{1}}"),
    )


def _extreme(name: str, extremum: str, extrema: str) -> contract.Primitive:
    return _primitive(
        f"scatter-{name}",
        ORDERED,
        _combine(extremum),
        by_counts(_extremum_jvp),
        None,
        integers="exact",
        kinks=lambda k: [k.Kink(_ties, "elements and updates tie", "equal shares", onnx="")],
        formula=f"x[indices] = {name}(x[indices], u)",
        summary=f"{extrema} of windows of an array and updates; NaN wins; its derivative is shared equally among ties",
        caption=(f"{name} of {{0}} and {{2}} at {{1}}", f"{extremum} at the indices {{1}}"),
    )


PRIMITIVES = (
    _primitive(
        "scatter",
        ANY,
        _replace,
        linear_jvp("scatter", _INDICES),
        linear_transpose(_not_replaced, None, _of_last),
        flops=free,
        attrs=UniqueScatterAttrs,
        examples=(*_examples("T"), *_examples("f64", unique_indices=True)[1:]),
        linear=contract.TOGETHER,
        sparsity="moved",
        unplaced=_unplaced,
        formula="x[indices] = u",
        summary="windows of an array replaced; of updates of one place the last stays",
        caption=("{2} put into {0} at {1}", "put in at the indices {1}"),
    ),
    _accumulating("scatter-add", "add", "added to", "+", _of_updates),
    _accumulating("scatter-sub", "subtract", "subtracted from", "-", _taken_away),
    _primitive(
        "scatter-mul",
        NUMERIC,
        _combine("multiply"),
        _mul_jvp,
        _mul_transpose,
        flops=updating(multiplying),
        attrs=UniqueScatterAttrs,
        examples=_examples("T", unique_indices=True)[1:],
        linear=((0, 1),),
        sparsity="elements",
        formula="x[indices] *= u",
        summary="windows of an array multiplied by updates; its derivative in the updates needs unique_indices",
        caption=("{0} times {2} at {1}", "multiplied at the indices {1}"),
    ),
    _extreme("max", "maximum", "maxima"),
    _extreme("min", "minimum", "minima"),
)
