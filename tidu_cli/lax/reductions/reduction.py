"""Reductions along axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Annotated, Any

from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.sizes.open import surely
from tidu_cli.graph.types import DATETIMES, DURATIONS, INTEGERS, NUMERIC, TensorType, storage_dtype
from tidu_cli.lax.arrays.dtypes import ORDERED, in_order, numpy_dtype
from tidu_cli.rules.analysis import multiplying, reducing
from tidu_cli.rules.attrs import AxesAttrs, Axis, DTypeName
from tidu_cli.rules.batching import itself, later
from tidu_cli.rules.contract import JVP, Example, Kernel, KernelRule, Primitive, TypeRule, Types
from tidu_cli.rules.families import by_counts, no_tangent, primitive, require_axes, require_dtype
from tidu_cli.rules.fields import Sized
from tidu_cli.rules.terms import Number, Term, op

broadcast_in_dim, convert, cumprod, eq, pad, reduce_sum, reshape, transpose = map(
    op, ("broadcast_in_dim", "convert_element_type", "cumprod", "eq", "pad", "reduce_sum", "reshape", "transpose")
)


class ArgExtremumAttrs(AxesAttrs):
    """`axes`: the one axis along which positions are counted; `index_dtype`: the integer dtype of the positions."""

    axes: Annotated[tuple[Axis, ...], Sized(1, 1)]
    index_dtype: DTypeName


def _reduced(dtypes: frozenset[str]) -> TypeRule:
    def types(attrs: AxesAttrs, operands: Types) -> Types:
        require_dtype(dtypes, operands)
        (operand,) = operands
        require_axes("axes", attrs.axes, operand)
        return (operand.with_shape(tuple(n for k, n in enumerate(operand.shape) if k not in attrs.axes)),)

    return types


def _arg_types(attrs: ArgExtremumAttrs, operands: Types) -> Types:
    (result,), (operand,), (axis,) = _reduced(ORDERED)(attrs, operands), operands, attrs.axes
    if attrs.index_dtype not in INTEGERS:
        raise TypeRuleError(f"index_dtype is {attrs.index_dtype}; positions are integers")
    if operand.shape[axis] == 0:
        raise TypeRuleError(f"axis {axis} of the operand {operand} has no elements to choose from")
    bits = int(attrs.index_dtype[1:]) - (attrs.index_dtype[0] == "i")
    if surely(lambda: operand.shape[axis] > 2**bits):
        raise TypeRuleError(f"index_dtype {attrs.index_dtype} cannot count the {operand.shape[axis]} elements of axis {axis}")
    return (result.with_dtype(attrs.index_dtype),)


def _spread(y: Term, axes: tuple[int, ...], type_: TensorType) -> Term:
    """The inverse shape change of a reduction: y repeated along the axes that were reduced away."""
    kept = tuple(k for k in range(type_.rank) if k not in axes)
    return broadcast_in_dim(y, shape=type_.shape, broadcast_dimensions=kept)


def _accumulated(function: str) -> KernelRule:
    """The kernel that folds with a function of NumPy's, in the operand's dtype."""

    def kernel(np: Any, attrs: AxesAttrs, operands: Types, results: Types) -> Kernel:
        fold, dtype = getattr(np, function).reduce, numpy_dtype(np, results[0].dtype)
        if results[0].dtype in ("f16", "bf16"):
            # Half precision accumulates in single, as XLA does: sums would stop growing at 2048 (f16) or 256 (bf16).
            return lambda x: fold(np.asarray(x, np.float32), axis=attrs.axes).astype(dtype)
        return lambda x: fold(x, axis=attrs.axes, dtype=dtype)

    return kernel


def _extremum(function: str, of_nothing: Callable[[Any, Any], Any]) -> KernelRule:
    """The kernel that folds with NumPy's maximum or minimum. Over nothing it gives the dtype's bound that `of_nothing` picks."""

    def kernel(np: Any, attrs: AxesAttrs, operands: Types, results: Types) -> Kernel:
        (operand,), fold = operands, getattr(np, function).reduce
        if all(operand.shape[axis] for axis in attrs.axes):
            return lambda x: fold(x, axis=attrs.axes)
        dtype = numpy_dtype(np, operand.dtype)
        bounds = np.iinfo(dtype) if storage_dtype(operand.dtype) in INTEGERS else None
        first = operand.dtype in DATETIMES  # the least count is NaT
        empty = of_nothing(bounds.min + first, bounds.max) if bounds else of_nothing(-np.inf, np.inf)
        if operand.dtype == "bool":
            empty = empty > 0
        return lambda x: np.full(results[0].shape, empty, dtype).view(x.dtype)

    return kernel


def _position(function: str) -> KernelRule:
    def kernel(np: Any, attrs: ArgExtremumAttrs, operands: Types, results: Types) -> Kernel:
        find, dtype, (axis,) = getattr(np, function), numpy_dtype(np, attrs.index_dtype), attrs.axes
        return lambda x: find(x, axis=axis).astype(dtype)

    return kernel


def _extremum_jvp(node: JVP) -> Sequence[Term | None]:
    (x,), (y,), t, axes = node.operands, node.results, node.tangent, node.attrs.axes
    taken = convert(eq(x, _spread(y, axes, x.type)), new_dtype=t.type.dtype)
    ties = reduce_sum(taken, axes=axes)
    return [reduce_sum(taken * t, axes=axes) / ties]


def _reduce_prod_jvp(node: JVP) -> Sequence[Term | None]:
    (x,), t, axes = node.operands, node.tangent, node.attrs.axes
    n = prod(x.type.shape[axis] for axis in axes)
    return [reduce_sum(t if surely(lambda: n <= 1) else _product_of_the_others(x, axes) * t, axes=axes)]


def _product_of_the_others(x: Term, axes: tuple[int, ...]) -> Term:
    """For each element the product over `axes` of all others: of those before and those after. No quotient, so zeros may be."""
    if len(axes) == 1:
        return _exclusive(x, axes[0], reverse=False) * _exclusive(x, axes[0], reverse=True)
    kept = tuple(k for k in range(x.type.rank) if k not in axes)
    order = (*kept, *axes)
    moved = transpose(x, permutation=order)
    sizes = [x.type.shape[k] for k in order]
    flat = reshape(moved, new_sizes=(*sizes[: len(kept)], prod(sizes[len(kept) :])))
    others = _product_of_the_others(flat, (len(kept),))
    back = tuple(sorted(range(len(order)), key=order.__getitem__))
    return transpose(reshape(others, new_sizes=moved.type.shape), permutation=back)


def _exclusive(x: Term, axis: int, *, reverse: bool) -> Term:
    """The cumulative product of the elements before (or after) each."""
    return cumprod(shifted(x, axis, 1, 1, reverse=reverse), axis=axis, reverse=reverse)


def shifted(x: Term, axis: int, by: int, fill: Number, *, reverse: bool) -> Term:
    """x[i - by] along an axis, or x[i + by] in `reverse`; `fill` where there is no such element."""
    edges = (-by, by, 0) if reverse else (by, -by, 0)
    config = tuple(edges if k == axis else (0, 0, 0) for k in range(x.type.rank))
    return pad(x, x.trace.full(fill, TensorType(x.type.dtype)), padding_config=config)


_EXAMPLES = (Example(("T[2,3]",), {"axes": [1]}), Example(("T[2,3,2]",), {"axes": [0, 2]}))


def _reduction(
    name: str, of: str, dtypes: frozenset[str], kernel: KernelRule, words: tuple[str, str], *, formula: str, **rest: Any
) -> Primitive:
    """A reduction: the sum, say, `of` elements. `words` are its function and what it does, in captions."""
    told: dict[str, Any] = {"flops": reducing(), "summary": f"{of} along axes"}
    return primitive(
        f"reduce_{name}",
        1,
        _reduced(dtypes),
        kernel,
        batch=itself(f"reduce_{name}", axes=later),
        attrs=AxesAttrs,
        dtypes=dtypes,
        examples=_EXAMPLES,
        formula=f"{formula} along axes",
        caption=(f"{words[0]}({{0}}){{over}}", f"{words[1]}{{over}}"),
        **(told | rest),
    )


def _extreme(name: str, of: str, of_nothing: Callable[[Any, Any], Any]) -> Primitive:
    kernel, summary = in_order(_extremum(of, of_nothing)), f"{of} along axes; its derivative is shared equally among ties"
    jvp = by_counts(_extremum_jvp)
    told: dict[str, Any] = {"formula": f"{name} x", "summary": summary, "jvp": jvp, "integers": "exact", "kinks": _extreme_kinks}
    return _reduction(name, of, ORDERED, kernel, (name, of), **told)


def _extreme_kinks(k: Any) -> Sequence[Any]:
    pytorch = "equal shares; max(dim) the index it gives"
    return [k.Kink(k.attained, "elements tie", "equal shares", pytorch=pytorch, onnx="")]


def _bits(name: str, of: str, function: str) -> Primitive:
    kernel, words, formula = _accumulated(f"bitwise_{name}"), (function, f"joined by {of}"), f"x₁ {name} x₂ {name} …"
    return _reduction(name, f"bitwise {of}", INTEGERS | {"bool"}, kernel, words, formula=formula, jvp=no_tangent)


def _arg_extremum(name: str, extremum: str) -> Primitive:
    return primitive(
        name,
        1,
        _arg_types,
        in_order(_position(name)),
        jvp=no_tangent,
        batch=itself(name, axes=later),
        attrs=ArgExtremumAttrs,
        dtypes=ORDERED,
        examples=(Example(("T[2,3]",), {"axes": [1], "index_dtype": "i32"}),),
        flops=reducing(),
        formula=f"{name} x along an axis",
        kinks=lambda k: [k.Kink(k.attained, "elements tie", "none; the first is taken")],
        summary=f"position of the {extremum} along an axis: the first of ties, and NaN wins",
        caption=(f"{name}({{0}}) along {{axes}}", f"the place of the {extremum} along {{axes}}"),
    )


PRIMITIVES = (
    _reduction(
        "sum",
        "sum",
        NUMERIC | DURATIONS,
        _accumulated("add"),
        ("sum", "summed"),
        formula="Σ x",
        adjoint=lambda node, ct, type_: _spread(ct, node.attrs.axes, type_),
        sparsity="summed",
    ),
    _reduction(
        "prod",
        "product",
        NUMERIC,
        _accumulated("multiply"),
        ("product", "multiplied"),
        formula="Π x",
        flops=reducing(multiplying),
        jvp=_reduce_prod_jvp,
    ),
    _extreme("max", "maximum", min),
    _extreme("min", "minimum", max),
    _bits("and", "and", "all"),
    _bits("or", "or", "any"),
    _bits("xor", "exclusive or", "parity"),
    _arg_extremum("argmax", "maximum"),
    _arg_extremum("argmin", "minimum"),
)
