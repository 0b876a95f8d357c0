"""Sorting along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.sizes.open import surely
from tidu_cli.graph.types import ANY, COMPLEXES, FLOATS, storage_dtype
from tidu_cli.lax.arrays.dtypes import ORDERED, in_order
from tidu_cli.lax.arrays.windows import taken
from tidu_cli.rules.analysis import sorting
from tidu_cli.rules.attrs import Axis
from tidu_cli.rules.batching import itself, later
from tidu_cli.rules.contract import JVP, Attrs, Example, Kernel, Types
from tidu_cli.rules.families import primitive, require_axis, require_dtype
from tidu_cli.rules.fields import Bounded
from tidu_cli.rules.terms import Term


class SortAttrs(Attrs):
    """`dimension`: the axis to sort along; `num_keys`: how many operands, from the first, decide the order, by default 1.

    `is_stable`: whether elements with equal keys keep their order, by default true.
    """

    dimension: Axis
    is_stable: bool = True
    num_keys: Annotated[int, Bounded(ge=1)] = 1


class TopKAttrs(Attrs):
    """`k`: how many elements to take; `axis`: along which axis."""

    k: Annotated[int, Bounded(ge=0)]
    axis: Axis


def _sort_types(attrs: SortAttrs, operands: Types) -> Types:
    first = operands[0]
    require_axis("dimension", attrs.dimension, first)
    if attrs.num_keys > len(operands):
        are = "is 1 operand" if len(operands) == 1 else f"are {len(operands)} operands"
        raise TypeRuleError(f"num_keys is {attrs.num_keys}, but there {are} to sort")
    for k, t in enumerate(operands):
        if t.shape != first.shape:
            raise TypeRuleError(f"operands differ in shape: input 0 is {first}, input {k} is {t}")
    return operands


def _sort_kernel(np: Any, attrs: SortAttrs, operands: Types, results: Types) -> Kernel:
    axis, dtype = attrs.dimension, storage_dtype(operands[0].dtype)
    if len(operands) == 1 and dtype not in COMPLEXES and dtype != "bf16":
        return partial(_sorted_numbers, np, axis=axis, mixed_zeros=attrs.is_stable and dtype in FLOATS)

    def sort(*arrays: Any) -> Any:
        places = _order(np, arrays[: attrs.num_keys], axis)
        ordered = [np.take_along_axis(x, places, axis) for x in arrays]
        return ordered if len(ordered) > 1 else ordered[0]

    return sort


def _sorted_numbers(np: Any, x: Any, axis: int, *, mixed_zeros: bool) -> Any:
    # The quick sort is many times faster than the stable one. They differ where zeros of both signs are equal.
    ordered = np.sort(x, axis=axis)
    if mixed_zeros:
        negative = np.signbit(ordered[ordered == 0])
        if negative.any() and not negative.all():
            return np.sort(x, axis=axis, kind="stable")
    return ordered


def _order(np: Any, keys: Sequence[Any], axis: int) -> Any:
    """The places from which to take elements so that the keys ascend; among equals, in the order in which they stand."""
    # NumPy has NaN after all numbers and -0 equal to 0, as XLA has them, but only with the parts of complex numbers as keys apart.
    parts = [part for key in keys for part in ((key.real, key.imag) if key.dtype.kind == "c" else (_native(np, key),))]
    if len(parts) > 1:
        return np.lexsort(parts[::-1], axis=axis)  # which takes the foremost key last, and is stable
    (key,) = parts
    places = np.argsort(key, axis=axis)
    ascending = np.moveaxis(np.take_along_axis(key, places, axis), axis, 0)
    no_ties = (ascending[:-1] < ascending[1:]).all()
    return places if no_ties else np.argsort(key, axis=axis, kind="stable")


def _native(np: Any, key: Any) -> Any:
    """The key in a dtype that NumPy knows how to sort: bf16 in f32."""
    return key if key.dtype.kind in "biufM" else key.astype(np.float32)


def _sort_jvp(node: JVP) -> Sequence[Term | None]:
    # Positions, sorted along with the keys, tell from where to take the tangents.
    keys, axis = node.operands[: node.attrs.num_keys], node.attrs.dimension
    type_ = keys[0].type
    dtype = "i32" if surely(lambda: type_.shape[axis] <= 2**31) else "i64"
    position = keys[0].trace.emit("iota", dtype=dtype, shape=type_.shape, dimension=axis)
    *_, places = position.trace.emit_all("sort", *keys, position, **dict(node.attrs))
    return [None if t is None else taken(t, places, axis) for t in node.tangents]


def _top_k_types(attrs: TopKAttrs, operands: Types) -> Types:
    require_dtype(ORDERED, operands)
    (operand,) = operands
    require_axis("axis", attrs.axis, operand)
    n = operand.shape[attrs.axis]
    if attrs.k > n:
        raise TypeRuleError(f"k is {attrs.k}, but axis {attrs.axis} of the operand {operand} has {n} elements")
    if surely(lambda: n > 2**31):
        raise TypeRuleError(f"axis {attrs.axis} of the operand {operand} has more elements than i32 indices can count")
    values = operand.with_shape((*operand.shape[: attrs.axis], attrs.k, *operand.shape[attrs.axis + 1 :]))
    return values, values.with_dtype("i32")


def _top_k_kernel(np: Any, attrs: TopKAttrs, operands: Types, results: Types) -> Kernel:
    axis, n = attrs.axis, operands[0].shape[attrs.axis]
    first = (*(slice(None) for _ in range(axis)), slice(attrs.k))

    def top(x: Any) -> Any:
        # The reverse of the ascending order of the reverse: equal elements stay in order, and NaN comes first.
        places = n - 1 - np.flip(_order(np, [np.flip(x, axis)], axis), axis)[first]
        return np.take_along_axis(x, places, axis), places.astype(np.int32)

    return top


def _tied_keys(k: Any) -> Any:
    return lambda np, attrs, operands, results: k.neighbours(np, results[: attrs.num_keys], attrs.dimension)


def _tied_top(k: Any) -> Any:
    """Whether one of the k + 1 greatest elements is equal to the one before: the last of them is not among the results."""

    def where(np: Any, attrs: Any, operands: Any, results: Any) -> Any:
        descending = np.flip(np.sort(operands[0], axis=attrs.axis), attrs.axis)
        greatest = np.take(descending, range(min(attrs.k + 1, descending.shape[attrs.axis])), attrs.axis)
        return k.neighbours(np, [greatest], attrs.axis)

    return where


PRIMITIVES = (
    primitive(
        "sort",
        None,
        _sort_types,
        in_order(_sort_kernel),
        jvp=_sort_jvp,
        batch=itself("sort", dimension=later),
        attrs=SortAttrs,
        dtypes=ANY,
        n_results=lambda attrs, n_operands: n_operands,
        integers="exact",
        examples=(
            Example(("T[4]",), {"dimension": 0}),
            Example(("T[2,3]", "f64[2,3]"), {"dimension": 1}),
            Example(("f64[3,2]", "i32[3,2]", "c64[3,2]"), {"dimension": 0, "num_keys": 2, "is_stable": False}),
        ),
        flops=sorting(lambda attrs: attrs.dimension),
        formula="the operands, reordered along an axis so that the keys ascend",
        summary="sort by the first operands as keys; NaN comes last, -0 equals 0, complex numbers go by real, then imaginary part",
        caption=("sort({all})", "sorted along axis {dimension}"),
        kinks=lambda k: [
            k.Kink(_tied_keys(k), "keys tie", "in the order in which they stand", pytorch="in any order unless stable", onnx="")
        ],
    ),
    primitive(
        "top_k",
        1,
        _top_k_types,
        in_order(_top_k_kernel),
        jvp=lambda node: [taken(node.tangent, node.results[1], node.attrs.axis), None],
        batch=itself("top_k", axis=later),
        attrs=TopKAttrs,
        n_results=lambda attrs, n_operands: 2,
        integers="exact",
        dtypes=ORDERED,
        examples=(Example(("T[5]",), {"k": 2, "axis": 0}), Example(("T[2,3]",), {"k": 2, "axis": 1})),
        flops=sorting(lambda attrs: attrs.axis),
        formula="the k greatest elements along an axis, and their positions",
        summary="greatest elements in descending order; the first of ties comes first, and NaN before all numbers",
        caption=("{k} greatest of {0}", "{k} greatest along axis {axis}"),
        kinks=lambda k: [k.Kink(_tied_top(k), "elements tie", "the first of them", pytorch="any of them")],
    ),
)
