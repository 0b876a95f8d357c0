"""Families of primitives, so that most rules are one line of a table.

Elementwise rules are functions of Terms. A unary one has the signature (t, x, y): tangent, operand, result; a binary one
(t, x, y, z): tangent of the one operand, both operands, result.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidu_cli.errors import MissingRuleError, TypeRuleError
from tidu_cli.graph.types import ALL, COMPLEXES, FLOATS, INEXACT, INTEGERS, NUMERIC, REALS, SIGNED, TensorType
from tidu_cli.primitives.batching import itself
from tidu_cli.primitives.contract import (
    JVP,
    Attrs,
    BatchRule,
    Example,
    FlopsRule,
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
from tidu_cli.primitives.flops import ONE_EACH
from tidu_cli.primitives.trace import Term, op

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
    ALL: "all dtypes",
}

_OPERATORS: dict[str, Kernel] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "negative": operator.neg, "divide": operator.truediv,
}  # fmt: skip
"""On NumPy scalars Python's operators give the very bits of the ufuncs, several times faster. (Complex products may round
otherwise.)"""

_conj = op("conj")


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
            raise TypeRuleError(f"{what} {k} has type {t}, but it takes {dtype_class(dtypes)}")


def require_alike(types: Types) -> None:
    """Raises TypeRuleError if operand types differ: shapes never broadcast by themselves."""
    for k, t in enumerate(types):
        if t != types[0]:
            way_out = "convert_element_type" if t.shape == types[0].shape else "broadcast_in_dim"
            raise TypeRuleError(f"type mismatch: input 0 is {types[0]}, input {k} is {t}; use {way_out} first")


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
        return function

    return kernel


def no_tangent(node: JVP) -> Sequence[Term | None]:
    """The JVP rule of piecewise constant primitives."""
    return [None] * len(node.results)


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
    kernel: KernelRule | None = None,
    result: Callable[[TensorType], TensorType] = lambda t: t,
    attrs: type[Attrs] = NoAttrs,
    example: Mapping[str, Any] | None = None,
    within: tuple[tuple[float, float], ...] = ((-2.0, 2.0),),
    faithful: bool = True,
    integers: Integers = "numbers",
    fresh: bool = False,
    reusing: KernelRule | None = None,
    flops: FlopsRule = ONE_EACH,
    formula: str,
    summary: str,
) -> Primitive:
    """A primitive of operands of one type among `dtypes`, element by element; by default NumPy's function of that name.

    A batch of it is by default the primitive itself, of arrays with one more axis.

    `example` are attrs to try it with, `within` intervals to draw operands from.
    """
    examples = tuple(Example((type_,) * arity, example or {}, within) for type_ in ("T[]", "T[2,3]"))
    return Primitive(
        name,
        arity,
        alike(dtypes, result),
        kernel or numpy_function(name),
        jvp,
        transpose,
        batch or itself(name),
        attrs=attrs,
        dtypes=dtypes,
        examples=examples,
        alike=True,
        faithful=faithful,
        fresh=fresh,
        reusing=reusing,
        integers=integers,
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
