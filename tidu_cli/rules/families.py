"""Families of primitives, so that most rules are one line of a table.

Elementwise rules are functions of Terms: a slope of (x, y), operand and result; the tangent rule of a unary function of (t, x, y),
that of a binary one of (t, x, y, z): tangent of the one operand, both operands, result.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from types import MappingProxyType
from typing import Any

from tidu_cli.errors import MissingRuleError, TypeRuleError
from tidu_cli.frozen import Frozen, field_names, replace
from tidu_cli.graph.types import ANY, DATETIMES, DURATIONS, TIMES, RecordType, TensorType, dtype_class, real_dtype
from tidu_cli.rules import contract
from tidu_cli.rules.analysis import free
from tidu_cli.rules.batching import AttrShift, itself
from tidu_cli.rules.terms import Term, field, fieldwise, op

_OPERATORS: dict[str, contract.Kernel] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "negative": operator.neg, "divide": operator.truediv,
}  # fmt: skip
"""On NumPy scalars Python's operators give the very bits of the ufuncs, several times faster. (Complex products may round
otherwise.)"""

_ROUNDING = frozenset({
    "exp", "exp2", "expm1", "log", "log1p", "cbrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan",
    "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh",
})  # fmt: skip
"""The functions of one operand that NumPy does not compute exactly, or rounded once."""

Adjoint = Callable[[contract.Transposition, Term, TensorType], Term | None]
"""From (the node, its cotangent, an operand's type) to the cotangent of that operand."""

Partial = Callable[..., Term]
"""From (an operand's tangent, all operands, the result) to what the tangent contributes to that of the result."""

Intervals = tuple[tuple[float, float], ...]
"""From which operands are drawn, one for each, or one for all."""

_conj, convert = op("conj"), op("convert_element_type")


def conj(x: Term) -> Term:
    """The complex conjugate; of a real value, itself."""
    return _conj(x) if x.type.complex else x


def as_dtype(x: Term, dtype: str) -> Term:
    """x converted to a dtype; of that dtype, itself."""
    return x if x.type.dtype == dtype else convert(x, new_dtype=dtype)


def require_dtype(dtypes: frozenset[str], types: contract.Types, what: str = "input") -> None:
    """Raises TypeRuleError if some operand's dtype is not among `dtypes`."""
    for k, t in enumerate(types):
        if t.dtype not in dtypes:
            raise TypeRuleError(f"{what} {k} has type {t}, but it takes {dtype_class(dtypes)}{_way_out(t.dtype, dtypes)}")


def _way_out(dtype: str, dtypes: frozenset[str]) -> str:
    if dtype in DATETIMES and dtypes >= DURATIONS:
        return "; use retract to move a datetime by a duration, and sub for the duration between two"
    return "; use convert_element_type to f64 first" if dtype in TIMES and "f64" in dtypes else ""


def require_axis(name: str, axis: int, operand: TensorType, what: str = "operand") -> None:
    """Raises TypeRuleError unless the axis that an attr names is one of the operand's."""
    if axis >= operand.rank:
        raise TypeRuleError(f"{name} {axis}: the {what} {operand} has no such axis")


def require_axes(name: str, axes: Sequence[int], operand: TensorType) -> None:
    """Raises TypeRuleError unless the axes that an attr names are the operand's."""
    for axis in axes:
        if axis >= operand.rank:
            raise TypeRuleError(f"{name} {list(axes)}: the operand {operand} has no axis {axis}")


def require_one_type(types: contract.Types) -> None:
    """Raises TypeRuleError if operand types differ: shapes never broadcast by themselves."""
    for k, t in enumerate(types):
        if t != types[0]:
            way_out = "convert_element_type first" if t.shape == types[0].shape else "broadcast_in_dim first"
            if {types[0].dtype, t.dtype} & DATETIMES and {types[0].dtype, t.dtype} & DURATIONS:
                way_out = "retract to move a datetime by a duration"
            from tidu_cli.graph.open_sizes import mismatch

            raise TypeRuleError(mismatch(types[0], k, t, way_out))


def of_one_type(dtypes: frozenset[str], result: Callable[[TensorType], TensorType] = lambda t: t) -> contract.TypeRule:
    """The type rule of elementwise primitives: operands of one type among `dtypes`, and a result derived from it."""

    def types(attrs: Any, operands: contract.Types) -> contract.Types:
        require_dtype(dtypes, operands)
        require_one_type(operands)
        return (result(operands[0]),)

    return types


def real_of(t: TensorType) -> TensorType:
    """The type of real parts, and of magnitudes."""
    return t.with_dtype(real_dtype(t.dtype))


def computed(function: contract.Kernel) -> contract.KernelRule:
    """The kernel that is a function of NumPy and the operands."""
    return lambda np, attrs, operands, results: partial(function, np)


def numpy_function(name: str, unless: frozenset[str] = frozenset(), instead: contract.Kernel | None = None) -> contract.KernelRule:
    """The kernel that is NumPy's function of that name; of dtypes among `unless` a function of NumPy and operands `instead`."""

    def kernel(np: Any, attrs: Any, operands: contract.Types, results: contract.Types) -> contract.Kernel:
        if instead is not None and operands[0].dtype in unless:
            return partial(instead, np)
        if operands[0].rank == 0 and not operands[0].complex and name in _OPERATORS:
            return _OPERATORS[name]
        function: contract.Kernel = getattr(np, name)
        return through_f32(np, function) if name in _ROUNDING and operands[0].dtype == "f16" else function

    return kernel


def through_f32(np: Any, function: contract.Kernel) -> contract.Kernel:
    """A function of f32 as one of f16. NumPy's own functions of f16 may round an element alone otherwise than among many."""
    return lambda x: function(x.astype(np.float32)).astype(np.float16)


def no_tangent(node: contract.JVP) -> Sequence[Term | None]:
    """The JVP rule of piecewise constant primitives."""
    return [None] * len(node.results)


def by_partials(*partials: Partial | None) -> contract.JVPRule:
    """The JVP rule that adds up what the tangents contribute; None is of a derivative that is zero everywhere."""

    def jvp(node: contract.JVP) -> Sequence[Term | None]:
        seen = (*node.operands, *node.results)
        return [summed([t and rule and rule(t, *seen) for rule, t in zip(partials, node.tangents, strict=True)])]

    return jvp


def weighted(slope: Callable[..., Term]) -> Partial:
    """The tangent multiplied by a slope, which is a function of all operands and the result."""
    return lambda t, *seen: slope(*seen) * t


def by_counts(rule: contract.JVPRule) -> contract.JVPRule:
    """A JVP rule that multiplies tangents, for durations, too: it sees them as f64, how many units they are."""

    def jvp(node: contract.JVP) -> Sequence[Term | None]:
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


def minus(x: Term | None, y: Term | None) -> Term | None:
    """x - y for tangents of one type, of records field by field; None is zero."""
    if y is None:
        return x
    if isinstance(y.value_type, RecordType):
        return fieldwise(y.value_type, lambda name, _: minus(x and field(x, name), field(y, name)))
    return -y if x is None else x - y


_FACETS: dict[str, type[Frozen]] = {
    kind.__name__.lower(): kind for kind in (contract.Domain, contract.Evaluation, contract.Rules, contract.Catalogue)
}
_FACET_OF = {part: facet for facet, kind in _FACETS.items() for part in field_names(kind)}


def _by_facet(told: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Fields by the facets that have them."""
    facets: dict[str, dict[str, Any]] = {}
    for name, value in told.items():
        facets.setdefault(_FACET_OF[name], {})[name] = value
    return facets


def primitive(
    name: str,
    arity: int | None,
    types: contract.TypeRule,
    kernel: contract.KernelRule,
    *,
    adjoint: Adjoint | None = None,
    **rest: Any,
) -> contract.Primitive:
    """A primitive whose facets are told field by field. An `adjoint` says that it is linear in its one operand."""
    if adjoint is not None:
        rest |= {"jvp": linear_jvp(name), "transpose": linear_transpose(adjoint)}
    told = _by_facet({"arity": arity, "types": types, "kernel": kernel, **rest})
    facets: dict[str, Any] = {facet: _FACETS[facet](**fields) for facet, fields in told.items()}
    return contract.Primitive(name, **facets)


def changed(old: contract.Primitive, **told: Any) -> contract.Primitive:
    """The primitive with some fields of its facets replaced."""
    return replace(old, **{facet: replace(getattr(old, facet), **fields) for facet, fields in _by_facet(told).items()})


def elementwise_examples(arity: int, within: Intervals = ((-2.0, 2.0),)) -> tuple[contract.Example, ...]:
    """What elementwise primitives are tried on: operands of one type, of ranks 0 and 2."""
    return tuple(contract.Example((type_,) * arity, within=within) for type_ in ("T[]", "T[2,3]"))


def elementwise(
    name: str,
    arity: int,
    dtypes: frozenset[str],
    jvp: contract.JVPRule,
    *,
    types: contract.TypeRule | None = None,
    kernel: contract.KernelRule | str = "",
    batch: contract.BatchRule | None = None,
    result: Callable[[TensorType], TensorType] = lambda t: t,
    within: Intervals = ((-2.0, 2.0),),
    more: tuple[contract.Example, ...] = (),
    **rest: Any,
) -> contract.Primitive:
    """A primitive of operands of one type among `dtypes`, element by element.

    Its `kernel` may be the name of NumPy's function; by default it is that of the primitive.

    A batch of it is by default the primitive itself, of arrays with one more axis.

    `within` are intervals to draw operands from, `more` further examples, `rest` other fields of its facets.
    """
    return primitive(
        name,
        arity,
        types or of_one_type(dtypes, result),
        kernel if callable(kernel) else numpy_function(kernel or name),
        jvp=jvp,
        batch=batch or itself(name),
        dtypes=dtypes,
        one_type=True,
        sparsity="elements",
        examples=(*elementwise_examples(arity, within), *more),
        **rest,
    )


def unary(
    name: str,
    dtypes: frozenset[str],
    formula: str = "",
    summary: str = "",
    *,
    slope: Callable[[Term, Term], Term] | None = None,
    tangent: Partial | None = None,
    **rest: Any,
) -> contract.Primitive:
    """An elementwise function of one operand, by its derivative: the `slope` by which tangents are multiplied, or a `tangent` rule.

    Without it is zero everywhere; or it is linear, with an `adjoint`.
    """
    contribution = tangent if slope is None else weighted(slope)
    return elementwise(name, 1, dtypes, by_partials(contribution), formula=formula, summary=summary, **rest)


def binary(
    name: str,
    dtypes: frozenset[str],
    formula: str = "",
    summary: str = "",
    *,
    tangents: tuple[Partial | None, Partial | None] = (None, None),
    **rest: Any,
) -> contract.Primitive:
    """An elementwise function of two operands. Without `tangents` it has derivatives that are zero everywhere."""
    return elementwise(name, 2, dtypes, by_partials(*tangents), formula=formula, summary=summary, **rest)


def linear(
    name: str,
    types: contract.TypeRule,
    kernel: contract.KernelRule,
    adjoint: Adjoint | None = None,
    *,
    arity: int | None = 1,
    shifts: Mapping[str, AttrShift] = MappingProxyType({}),
    **rest: Any,
) -> contract.Primitive:
    """A primitive that is linear in its operands together, but for `indices`; unless it is told, it only moves elements.

    Its JVP is itself, and its transpose, of one operand, the `adjoint`. A batch of it is itself, too, with these `shifts` of attrs.
    """
    told = {"dtypes": ANY, "flops": free, "linear": contract.TOGETHER, "batch": itself(name, **shifts)}
    told |= {"jvp": linear_jvp(name, rest.get("indices", (0, 0)))}
    return primitive(name, arity, types, kernel, adjoint=adjoint, **(told | rest))


def bilinear(
    name: str,
    types: contract.TypeRule,
    kernel: contract.KernelRule,
    adjoint: Callable[[contract.Transposition, int, Term, Term], Term | None],
    *,
    attrs_of_tangent: Callable[[contract.JVP], Mapping[str, Any]] = lambda node: dict(node.attrs),
    **rest: Any,
) -> contract.Primitive:
    """A primitive that is linear in each of two operands alone: its JVP is the sum of itself, applied to each tangent.

    `adjoint` gives the cotangent of the active operand, None for zero, from the node, its number, the other operand and the
    cotangent.
    """
    apply = op(name)

    def jvp(node: contract.JVP) -> Sequence[Term | None]:
        (x, y), (tx, ty), attrs = node.operands, node.tangents, attrs_of_tangent(node)
        return [summed([None if ty is None else apply(x, ty, **attrs), None if tx is None else apply(tx, y, **attrs)])]

    def transpose(node: contract.Transposition) -> Sequence[Term | None]:
        active = [k for k, a in enumerate(node.active) if a]
        if len(active) != 1:
            raise MissingRuleError(f"missing transpose rule for {name} with active inputs {active}: it is linear in one at a time")
        (k,), other = active, node.operands[1 - active[0]]
        assert other is not None
        contribution = adjoint(node, k, other, node.cotangent)
        return [contribution, None] if k == 0 else [None, contribution]

    return primitive(name, 2, types, kernel, jvp=jvp, transpose=transpose, linear=contract.EACH, **rest)


def linear_jvp(name: str, indices: tuple[int, int | None] = (0, 0)) -> contract.JVPRule:
    """The JVP rule of a primitive that is linear in all operands together, but for indices: itself, of the tangents.

    Operands without a tangent are zero.
    """

    def jvp(node: contract.JVP) -> Sequence[Term | None]:
        tangents = {k: t for k, t in enumerate(node.tangents) if not contract.in_span(indices, k)}
        some = next((t for t in tangents.values() if t is not None), None)
        if some is None:
            return [None] * len(node.results)
        operands = list(node.operands)
        for k, t in tangents.items():
            operands[k] = t or some.trace.full(0, operands[k].type.with_dtype(some.type.dtype))
        return some.trace.apply(name, node.attrs, operands)

    return jvp


def linear_transpose(*adjoints: Adjoint | None) -> contract.TransposeRule:
    """The transpose rule of a primitive of one result, by the adjoint of each operand; indices have None, or none."""

    def transpose(node: contract.Transposition) -> Sequence[Term | None]:
        rules = zip_longest(adjoints, node.active, node.types)
        return [adjoint(node, node.cotangent, type_) if adjoint and active else None for adjoint, active, type_ in rules]

    return transpose
