"""Constants, conversions, and primitives that only move elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from tidu_cli.errors import TypeRuleError
from tidu_cli.graph import types
from tidu_cli.graph.graph import Case
from tidu_cli.lax.arrays.dtypes import dtype_name as dtype_name
from tidu_cli.lax.arrays.dtypes import literal_array as literal_array
from tidu_cli.lax.arrays.dtypes import numpy_dtype as numpy_dtype
from tidu_cli.rules.analysis import free
from tidu_cli.rules.attrs import Axes, DTypeName, LiteralData, Shape
from tidu_cli.rules.batching import itself, sized, with_batch_axis
from tidu_cli.rules.catalogue import Caption, arrays, axes_words, listed, shape_words
from tidu_cli.rules.contract import JVP, TOGETHER, Attrs, Example, Kernel, Transposition, Types
from tidu_cli.rules.families import as_dtype, linear, linear_transpose, no_tangent, primitive, unary
from tidu_cli.rules.terms import Term, op

broadcast_in_dim, convert, reduce_sum, reshape, transpose = map(
    op, ("broadcast_in_dim", "convert_element_type", "reduce_sum", "reshape", "transpose")
)


class ConstantAttrs(Attrs):
    """`value`: the constant."""

    value: LiteralData


class ConvertAttrs(Attrs):
    """`new_dtype`: the dtype of the result."""

    new_dtype: DTypeName


class BroadcastAttrs(Attrs):
    """`shape`: that of the result; `broadcast_dimensions`: for each axis of the operand, its axis in the result."""

    shape: Shape
    broadcast_dimensions: Axes


class ReshapeAttrs(Attrs):
    """`new_sizes`: the shape of the result."""

    new_sizes: Shape


class TransposeAttrs(Attrs):
    """`permutation`: for each axis of the result, the operand's axis that it is."""

    permutation: Axes


def _constant_kernel(np: Any, attrs: ConstantAttrs, operands: Types, results: Types) -> Kernel:
    value = literal_array(np, attrs.value)[()]  # of rank 0 a scalar, on which NumPy's arithmetic is the faster
    return lambda: value


def _convert_types(attrs: ConvertAttrs, operands: Types) -> Types:
    (operand,) = operands
    if operand.dtype in types.DURATIONS and attrs.new_dtype in types.DATETIMES:
        raise TypeRuleError(f"a {operand.dtype} is not a point in time; use retract to move a datetime by it")
    return (operand.with_dtype(attrs.new_dtype),)


def _convert_kernel(np: Any, attrs: ConvertAttrs, operands: Types, results: Types) -> Kernel:
    old, new = operands[0].dtype, attrs.new_dtype
    if old in types.TIMES and new in types.TIMES and old != new:
        from tidu_cli.rules.units import conversion  # here and below, as times are rare

        return conversion(np, old, new)
    if (old in types.DATETIMES and new in types.FLOATS | types.COMPLEXES) or (
        new in types.DATETIMES and old in types.FLOATS | types.COMPLEXES | {"u64"}
    ):
        return _between_datetimes_and_numbers(np, old, new)
    old, new = types.storage_dtype(old), types.storage_dtype(new)
    dtype = numpy_dtype(np, new)
    if old in types.COMPLEXES and new not in types.COMPLEXES and new != "bool":
        part = _float_cast(np, dtype, new)
        return lambda z: part(z.real)
    return _float_cast(np, dtype, new) if old in types.FLOATS else lambda x: x.astype(dtype)


def _between_datetimes_and_numbers(np: Any, old: str, new: str) -> Kernel:
    """The kernel that makes numbers of datetimes, or datetimes of numbers that they may be unable to count: NaT is NaN."""
    from tidu_cli.rules.units import counts, numbers

    if old in types.DATETIMES:
        dtype = numpy_dtype(np, new)
        return lambda x: numbers(np, x).astype(dtype)
    if old == "u64":
        return lambda x: np.where(x < 2**63, x, np.uint64(2**63)).view(np.int64)
    return lambda x: counts(np, x.real if old in types.COMPLEXES else x)


def _float_cast(np: Any, dtype: Any, new: str) -> Kernel:
    if new not in types.INTEGERS:
        return lambda x: x.astype(dtype)
    info = np.iinfo(dtype)

    def saturating(x: Any) -> Any:
        # As XLA: towards zero, clamped to the range, NaN to 0. C leaves all of these undefined.
        x = np.asarray(x).astype(np.float64)
        low, high = x <= float(info.min), x >= float(info.max)
        inside = np.where(low | high | np.isnan(x), 0.0, x).astype(dtype)
        return np.where(low, dtype.type(info.min), np.where(high, dtype.type(info.max), inside))

    return saturating


def _convert_jvp(node: JVP) -> Sequence[Term | None]:
    (x,), (y,), t = node.operands, node.results, node.tangent
    if y.type.dtype in types.DATETIMES and x.type.dtype in types.DATETIMES:
        from tidu_cli.rules.units import is_step

        if is_step(x.type.dtype, y.type.dtype):
            return [None]
    return [as_dtype(t, types.tensor_tangent_type(y.type).dtype)]


def _convert_transpose(node: Transposition, ct: Term, type_: types.TensorType) -> Term:
    if type_.dtype == ct.type.dtype or type_.dtype not in types.DURATIONS or ct.type.dtype not in types.DURATIONS:
        return convert(ct, new_dtype=type_.dtype)
    # The adjoint of multiplication by a factor is multiplication by the same, where the conversion back would divide.
    from tidu_cli.rules.units import ratio

    factor, count = ratio(types.unit_of(type_.dtype), types.unit_of(ct.type.dtype)), convert(ct, new_dtype="f64")
    scaled = count * float(factor) if factor > 1 else count / float(factor.denominator)
    return convert(scaled, new_dtype=type_.dtype)


def _broadcast_types(attrs: BroadcastAttrs, operands: Types) -> Types:
    (operand,) = operands
    axes = attrs.broadcast_dimensions
    if len(axes) != operand.rank:
        raise TypeRuleError(
            f"broadcast_dimensions {list(axes)} has {len(axes)} axes for the operand {operand} of rank {operand.rank}"
        )
    if list(axes) != sorted(axes):
        raise TypeRuleError(f"broadcast_dimensions {list(axes)} must increase; use transpose to reorder axes")
    for k, axis in enumerate(axes):
        if axis >= len(attrs.shape):
            raise TypeRuleError(f"broadcast_dimensions {list(axes)} names axis {axis} of a result of rank {len(attrs.shape)}")
        if operand.shape[k] not in (1, attrs.shape[axis]):
            raise TypeRuleError(
                f"axis {k} of the operand {operand} has {operand.shape[k]} elements; result axis {axis} has {attrs.shape[axis]}"
            )
    return (operand.with_shape(attrs.shape),)


def _broadcast_kernel(np: Any, attrs: BroadcastAttrs, operands: Types, results: Types) -> Kernel:
    aligned = [1] * len(attrs.shape)
    for size, axis in zip(operands[0].shape, attrs.broadcast_dimensions, strict=True):
        aligned[axis] = size
    of_any: Kernel = lambda x: np.broadcast_to(np.reshape(x, aligned), attrs.shape)  # noqa: E731
    if operands[0].dtype == "bf16" or not results[0].size or np.__name__ != "numpy":
        return of_any
    # Elsewhere there are no views. The same view of an array that is contiguous, for a tenth of the price.
    dtype, strides = numpy_dtype(np, types.storage_dtype(operands[0].dtype)), [0] * len(attrs.shape)
    step = dtype.itemsize
    for size, axis in reversed(list(zip(operands[0].shape, attrs.broadcast_dimensions, strict=True))):
        strides[axis] = step if size == attrs.shape[axis] else 0
        step *= size

    def broadcast(x: Any) -> Any:
        x = np.asarray(x)
        return np.ndarray(attrs.shape, dtype, x, 0, strides) if x.flags.c_contiguous else of_any(x)

    return broadcast


def _broadcast_transpose(node: Transposition, ct: Term, type_: types.TensorType) -> Term:
    attrs = node.attrs
    kept = {axis for axis, n in zip(attrs.broadcast_dimensions, type_.shape, strict=True) if n == attrs.shape[axis]}
    summed = tuple(axis for axis in range(len(attrs.shape)) if axis not in kept)
    if summed:
        ct = reduce_sum(ct, axes=summed)
    return ct if ct.type == type_ else reshape(ct, new_sizes=type_.shape)


def _reshape_types(attrs: ReshapeAttrs, operands: Types) -> Types:
    (operand,) = operands
    result = operand.with_shape(attrs.new_sizes)
    if result.size != operand.size:
        from tidu_cli.graph.open_sizes import unequal  # which documents without such do without

        problem = f"new_sizes {list(attrs.new_sizes)} has {result.size} elements; the operand {operand} has {operand.size}"
        raise unequal(problem, result, operand)
    return (result,)


def _transpose_types(attrs: TransposeAttrs, operands: Types) -> Types:
    (operand,) = operands
    if sorted(attrs.permutation) != list(range(operand.rank)):
        raise TypeRuleError(f"permutation {list(attrs.permutation)} does not permute the {operand.rank} axes of {operand}")
    return (operand.with_shape(tuple(operand.shape[k] for k in attrs.permutation)),)


def _held_back(terms: Sequence[Term | None]) -> Sequence[Term | None]:
    """One barrier of the tangents or cotangents that there are: what waits, waits in the derivative, too."""
    there = [t for t in terms if t is not None]
    passed = iter(there[0].trace.emit_all("optimization_barrier", *there) if there else ())
    return [t and next(passed) for t in terms]


def _conversion_caption(case: Case, operands: Sequence[str]) -> Caption:
    (given,), new = arrays(case), cast(ConvertAttrs, case.attrs).new_dtype
    old = given.dtype if given else ""
    if old not in types.TIMES and new not in types.TIMES:
        return Caption(f"{operands[0]} as {new}", f"converted to {new}")
    from tidu_cli.rules.units import conversion_words

    how, does = conversion_words(old, new)
    return Caption(f"{operands[0]} {how}", does)


def _broadcast_caption(case: Case, operands: Sequence[str]) -> Caption:
    attrs = cast(BroadcastAttrs, case.attrs)
    new = [axis for axis in range(len(attrs.shape)) if axis not in attrs.broadcast_dimensions]
    does = f"repeated along {f'new {axes_words(new)}' if new else 'axes of size 1'}"
    return Caption(f"{operands[0]} repeated to {shape_words(attrs.shape)}", does, label=f"to {case.results[0]}")


def _transpose_caption(case: Case, operands: Sequence[str]) -> Caption:
    (x,), order = operands, cast(TransposeAttrs, case.attrs).permutation
    told = Caption(f"{x} with axes {listed(order)}", f"with its axes in the order {listed(order)}")
    return Caption(f"{x}ᵀ", "transposed") if order == (1, 0) else told


_CONVERSIONS_OF_TIMES = "i64 datetime[ms], f64 duration[h], datetime[s] datetime[ms], datetime[ms] datetime[D], \
datetime[ms] duration[h], duration[ms] duration[h], duration[D] duration[s]"

PRIMITIVES = (
    primitive(
        "constant",
        0,
        lambda attrs, operands: (attrs.value.type,),
        _constant_kernel,
        jvp=no_tangent,
        attrs=ConstantAttrs,
        dtypes=types.ANY,
        examples=(Example((), {"value": {"type": "f64[2]", "data": [1.0, 2.0]}}),),
        flops=free,
        formula="value",
        summary="a constant array",
    ),
    primitive(
        "convert_element_type",
        1,
        _convert_types,
        _convert_kernel,
        jvp=_convert_jvp,
        transpose=linear_transpose(_convert_transpose),
        batch=itself("convert_element_type"),
        sparsity="elements",
        attrs=ConvertAttrs,
        dtypes=types.ANY,
        integers="exact",
        examples=(
            *(Example(("T[2]",), {"new_dtype": dtype}) for dtype in ("f64", "f32", "c128", "i32", "bool")),
            *(Example((f"{old}[2]",), {"new_dtype": new}) for old, new in map(str.split, _CONVERSIONS_OF_TIMES.split(", "))),
        ),
        flops=free,
        formula="x as new_dtype",
        summary="conversion to another dtype; of complex to real, the real part; to integers, towards zero and clamped; times and "
        "numbers convert as counts of the unit, and datetimes to the last whole unit before",
        caption=_conversion_caption,
    ),
    linear(
        "broadcast_in_dim",
        _broadcast_types,
        _broadcast_kernel,
        _broadcast_transpose,
        sparsity="moved",
        shifts={"shape": sized, "broadcast_dimensions": with_batch_axis},
        attrs=BroadcastAttrs,
        examples=(
            Example(("T[]",), {"shape": [2, 3], "broadcast_dimensions": []}),
            Example(("T[2,1]",), {"shape": [2, 4, 3], "broadcast_dimensions": [0, 2]}),
        ),
        formula="x repeated along new axes and axes of size 1",
        summary="explicit broadcasting",
        caption=_broadcast_caption,
    ),
    linear(
        "reshape",
        _reshape_types,
        lambda np, attrs, operands, results: lambda x: np.reshape(x, attrs.new_sizes),
        lambda node, ct, type_: reshape(ct, new_sizes=type_.shape),
        sparsity="moved",
        shifts={"new_sizes": sized},
        attrs=ReshapeAttrs,
        examples=(Example(("T[2,3]",), {"new_sizes": [3, 2]}),),
        formula="the elements of x in row-major order, in another shape",
        summary="reshape",
        caption=("{0} reshaped to {shape_out}", "reshaped to {shape_out}"),
    ),
    linear(
        "transpose",
        _transpose_types,
        lambda np, attrs, operands, results: lambda x: np.transpose(x, attrs.permutation),
        lambda node, ct, type_: transpose(ct, permutation=tuple(map(node.attrs.permutation.index, range(ct.type.rank)))),
        sparsity="moved",
        shifts={"permutation": with_batch_axis},
        attrs=TransposeAttrs,
        examples=(Example(("T[2,3,4]",), {"permutation": [2, 0, 1]}),),
        formula="x with its axes permuted",
        summary="permutation of axes",
        caption=_transpose_caption,
    ),
    unary(
        "stop_gradient",
        types.ANY,
        "x",
        "identity whose derivative is taken as 0",
        kernel=lambda np, attrs, operands, results: lambda x: x,
        faithful=False,
        flops=free,
        caption=("{0}, held fixed", "held fixed"),
    ),
    primitive(
        "optimization_barrier",
        None,
        lambda attrs, operands: operands,
        lambda np, attrs, operands, results: lambda *xs: xs if len(xs) > 1 else xs[0],
        jvp=lambda node: _held_back(node.tangents),
        transpose=lambda node: _held_back([ct if a else None for ct, a in zip(node.cotangents, node.active, strict=True)]),
        batch=itself("optimization_barrier"),
        dtypes=types.ANY,
        n_results=lambda attrs, n_operands: n_operands,
        records=True,
        passes=True,
        examples=(Example(("T[2,3]",)), Example(("T[2]", "f64[]", "i32[3]")), Example(("{x: T[2], n: i32[3]}",))),
        linear=TOGETHER,
        flops=free,
        formula="the operands",
        summary="identity whose results are ready only when all operands are, which keeps what is computed twice apart",
        caption=("{0}, late", "not before all of {all}"),
    ),
)
