"""Families of primitives, so that most rules are one line of a table.

Elementwise rules are functions of Terms. A unary one has the signature (t, x, y): tangent, operand, result; a binary one
(t, x, y, z): tangent of the one operand, both operands, result.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tidu_cli.errors import MissingRuleError, TypeRuleError
from tidu_cli.graph.types import (
    ALL,
    ANY,
    COMPLEXES,
    DATETIMES,
    DURATIONS,
    FLOATS,
    INEXACT,
    INTEGERS,
    NUMERIC,
    REALS,
    SIGNED,
    TIMES,
    TensorType,
)
from tidu_cli.rules.batching import itself
from tidu_cli.rules.contract import (
    JVP,
    Attrs,
    BatchRule,
    Example,
    FlopsRule,
    Groups,
    Integers,
    JVPRule,
    Kernel,
    KernelRule,
    NoAttrs,
    Primitive,
    TransposeRule,
    Transposition,
    TypeRule,
    Types,
)
from tidu_cli.rules.flops import ONE_EACH
from tidu_cli.rules.recording import Term, op

_CLASSES = {
    FLOATS: "floats",
    COMPLEXES: "complex numbers",
    INEXACT: "floats and complex numbers",
    INTEGERS: "integers",
    SIGNED: "signed integers",
    REALS: "integers and floats",
    NUMERIC: "numbers",
    REALS | {"bool"}: "integers, floats and bools",
    INTEGERS | {"bool"}: "integers and bools",
    REALS | {"bool"} | TIMES: "integers, floats, bools and times",
    REALS | TIMES: "integers, floats and times",
    NUMERIC | DURATIONS: "numbers and durations",
    NUMERIC | TIMES: "numbers and times",
    ALL: "numbers and bools",
    ANY: "all dtypes",
}

_OPERATORS: dict[str, Kernel] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "negative": operator.neg, "divide": operator.truediv,
}  # fmt: skip
"""On NumPy scalars Python's operators give the very bits of the ufuncs, several times faster. (Complex products may round
otherwise.)"""

_ROUNDING = frozenset({
    "exp", "exp2", "expm1", "log", "log1p", "cbrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan",
    "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh",
})  # fmt: skip
"""The functions of one operand that NumPy does not compute exactly, or rounded once."""

_conj, convert = op("conj"), op("convert_element_type")


def conj(x: Term) -> Term:
    """The complex conjugate; of a real value, itself."""
    return _conj(x) if x.type.complex else x


def dtype_class(dtypes: frozenset[str]) -> str:
    """How messages and the catalogue name a set of dtypes."""
    return _CLASSES.get(dtypes) or ", ".join(sorted(dtypes))


def require_dtype(dtypes: frozenset[str], types: Types, what: str = "input") -> None:
    """Raises TypeRuleError if some operand's dtype is not among `dtypes`."""
    for k, t in enumerate(types):
        if t.dtype not in dtypes:
            raise TypeRuleError(f"{what} {k} has type {t}, but it takes {dtype_class(dtypes)}{_way_out(t.dtype, dtypes)}")


def _way_out(dtype: str, dtypes: frozenset[str]) -> str:
    if dtype in DATETIMES and dtypes >= DURATIONS:
        return "; use retract to move a datetime by a duration, and sub for the duration between two"
    return "; use convert_element_type to f64 first" if dtype in TIMES and "f64" in dtypes else ""


def require_alike(types: Types) -> None:
    """Raises TypeRuleError if operand types differ: shapes never broadcast by themselves."""
    for k, t in enumerate(types):
        if t != types[0]:
            way_out = "convert_element_type first" if t.shape == types[0].shape else "broadcast_in_dim first"
            if {types[0].dtype, t.dtype} & DATETIMES and {types[0].dtype, t.dtype} & DURATIONS:
                way_out = "retract to move a datetime by a duration"
            raise TypeRuleError(f"type mismatch: input 0 is {types[0]}, input {k} is {t}; use {way_out}")


def alike(dtypes: frozenset[str], result: Callable[[TensorType], TensorType] = lambda t: t) -> TypeRule:
    """The type rule of elementwise primitives: operands of one type among `dtypes`, and a result derived from it."""

    def types(attrs: Any, operands: Types) -> Types:
        require_dtype(dtypes, operands)
        require_alike(operands)
        return (result(operands[0]),)

    return types


def numpy_function(name: str) -> KernelRule:
    """The kernel that is NumPy's function of that name."""

    def kernel(np: Any, attrs: Any, operands: Types, results: Types) -> Kernel:
        if operands[0].rank == 0 and not operands[0].complex and name in _OPERATORS:
            return _OPERATORS[name]
        function: Kernel = getattr(np, name)
        return through_f32(np, function) if name in _ROUNDING and operands[0].dtype == "f16" else function

    return kernel


def through_f32(np: Any, function: Kernel) -> Kernel:
    """A function of f32 as one of f16. NumPy's own functions of f16 may round an element alone otherwise than among many."""
    return lambda x: function(x.astype(np.float32)).astype(np.float16)


def no_tangent(node: JVP) -> Sequence[Term | None]:
    """The JVP rule of piecewise constant primitives."""
    return [None] * len(node.results)


def by_counts(rule: JVPRule) -> JVPRule:
    """A JVP rule that multiplies tangents, for durations, too: it sees them as f64, how many units they are."""

    def jvp(node: JVP) -> Sequence[Term | None]:
        dtype = next(t.type.dtype for t in node.tangents if t is not None)
        if dtype not in DURATIONS:
            return rule(node)
        counts = [None if t is None else convert(t, new_dtype="f64") for t in node.tangents]
        return [None if t is None else convert(t, new_dtype=dtype) for t in rule(replace(node, tangents=counts))]

    return jvp


def summed(terms: Sequence[Term | None]) -> Term | None:
    """The sum of the terms in order; None if all are zero."""
    total: Term | None = None
    for term in terms:
        if term is not None:
            total = term if total is None else total + term
    return total


def elementwise(
    name: str,
    arity: int,
    dtypes: frozenset[str],
    jvp: JVPRule,
    *,
    transpose: TransposeRule | None = None,
    batch: BatchRule | None = None,
    types: TypeRule | None = None,
    kernel: KernelRule | None = None,
    result: Callable[[TensorType], TensorType] = lambda t: t,
    attrs: type[Attrs] = NoAttrs,
    example: Mapping[str, Any] | None = None,
    within: tuple[tuple[float, float], ...] = ((-2.0, 2.0),),
    faithful: bool = True,
    integers: Integers = "numbers",
    linear: Groups | None = None,
    records: bool = False,
    joins: bool = False,
    more: tuple[Example, ...] = (),
    fresh: bool = False,
    reusing: KernelRule | None = None,
    flops: FlopsRule = ONE_EACH,
    formula: str,
    summary: str,
) -> Primitive:
    """A primitive of operands of one type among `dtypes`, element by element; by default NumPy's function of that name.

    A batch of it is by default the primitive itself, of arrays with one more axis.

    `example` are attrs to try it with, `within` intervals to draw operands from; `more` are further examples.
    """
    examples = tuple(Example((type_,) * arity, example or {}, within) for type_ in ("T[]", "T[2,3]"))
    return Primitive(
        name,
        arity,
        types or alike(dtypes, result),
        kernel or numpy_function(name),
        jvp,
        transpose,
        batch or itself(name),
        attrs=attrs,
        dtypes=dtypes,
        examples=(*examples, *more),
        alike=True,
        joins=joins,
        faithful=faithful,
        fresh=fresh,
        reusing=reusing,
        integers=integers,
        linear=linear,
        records=records,
        flops=flops,
        formula=formula,
        summary=summary,
    )


def unary(name: str, dtypes: frozenset[str], *, tangent: Callable[[Term, Term, Term], Term] | None, **rest: Any) -> Primitive:
    """An elementwise function of one operand. A `tangent` of None means a derivative that is zero everywhere."""

    def jvp(node: JVP) -> Sequence[Term | None]:
        (t,), (x,), (y,) = node.tangents, node.operands, node.results
        assert tangent is not None and t is not None
        return [tangent(t, x, y)]

    return elementwise(name, 1, dtypes, no_tangent if tangent is None else jvp, **rest)


def binary(
    name: str, dtypes: frozenset[str], *, tangents: tuple[Callable[[Term, Term, Term, Term], Term], ...] | None, **rest: Any
) -> Primitive:
    """An elementwise function of two operands. `tangents` of None means derivatives that are zero everywhere."""

    def jvp(node: JVP) -> Sequence[Term | None]:
        (x, y), (z,) = node.operands, node.results
        assert tangents is not None
        terms = [None if t is None else rule(t, x, y, z) for rule, t in zip(tangents, node.tangents, strict=True)]
        return [summed(terms)]

    return elementwise(name, 2, dtypes, no_tangent if tangents is None else jvp, **rest)


def linear_jvp(name: str) -> JVPRule:
    """The JVP rule of a primitive that is linear in its one operand: itself, with the same attrs."""
    apply = op(name)

    def jvp(node: JVP) -> Sequence[Term | None]:
        return [apply(node.tangents[0], **dict(node.attrs))]

    return jvp


def linear_transpose(rule: Callable[[Any, Term, TensorType], Term]) -> TransposeRule:
    """The transpose rule of a primitive of one operand, from (attrs, cotangent, operand type) to the operand's cotangent."""

    def transpose(node: Transposition) -> Sequence[Term | None]:
        (ct,), (type_,) = node.cotangents, node.types
        assert ct is not None
        return [rule(node.attrs, ct, type_)]

    return transpose


def only_active(node: Transposition, name: str) -> int:
    """The one active operand of a node that is linear in each operand alone. Raises MissingRuleError if several are."""
    active = [k for k, a in enumerate(node.active) if a]
    if len(active) != 1:
        raise MissingRuleError(f"missing transpose rule for {name} with active inputs {active}: it is linear in one at a time")
    return active[0]
