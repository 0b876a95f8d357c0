"""Reductions along axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.types import FLOATS, INTEGERS, NUMERIC, REALS, TensorType
from tidu_cli.primitives.attrs import AxesAttrs
from tidu_cli.primitives.contract import JVP, Example, Kernel, Primitive, TypeRule, Types
from tidu_cli.primitives.families import linear_jvp, linear_transpose, require_dtype
from tidu_cli.primitives.structural import numpy_dtype
from tidu_cli.primitives.trace import Term, op

broadcast_in_dim, convert, eq, reduce_sum = map(op, ("broadcast_in_dim", "convert_element_type", "eq", "reduce_sum"))


def _reduced(dtypes: frozenset[str]) -> TypeRule:
    def types(attrs: AxesAttrs, operands: Types) -> Types:
        require_dtype(dtypes, operands)
        (operand,) = operands
        for axis in attrs.axes:
            if axis >= operand.rank:
                raise TypeRuleError(f"axes {list(attrs.axes)}: the operand {operand} has no axis {axis}")
        return (operand.with_shape(tuple(n for k, n in enumerate(operand.shape) if k not in attrs.axes)),)

    return types


def _spread(y: Term, axes: tuple[int, ...], type_: TensorType) -> Term:
    """The inverse shape change of a reduction: y repeated along the axes that were reduced away."""
    kept = tuple(k for k in range(type_.rank) if k not in axes)
    return broadcast_in_dim(y, shape=type_.shape, broadcast_dimensions=kept)


def _reduce_sum_kernel(np: Any, attrs: AxesAttrs, operands: Types, results: Types) -> Kernel:
    dtype = numpy_dtype(np, results[0].dtype)
    if results[0].dtype in ("f16", "bf16"):
        # Half precision sums in single, as XLA does: it would stop growing at 2048 (f16) or 256 (bf16).
        return lambda x: np.sum(np.asarray(x, np.float32), axis=attrs.axes).astype(dtype)
    return lambda x: np.sum(x, axis=attrs.axes, dtype=dtype)


def _reduce_max_kernel(np: Any, attrs: AxesAttrs, operands: Types, results: Types) -> Kernel:
    (operand,) = operands
    if all(operand.shape[axis] for axis in attrs.axes):
        return lambda x: np.max(x, axis=attrs.axes)
    dtype = numpy_dtype(np, operand.dtype)
    if operand.dtype in FLOATS:
        lowest: Any = -np.inf
    else:
        lowest = np.iinfo(dtype).min if operand.dtype in INTEGERS else False
    return lambda x: np.full(results[0].shape, lowest, dtype)


def _reduce_max_jvp(node: JVP) -> Sequence[Term | None]:
    (x,), (y,), (t,), axes = node.operands, node.results, node.tangents, node.attrs.axes
    assert t is not None
    taken = convert(eq(x, _spread(y, axes, x.type)), new_dtype=x.type.dtype)
    ties = reduce_sum(taken, axes=axes)
    return [reduce_sum(taken * t, axes=axes) / ties]


_ORDERED = REALS | {"bool"}
_EXAMPLES = (Example(("T[2,3]",), {"axes": [1]}), Example(("T[2,3,2]",), {"axes": [0, 2]}))

PRIMITIVES = (
    Primitive(
        "reduce_sum",
        1,
        _reduced(NUMERIC),
        _reduce_sum_kernel,
        linear_jvp("reduce_sum"),
        linear_transpose(lambda attrs, ct, type_: _spread(ct, attrs.axes, type_)),
        attrs=AxesAttrs,
        dtypes=NUMERIC,
        examples=_EXAMPLES,
        formula="Σ x along axes",
        summary="sum along axes",
    ),
    Primitive(
        "reduce_max",
        1,
        _reduced(_ORDERED),
        _reduce_max_kernel,
        _reduce_max_jvp,
        attrs=AxesAttrs,
        dtypes=_ORDERED,
        examples=_EXAMPLES,
        formula="max x along axes",
        summary="maximum along axes; its derivative is shared equally among ties",
    ),
)
