"""Families of primitives, so that most rules are one line of a table.

Elementwise rules are functions of Terms. A unary one has the signature (t, x, y): tangent, operand, result; a binary one
(t, x, y, z): tangent of the one operand, both operands, result.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
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
    BatchRule,
    Catalogue,
    Domain,
    Evaluation,
    Example,
    JVPRule,
    Kernel,
    KernelRule,
    Primitive,
    Rules,
    TransposeRule,
    Transposition,
    TypeRule,
    Types,
)
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


def require_one_type(types: Types) -> None:
    """Raises TypeRuleError if operand types differ: shapes never broadcast by themselves."""
    for k, t in enumerate(types):
        if t != types[0]:
            way_out = "convert_element_type first" if t.shape == types[0].shape else "broadcast_in_dim first"
            if {types[0].dtype, t.dtype} & DATETIMES and {types[0].dtype, t.dtype} & DURATIONS:
                way_out = "retract to move a datetime by a duration"
            raise TypeRuleError(f"type mismatch: input 0 is {types[0]}, input {k} is {t}; use {way_out}")


def of_one_type(dtypes: frozenset[str], result: Callable[[TensorType], TensorType] = lambda t: t) -> TypeRule:
    """The type rule of elementwise primitives: operands of one type among `dtypes`, and a result derived from it."""

    def types(attrs: Any, operands: Types) -> Types:
        require_dtype(dtypes, operands)
        require_one_type(operands)
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


_FACETS = {"domain": Domain, "evaluation": Evaluation, "rules": Rules, "catalogue": Catalogue}
_FACET_OF = {field.name: facet for facet, kind in _FACETS.items() for field in fields(kind)}


def _by_facet(told: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Fields by the facets that have them."""
    found: dict[str, dict[str, Any]] = {}
    for field, value in told.items():
        found.setdefault(_FACET_OF[field], {})[field] = value
    return found


def primitive(name: str, arity: int | None, types: TypeRule, kernel: KernelRule, **rest: Any) -> Primitive:
    """A primitive whose facets are told field by field."""
    told = _by_facet({"arity": arity, "types": types, "kernel": kernel, **rest})
    return Primitive(name, **{facet: _FACETS[facet](**fields) for facet, fields in told.items()})


def changed(old: Primitive, **told: Any) -> Primitive:
    """The primitive with some fields of its facets replaced."""
    return replace(old, **{facet: replace(getattr(old, facet), **fields) for facet, fields in _by_facet(told).items()})


def elementwise(
    name: str,
    arity: int,
    dtypes: frozenset[str],
    jvp: JVPRule,
    *,
    types: TypeRule | None = None,
    kernel: KernelRule | None = None,
    batch: BatchRule | None = None,
    result: Callable[[TensorType], TensorType] = lambda t: t,
    example: Mapping[str, Any] | None = None,
    within: tuple[tuple[float, float], ...] = ((-2.0, 2.0),),
    more: tuple[Example, ...] = (),
    **rest: Any,
) -> Primitive:
    """A primitive of operands of one type among `dtypes`, element by element; by default NumPy's function of that name.

    A batch of it is by default the primitive itself, of arrays with one more axis.

    `example` are attrs to try it with, `within` intervals to draw operands from; `more` are further examples. `rest` are
    other fields of its facets.
    """
    return primitive(
        name,
        arity,
        types or of_one_type(dtypes, result),
        kernel or numpy_function(name),
        jvp=jvp,
        batch=batch or itself(name),
        dtypes=dtypes,
        one_type=True,
        examples=(*(Example((type_,) * arity, example or {}, within) for type_ in ("T[]", "T[2,3]")), *more),
        **rest,
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
