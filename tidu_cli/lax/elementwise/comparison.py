"""Comparison and selection: order, choice, and clamping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import ANY
from tidu_cli.lax.arrays.ordered_times import ORDERED, in_order
from tidu_cli.rules.batching import itself_with_scalars
from tidu_cli.rules.catalogue import Caption
from tidu_cli.rules.contract import JVP, Example, Kernel, Primitive, Transposition, Types
from tidu_cli.rules.families import binary, linear, numpy_function, primitive, require_dtype, require_one_type, summed
from tidu_cli.rules.flops import per_case, per_element
from tidu_cli.rules.terms import Term, op

and_, broadcast_in_dim, eq, ge, gt, le, lt, or_, select_n = map(
    op, ("and", "broadcast_in_dim", "eq", "ge", "gt", "le", "lt", "or", "select_n")
)


def _comparison(name: str, function: str, symbol: str, dtypes: frozenset[str]) -> Primitive:
    kernel = in_order(numpy_function(function))
    return binary(name, dtypes, f"x {symbol} y", f"whether x {symbol} y", kernel=kernel, result=lambda t: t.with_dtype("bool"))


def _select_types(attrs: Any, operands: Types) -> Types:
    which, *cases = operands
    if not cases:
        raise TypeRuleError("takes a selector and at least 1 case, got no case")
    if which.dtype not in ("bool", "i32"):
        raise TypeRuleError(f"the selector (input 0) is {which}; it must be bool or i32")
    if which.dtype == "bool" and len(cases) > 2:
        raise TypeRuleError(f"a bool selector takes at most 2 cases, got {len(cases)}; use an i32 selector")
    require_one_type(tuple(cases))
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
    require_dtype(ORDERED, operands)
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
    return [summed([t and select_n(mask(), 0, spread(t)) for mask, t in zip(masks, node.tangents, strict=True)])]


PRIMITIVES = (
    _comparison("eq", "equal", "=", ANY),
    _comparison("ne", "not_equal", "≠", ANY),
    _comparison("lt", "less", "<", ORDERED),
    _comparison("le", "less_equal", "≤", ORDERED),
    _comparison("gt", "greater", ">", ORDERED),
    _comparison("ge", "greater_equal", "≥", ORDERED),
    linear(
        "select_n",
        _select_types,
        _select_kernel,
        arity=None,
        transpose=_select_transpose,
        batch=itself_with_scalars("select_n"),
        indices=(0, 1),
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
    primitive(
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
    ),
)
