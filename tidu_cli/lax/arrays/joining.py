"""Joining and ordering: padding, concatenation, axes of size 1, reversal, counting, and copies."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Annotated, Any, cast

from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.graph import Case
from tidu_cli.graph.literals import Literal, filled
from tidu_cli.graph.sizes.open import larger
from tidu_cli.graph.types import FLOATS, NUMERIC, TensorType
from tidu_cli.lax.arrays.dtypes import literal_array, numpy_dtype
from tidu_cli.lax.arrays.slicing import operand_type, part, require_one_per_axis, zeros
from tidu_cli.rules import families
from tidu_cli.rules.analysis import free
from tidu_cli.rules.attrs import Axes, Axis, DTypeName, Edge, Extent, Shape
from tidu_cli.rules.batching import later, preceded, repeated, spread, stacked
from tidu_cli.rules.catalogue import Caption, listed, shape_words
from tidu_cli.rules.contract import Attrs, Batching, Example, Kernel, Transposition, Types
from tidu_cli.rules.fields import Bounded
from tidu_cli.rules.terms import Term, op

concatenate, copy, expand_dims, pad, reduce_sum, rev, select_n, slice_, squeeze = map(
    op, ("concatenate", "copy", "expand_dims", "pad", "reduce_sum", "rev", "select_n", "slice", "squeeze")
)

Gap = Annotated[int, Bounded(ge=0, lt=2**62)]


class PadAttrs(Attrs):
    """`padding_config`: per axis [low, high, interior], how much padding goes before, after, and between any two elements.

    A negative low or high takes elements away.
    """

    padding_config: tuple[tuple[Edge, Edge, Gap], ...]


class ConcatenateAttrs(Attrs):
    """`dimension`: the axis along which the operands follow one another."""

    dimension: Axis


class SqueezeAttrs(Attrs):
    """`dimensions`: the axes of the operand that go, each of size 1."""

    dimensions: Axes


class ExpandDimsAttrs(Attrs):
    """`dimensions`: the axes of the result that are new, each of size 1."""

    dimensions: Axes


class RevAttrs(Attrs):
    """`dimensions`: the axes whose order is reversed."""

    dimensions: Axes


class SizeAttrs(Attrs):
    """`expression`: a size, open or a number; `dtype`: that of the result, i64 or a float."""

    expression: Extent
    dtype: DTypeName


class IotaAttrs(Attrs):
    """`dtype`, `shape`: those of the result; `dimension`: the axis along which it counts."""

    dtype: DTypeName
    shape: Shape
    dimension: Axis


def _pad_types(attrs: PadAttrs, operands: Types) -> Types:
    operand, value = operands
    if value != TensorType(operand.dtype):
        raise TypeRuleError(f"the padding value (input 1) is {value}; for the operand {operand} it must be {operand.dtype}[]")
    require_one_per_axis("padding_config", attrs.padding_config, operand)
    shape = []
    for axis, (n, (low, high, interior)) in enumerate(zip(operand.shape, attrs.padding_config, strict=True)):
        shape.append(low + n + larger(n - 1, 0) * interior + high)
        if shape[-1] < 0:
            raise TypeRuleError(
                f"padding {[low, high, interior]} takes more from axis {axis} of the operand {operand} than its {n} elements"
            )
    return (operand.with_shape(tuple(shape)),)


def _pad_kernel(np: Any, attrs: PadAttrs, operands: Types, results: Types) -> Kernel:
    shape, dtype = results[0].shape, numpy_dtype(np, results[0].dtype)
    source, target = [], []
    for n, size, (low, _, interior) in zip(operands[0].shape, shape, attrs.padding_config, strict=True):
        # Element k goes to low + k step; the first and last k that stay within the result:
        step = interior + 1
        first, end = max(0, -(low // step)), min(n, -((low - size) // step))
        end = max(first, end)
        source.append(slice(first, end))
        target.append(slice(low + first * step, low + (end - 1) * step + 1, step) if end > first else slice(0, 0))

    def padded(x: Any, value: Any) -> Any:
        out = np.full(shape, value, dtype)
        out[tuple(target)] = np.asarray(x)[tuple(source)]
        return out

    return padded


def _unpadded(node: Transposition, ct: Term, type_: TensorType) -> Term:
    config = node.attrs.padding_config
    taken = tuple((larger(-low, 0), larger(-high, 0), 0) for low, high, _ in config)
    if any(any(edges) for edges in taken):
        ct = pad(ct, zeros(TensorType(type_.dtype), ct), padding_config=taken)
    if ct.type == type_:
        return ct
    strides = tuple(interior + 1 for _, _, interior in config)
    return slice_(
        ct,
        start_indices=tuple(larger(low, 0) for low, _, _ in config),
        limit_indices=tuple(n - larger(high, 0) for n, (_, high, _) in zip(ct.type.shape, config, strict=True)),
        strides=strides if max(strides) > 1 else None,
    )


def _pad_caption(case: Case, operands: Sequence[str]) -> Caption:
    config = case.attrs.padding_config  # type: ignore[attr-defined]
    sides, gaps = [f"{low} before and {high} after" for low, high, _ in config], [gap for *_, gap in config]
    between = f", {listed(gaps)} between elements" if any(gaps) else ""
    shape = shape_words(cast(Types, case.results)[0].shape) if case.results else ""
    return Caption(f"{operands[0]} padded to {shape} with {operands[1]}", f"padded by {', then '.join(sides)}{between}")


def _pad_batch(node: Batching) -> Sequence[Term]:
    (x, value), config = node.operands, node.attrs.padding_config
    if not node.batched[1]:
        return [pad(stacked(node, 0), value, padding_config=preceded((0, 0, 0))(config, node.size))]
    # There is one padding value in a pad: the others' are put in by a mask.
    type_ = node.types[0]
    is_padding = pad(zeros(type_.with_dtype("bool"), x), x.trace.full(1, TensorType("bool")), padding_config=config)
    if node.batched[0]:
        config = preceded((0, 0, 0))(config, node.size)
    padded = pad(x, zeros(TensorType(type_.dtype), x), padding_config=config)
    if not node.batched[0]:
        padded = repeated(padded, node.size)
    return [select_n(repeated(is_padding, node.size), padded, spread(value, padded.type.shape))]


def _of_padding(node: Transposition, ct: Term, type_: TensorType) -> Term:
    """The sum of the cotangents of the padding: by a mask, since the difference of sums would lose digits, or be inf - inf."""
    true = ct.trace.full(1, TensorType("bool"))
    is_padding = pad(zeros(operand_type(node, 0).with_dtype("bool"), ct), true, padding_config=node.attrs.padding_config)
    return reduce_sum(select_n(is_padding, 0, ct), axes=tuple(range(ct.type.rank)))


def _concatenate_types(attrs: ConcatenateAttrs, operands: Types) -> Types:
    first, axis = operands[0], attrs.dimension
    families.require_axis("dimension", axis, first)
    for k, t in enumerate(operands):
        if t.dtype != first.dtype or t.rank != first.rank:
            raise TypeRuleError(f"type mismatch: input 0 is {first}, input {k} is {t}")
        for other, (m, n) in enumerate(zip(first.shape, t.shape, strict=True)):
            if m != n and other != axis:
                raise TypeRuleError(
                    f"axis {other} of input 0 {first} has {m} elements, of input {k} {t} {n}; only axis {axis} may differ"
                )
    total = sum(t.shape[axis] for t in operands)
    return (first.with_shape((*first.shape[:axis], total, *first.shape[axis + 1 :])),)


def _concatenate_transpose(node: Transposition) -> Sequence[Term | None]:
    ct, axis = node.cotangent, node.attrs.dimension
    if len(node.types) == 1:
        return [ct]
    sizes = [operand_type(node, k).shape[axis] for k in range(len(node.types))]
    return [part(ct, axis, end - n, end) if a else None for n, end, a in zip(sizes, accumulate(sizes), node.active, strict=True)]


def _squeeze_types(attrs: SqueezeAttrs, operands: Types) -> Types:
    (operand,) = operands
    families.require_axes("dimensions", attrs.dimensions, operand)
    for axis in attrs.dimensions:
        if operand.shape[axis] != 1:
            raise TypeRuleError(f"axis {axis} of the operand {operand} has {operand.shape[axis]} elements; only axes of 1 can go")
    return (operand.with_shape(tuple(n for k, n in enumerate(operand.shape) if k not in attrs.dimensions)),)


def _expand_dims_types(attrs: ExpandDimsAttrs, operands: Types) -> Types:
    (operand,) = operands
    rank = operand.rank + len(attrs.dimensions)
    for axis in attrs.dimensions:
        if axis >= rank:
            raise TypeRuleError(f"dimensions {list(attrs.dimensions)} names axis {axis} of a result of rank {rank}")
    sizes = iter(operand.shape)
    return (operand.with_shape(tuple(1 if k in attrs.dimensions else next(sizes) for k in range(rank))),)


def _reshaped_kernel(np: Any, attrs: Any, operands: Types, results: Types) -> Kernel:
    return lambda x: np.reshape(x, results[0].shape)


def _rev_types(attrs: RevAttrs, operands: Types) -> Types:
    families.require_axes("dimensions", attrs.dimensions, operands[0])
    return operands


def _size_types(attrs: SizeAttrs, operands: Types) -> Types:
    result = TensorType(attrs.dtype)
    families.require_dtype(FLOATS | {"i64"}, (result,), what="result")
    return (result,)


def size_literal(attrs: SizeAttrs) -> Literal:
    """The number that a size is. Raises UndecidedSizeError for an open one."""
    return filled(TensorType(attrs.dtype), int(attrs.expression))


def _size_kernel(np: Any, attrs: SizeAttrs, operands: Types, results: Types) -> Kernel:
    value = literal_array(np, size_literal(attrs))[()]
    return lambda: value


def _iota_types(attrs: IotaAttrs, operands: Types) -> Types:
    result = TensorType(attrs.dtype, attrs.shape)
    families.require_dtype(NUMERIC, (result,), what="result")
    families.require_axis("dimension", attrs.dimension, result, what="result")
    return (result,)


def _iota_kernel(np: Any, attrs: IotaAttrs, operands: Types, results: Types) -> Kernel:
    aligned = [n if axis == attrs.dimension else 1 for axis, n in enumerate(attrs.shape)]
    counted = np.arange(attrs.shape[attrs.dimension]).astype(numpy_dtype(np, attrs.dtype)).reshape(aligned)
    return lambda: np.broadcast_to(counted, attrs.shape)


PRIMITIVES = (
    families.linear(
        "pad",
        _pad_types,
        _pad_kernel,
        sparsity="moved",
        arity=2,
        transpose=families.linear_transpose(_unpadded, _of_padding),
        batch=_pad_batch,
        fresh=True,
        attrs=PadAttrs,
        examples=(
            Example(("T[2,3]", "T[]"), {"padding_config": [[1, 2, 0], [0, 1, 2]]}),
            Example(("T[4,3]", "T[]"), {"padding_config": [[-1, 2, 1], [1, -2, 0]]}),
        ),
        formula="x, with a value before, after and between its elements",
        summary="padding, which may be negative; input 1 is the padding value",
        caption=_pad_caption,
    ),
    families.linear(
        "concatenate",
        _concatenate_types,
        lambda np, attrs, operands, results: lambda *xs: np.concatenate(xs, axis=attrs.dimension),
        sparsity="moved",
        arity=None,
        jvp=lambda node: families.linear_jvp("concatenate")(node) if len(node.operands) > 1 else node.tangents,
        transpose=_concatenate_transpose,
        shifts={"dimension": later},
        attrs=ConcatenateAttrs,
        examples=(Example(("T[2,3]", "T[2,1]", "T[2,0]"), {"dimension": 1}), Example(("T[3]",), {"dimension": 0})),
        formula="the operands one after the other",
        summary="concatenation along an axis",
        caption=("{all} joined", "joined along axis {dimension}"),
    ),
    families.linear(
        "squeeze",
        _squeeze_types,
        _reshaped_kernel,
        lambda node, ct, type_: expand_dims(ct, dimensions=node.attrs.dimensions),
        sparsity="moved",
        shifts={"dimensions": later},
        attrs=SqueezeAttrs,
        examples=(Example(("T[1,3,1]",), {"dimensions": [0, 2]}),),
        formula="x without some axes of size 1",
        summary="removal of axes of size 1",
        caption=("{0} without {dimensions}", "without {dimensions}, of size 1"),
    ),
    families.linear(
        "expand_dims",
        _expand_dims_types,
        _reshaped_kernel,
        lambda node, ct, type_: squeeze(ct, dimensions=node.attrs.dimensions),
        sparsity="moved",
        shifts={"dimensions": later},
        attrs=ExpandDimsAttrs,
        examples=(Example(("T[3]",), {"dimensions": [0, 2]}),),
        formula="x with new axes of size 1",
        summary="insertion of axes of size 1",
        caption=("{0} with new {dimensions}", "with new {dimensions}, of size 1"),
    ),
    families.linear(
        "rev",
        _rev_types,
        lambda np, attrs, operands, results: lambda x: np.flip(x, attrs.dimensions),
        lambda node, ct, type_: rev(ct, dimensions=node.attrs.dimensions),
        sparsity="moved",
        shifts={"dimensions": later},
        attrs=RevAttrs,
        examples=(Example(("T[2,3]",), {"dimensions": [1]}),),
        one_type=True,
        formula="x[n - 1 - i] on some axes",
        summary="reversal of axes",
        caption=("{0} reversed", "reversed along {dimensions}"),
    ),
    families.primitive(
        "iota",
        0,
        _iota_types,
        _iota_kernel,
        jvp=families.no_tangent,
        attrs=IotaAttrs,
        dtypes=NUMERIC,
        examples=(Example((), {"dtype": "T", "shape": [2, 3], "dimension": 1}),),
        flops=free,
        formula="0, 1, 2, … along an axis",
        summary="counting along an axis",
        caption=("0, 1, 2, …", "the counting along axis {dimension}"),
    ),
    families.primitive(
        "size",
        0,
        _size_types,
        _size_kernel,
        jvp=families.no_tangent,
        attrs=SizeAttrs,
        dtypes=FLOATS | {"i64"},
        examples=(Example((), {"expression": 3, "dtype": "T"}),),
        flops=free,
        formula="expression",
        summary="the size of an axis, or what is computed from sizes, as a number",
        caption=("{expression}", "the size {expression}"),
    ),
    families.linear(
        "copy",
        lambda attrs, operands: operands,
        lambda np, attrs, operands, results: lambda x: x,
        lambda node, ct, type_: copy(ct),
        sparsity="moved",
        examples=(Example(("T[2,3]",)),),
        one_type=True,
        formula="x",
        summary="identity, which a program writes where it asks for a new array",
        caption=("{0}", "copied"),
    ),
)
