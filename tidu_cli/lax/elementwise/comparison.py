"""Comparison and bits: order, choice and clamping; logic on bools and on the bits of integers, shifts, and counting bits.

As in XLA, a shift by as many bits as there are, or more, moves all of them out; a negative amount counts as such.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import ANY, INTEGERS, ITEMSIZE, REALS, SIGNED
from tidu_cli.lax.arrays.dtypes import ORDERED, in_order, numpy_dtype
from tidu_cli.rules import families
from tidu_cli.rules.analysis import free, per_case, per_element
from tidu_cli.rules.attrs import DTypeName
from tidu_cli.rules.batching import itself, itself_with_scalars
from tidu_cli.rules.catalogue import Caption
from tidu_cli.rules.contract import JVP, Attrs, Example, Kernel, Primitive, Transposition, Types
from tidu_cli.rules.terms import Term, op

and_, broadcast_in_dim, eq, ge, gt, le, lt, or_, select_n = map(
    op, ("and", "broadcast_in_dim", "eq", "ge", "gt", "le", "lt", "or", "select_n")
)


def _comparison(name: str, function: str, symbol: str, dtypes: frozenset[str]) -> Primitive:
    kernel = in_order(families.numpy_function(function))
    # Of eq and ne equal operands are nothing special: they ask for them.
    told = "that of the branch taken"
    kinks = None if name in ("eq", "ne") else lambda k: [k.Kink(k.tie, "operands tie", told)]
    result: Callable[[Any], Any] = lambda t: t.with_dtype("bool")  # noqa: E731
    return families.binary(name, dtypes, f"x {symbol} y", f"whether x {symbol} y", kernel=kernel, result=result, kinks=kinks)


def _select_types(attrs: Any, operands: Types) -> Types:
    which, *cases = operands
    if not cases:
        raise TypeRuleError("takes a selector and at least 1 case, got no case")
    if which.dtype not in ("bool", "i32"):
        raise TypeRuleError(f"the selector (input 0) is {which}; it must be bool or i32")
    if which.dtype == "bool" and len(cases) > 2:
        raise TypeRuleError(f"a bool selector takes at most 2 cases, got {len(cases)}; use an i32 selector")
    families.require_one_type(tuple(cases))
    if which.shape not in ((), cases[0].shape):
        raise TypeRuleError(f"the selector (input 0) is {which}; its shape must be [] or that of the cases, {cases[0]}")
    return (cases[0],)


def _select_kernel(np: Any, attrs: Any, operands: Types, results: Types) -> Kernel:
    if len(operands) == 2:
        return lambda which, case: case
    if operands[0].dtype == "bool":
        where: Kernel = np.where
        return lambda which, if_false, if_true: where(which, if_true, if_false)

    def select(which: Any, *cases: Any) -> Any:
        chosen = cases[0]
        for number, case in enumerate(cases[1:], start=1):
            # The last case also takes selectors past it, the first those below 0: as clamped indices.
            chosen = np.where(which >= number, case, chosen)
        return chosen

    return select


_FEW_CASES = 4
"""Of more cases the cotangents are chosen one by one: selections among as many zeros would have their square of operands."""


def _select_transpose(node: Transposition) -> Sequence[Term | None]:
    (ct,), (which, *cases) = node.cotangents, node.operands
    assert which is not None and ct is not None
    if len(cases) <= _FEW_CASES:
        zeros = [0] * len(cases)
        return [None, *(select_n(which, *zeros[:k], ct, *zeros[k + 1 :]) if a else None for k, a in enumerate(node.active[1:]))]
    last = len(cases) - 1

    def chosen(k: int) -> Term:
        # As the value: the first case also takes selectors below 0, the last those past it.
        return (le if k == 0 else ge if k == last else eq)(which, k)

    return [None, *(select_n(chosen(k), 0, ct) if a else None for k, a in enumerate(node.active[1:]))]


def _select_caption(case: Case, operands: Sequence[str]) -> Caption:
    which, *cases = operands
    formula = f"{cases[1]} if {which} else {cases[0]}" if len(cases) == 2 else f"({', '.join(cases)})[{which}]"
    return Caption(formula, "taken where it is selected")


def _clamp_types(attrs: Any, operands: Types) -> Types:
    families.require_dtype(ORDERED, operands)
    _, x, _ = operands
    for k, bound in ((0, operands[0]), (2, operands[2])):
        if bound.dtype != x.dtype or bound.shape not in ((), x.shape):
            raise TypeRuleError(f"the bound (input {k}) is {bound}; it must be {x.dtype}[] or of the clamped input's type, {x}")
    return (x,)


def _clamp_jvp(node: JVP) -> Sequence[Term | None]:
    shape = node.results[0].type.shape

    def spread(term: Term) -> Term:
        return term if term.type.shape == shape else broadcast_in_dim(term, shape=shape, broadcast_dimensions=())

    # JAX's masks: strict, so that on a bound no operand gets the tangent. But bounds that meet or cross leave nothing between them:
    # the value is then that of the upper one, and so is the tangent. Where a NaN is among them, none has it, as in max and min.
    (low, x, high), (y,) = map(spread, node.operands), node.results
    masks: tuple[Callable[[], Term], ...] = (
        lambda: and_(gt(low, x), lt(low, high)),
        lambda: and_(gt(x, low), lt(x, high)),
        lambda: and_(eq(y, high), or_(lt(high, x), le(high, low))),
    )
    return [families.summed([t and select_n(mask(), 0, spread(t)) for mask, t in zip(masks, node.tangents, strict=True)])]


def _on_bound(np: Any, attrs: Any, operands: Any, results: Any) -> Any:
    return (operands[1] == operands[0]) | (operands[1] == operands[2])


_LOGICAL = INTEGERS | {"bool"}


def _as_unsigned(x: Any) -> Any:
    return x.view(f"u{x.dtype.itemsize}")


def _shift_right_arithmetic(np: Any, x: Any, y: Any) -> Any:
    # The highest bit counts as the sign also of unsigned integers.
    signed, most = f"i{x.dtype.itemsize}", x.dtype.type(8 * x.dtype.itemsize - 1)
    return np.right_shift(x.view(signed), np.minimum(y, most).view(signed)).view(x.dtype)


def _population_count(np: Any, x: Any) -> Any:
    return np.bitwise_count(_as_unsigned(x)).astype(x.dtype)


def _leading_zeros(np: Any, x: Any) -> Any:
    # The highest 1 is smeared over all lower bits, and what remains is counted.
    smeared, reach = _as_unsigned(x), 1
    while reach < 8 * x.dtype.itemsize:
        smeared, reach = smeared | (smeared >> smeared.dtype.type(reach)), 2 * reach
    return np.bitwise_count(~smeared).astype(x.dtype)


class BitcastAttrs(Attrs):
    """`new_dtype`: the dtype of the result, of integers or floats. A narrower one makes a last axis of parts, lowest bits first;
    a wider one takes that axis. It is another one than the operand's.
    """

    new_dtype: DTypeName


def _bitcast_types(attrs: BitcastAttrs, operands: Types) -> Types:
    (x,), new = operands, attrs.new_dtype
    if new not in REALS:
        raise TypeRuleError(f"new_dtype {new}: bits are those of integers and floats")
    if x.dtype not in REALS:
        raise TypeRuleError(f"the operand is {x}, and bits are those of integers and floats; convert it first")
    if new == x.dtype:
        raise TypeRuleError(f"the operand {x} is of new_dtype {new}; leave the conversion out")
    old_size, new_size = ITEMSIZE[x.dtype], ITEMSIZE[new]
    shape = x.shape
    if new_size < old_size:
        shape = (*shape, old_size // new_size)
    elif new_size > old_size:
        if shape[-1:] != (new_size // old_size,):
            raise TypeRuleError(f"the operand {x} has no last axis of {new_size // old_size} parts of {new}")
        shape = shape[:-1]
    return (x.with_dtype(new).with_shape(shape),)


def _bitcast_kernel(np: Any, attrs: BitcastAttrs, operands: Types, results: Types) -> Kernel:
    dtype, shape = numpy_dtype(np, attrs.new_dtype), results[0].shape
    if operands[0].shape == shape:
        return lambda x: np.asarray(x).view(dtype)
    little, old = dtype.newbyteorder("<"), numpy_dtype(np, operands[0].dtype).newbyteorder("<")

    def bits(x: Any) -> Any:
        # Through bytes, as an array without axes has no view of another size.
        data = np.asarray(x).astype(old, copy=False).tobytes()
        return np.frombuffer(data, little).astype(dtype).reshape(shape)

    return bits


def _logic(name: str, function: str, symbol: str) -> Primitive:
    return families.binary(name, _LOGICAL, f"x {symbol} y", f"{name}, of integers bit by bit", kernel=function)


PRIMITIVES = (
    _comparison("eq", "equal", "=", ANY),
    _comparison("ne", "not_equal", "≠", ANY),
    _comparison("lt", "less", "<", ORDERED),
    _comparison("le", "less_equal", "≤", ORDERED),
    _comparison("gt", "greater", ">", ORDERED),
    _comparison("ge", "greater_equal", "≥", ORDERED),
    families.linear(
        "select_n",
        _select_types,
        _select_kernel,
        sparsity="moved",
        arity=None,
        transpose=_select_transpose,
        batch=itself_with_scalars("select_n"),
        indices=(0, 1),
        unplaced="elements",
        examples=(
            Example(("bool[]", "T[2,3]", "T[2,3]")),
            Example(("bool[2,3]", "T[2,3]", "T[2,3]")),
            Example(("i32[2,3]", "T[2,3]", "T[2,3]", "T[2,3]"), within=((0, 3), (-2.0, 2.0))),
        ),
        flops=per_case,
        formula="cases[which]",
        summary="choice among cases, elementwise; the first input selects (false is case 0)",
        caption=_select_caption,
    ),
    families.primitive(
        "clamp",
        3,
        _clamp_types,
        in_order(lambda np, attrs, operands, results: lambda low, x, high: np.minimum(np.maximum(x, low), high)),
        jvp=_clamp_jvp,
        batch=itself_with_scalars("clamp"),
        integers="exact",
        dtypes=ORDERED,
        examples=tuple(
            Example(types, within=((-1.5, -0.5), (-2.0, 2.0), (0.5, 1.5)))
            for types in (("T[]", "T[2,3]", "T[]"), ("T[2,3]", "T[2,3]", "T[2,3]"))
        ),
        flops=per_element(lambda t: 2),
        formula="min(max(x, y), z)",
        summary="y brought between the bounds x and z; on a bound its derivatives are taken as 0, and where x ≥ z it is z",
        caption=("{1} kept within {0} and {2}", "kept within {0} and {2}"),
        kinks=lambda k: [k.Kink(_on_bound, "on a bound", "0", "0; jnp.clip half", "1", "1")],
    ),
    families.unary("not", _LOGICAL, "¬x", "not, of integers bit by bit", kernel="invert"),
    _logic("and", "bitwise_and", "∧"),
    _logic("or", "bitwise_or", "∨"),
    _logic("xor", "bitwise_xor", "⊻"),
    families.binary("shift_left", INTEGERS, "x · 2^y", "shift to the left; zeros come in", kernel="left_shift", within=((0, 8),)),
    families.binary(
        "shift_right_logical",
        INTEGERS,
        "⌊x / 2^y⌋, x as unsigned",
        "shift to the right; zeros come in",
        kernel=families.computed(lambda np, x, y: np.right_shift(_as_unsigned(x), _as_unsigned(y)).view(x.dtype)),
        within=((0, 8),),
    ),
    families.binary(
        "shift_right_arithmetic",
        INTEGERS,
        "⌊x / 2^y⌋, x as signed",
        "shift to the right; copies of the sign bit come in",
        kernel=families.numpy_function("right_shift", INTEGERS - SIGNED, _shift_right_arithmetic),
        within=((0, 8),),
    ),
    families.unary("population_count", INTEGERS, "|x|₁", "number of bits set", kernel=families.computed(_population_count)),
    families.unary(
        "clz", INTEGERS, "bits above the highest bit set", "count of leading zeros", kernel=families.computed(_leading_zeros)
    ),
    families.primitive(
        "bitcast_convert_type",
        1,
        _bitcast_types,
        _bitcast_kernel,
        opaque="reads the bits of numbers",
        jvp=families.no_tangent,
        batch=itself("bitcast_convert_type"),
        attrs=BitcastAttrs,
        dtypes=REALS,
        examples=(
            Example(("f64[2,3]",), {"new_dtype": "i64"}),
            Example(("f32[2]",), {"new_dtype": "u8"}),
            Example(("u16[3,2]",), {"new_dtype": "f32"}),
        ),
        flops=free,
        formula="the bits of x as new_dtype",
        summary="the same bits as another dtype; it has no derivative",
        caption=("{0} as bits", "its bits as {new_dtype}"),
    ),
)
