"""Float twins: a graph in which integers and datetimes are computed with once more, as floats and durations.

There are no difference quotients by an integer, nor by a datetime, which is one: how many units after 1970. But where arithmetic
on integers counts as arithmetic on numbers, its derivative is that of the same arithmetic on floats, at the same point, and that
can be compared. So the twin of an integer is a float, that of a datetime a duration, that of a record the record of twins.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence

from tidu_cli.errors import TiduError
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Case, CaseTable, Document, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import (
    DATETIMES,
    INTEGERS,
    RecordType,
    TensorType,
    Type,
    leaves,
    map_leaves,
    moves,
    tangent_type,
    tensor_tangent_type,
)
from tidu_cli.rules.contract import Primitive
from tidu_cli.rules.recording.trace import Trace, recorded
from tidu_cli.rules.tangents.conversion import converted
from tidu_cli.rules.terms import Term, field, fieldwise, op
from tidu_cli.rules.units import is_step
from tidu_cli.rules.vocabulary import PrimitiveSet

EXACT = INTEGERS | DATETIMES
"""Dtypes whose tangents are of another one."""

FloatTwin = tuple[Document, dict[Key, Key]]
"""The twin of a document, and by the key of an input that of the one that is its twin."""

convert = op("convert_element_type")


def float_twin(document: Document, primitives: PrimitiveSet, dtypes: Collection[str] = EXACT) -> FloatTwin | None:
    """The twin of a document of one graph without own primitives.

    Inputs that hold an array of these dtypes have twins. Every value that depends on them as numbers has one, and the outputs are
    those twins; a null stands for an output that does not. All that there was stays, too: as indices, and for what rounds or works
    on bits. So where a datetime or an integer is made of a float, by moving it, the twin moves from the rounded value on: at
    the point where inputs equal their twins, so do all values. None if no output has a twin.
    """
    (graph,) = document.graphs
    twin_key = {i.key: Key(f"\0{k}") for k, i in enumerate(graph.inputs) if holds(i.type, dtypes)}
    if not twin_key:
        return None
    inputs = [*graph.inputs, *(Input(twin_key[i.key], real_type(i.type)) for i in graph.inputs if i.key in twin_key)]
    trace = Trace(primitives, CaseTable())
    sources = {i.key: trace.source(i.type, linear=False) for i in inputs}
    values = [sources[i.key] for i in graph.inputs]
    twins = [sources[twin_key[i.key]] if i.key in twin_key else None for i in graph.inputs]
    for case, operands in graph.nodes():
        made = trace.append(trace.cases.intern(case), [values[a] for a in operands])
        results = [replace(value, linear=False) for value in made]  # twins are no part of a derivative
        twins += _twins(case, [values[a] for a in operands], [twins[a] for a in operands], results)
        values += results

    outputs = []
    for output in graph.outputs:
        twin = None if output.value is None else twins[output.value]
        type_ = tangent_type(output.type)
        outputs.append(Output(output.key, None if twin is None else converted(twin, type_).slot, type_))  # which has no bools
    if all(o.value is None for o in outputs):
        return None
    return Document((recorded(trace, graph.name, inputs, outputs),), trace.cases), twin_key


def real_type(type_: Type) -> Type:
    """The type of the twins of values of a type: with tangents' dtypes for its own, bools as they are."""
    return map_leaves(type_, tensor_tangent_type)


def holds(type_: Type | None, dtypes: Container[str]) -> bool:
    """Whether an array in values of this type is of one of these dtypes."""
    return type_ is not None and any(leaf.dtype in dtypes for _, leaf in leaves(type_))


def _twins(case: Case, operands: Sequence[Term], twins: Sequence[Term | None], results: Sequence[Term]) -> Sequence[Term | None]:
    """The twins of a node's results; None of those that are no numbers with twins."""
    none = [None] * len(results)
    if not any(twins) or _is_step(case):
        return none
    primitive: Primitive = operands[0].trace.primitives[case.op]
    moved = {k for k, t in enumerate(twins) if t is not None and not primitive.domain.is_index(k)}
    if not moved:
        return none
    types = [x.value_type for x in operands]
    # A float that is rounded to an integer is no number any more; an integer is one that is made of integers, or is moved.
    exact = primitive.rules.integers == "moved" or any(holds(types[k], EXACT) for k in moved)
    if exact and primitive.rules.integers == "steps":
        return none
    has_twin = [moves(t) and (exact or not holds(t, EXACT) or isinstance(t, RecordType)) for t in case.results]
    if not any(has_twin):
        return none
    is_real = [
        k in moved or (exact and not primitive.domain.is_index(k)) or isinstance(type_, RecordType) for k, type_ in enumerate(types)
    ]

    def still(k: int) -> Term:
        return _as_real(operands[k]) if is_real[k] else operands[k]

    ahead = [twin if twin is not None and k in moved else still(k) for k, twin in enumerate(twins)]
    reals = _of_reals(case, ahead, types, is_real, has_twin)
    if primitive.rules.integers == "moved" or _leaves_datetimes(case):
        # The twin starts from the value that there is: it is that, and what the twin has moved.
        behind = _of_reals(case, [still(k) for k in range(len(operands))], types, is_real, has_twin)
        pairs = zip(results, reals, behind, strict=True)
        reals = [None if x is None or y is None else _sum(_as_real(value), x, y) for value, x, y in pairs]
    return reals


def _of_reals(
    case: Case, operands: Sequence[Term], types: Sequence[Type], is_real: Sequence[bool], has_twin: Sequence[bool]
) -> list[Term | None]:
    """The operation applied to real numbers in place of values of these types, where that gives twins."""
    mixed = next((t.dtype for t in types if isinstance(t, TensorType) and t.inexact), None)
    for dtype in dict.fromkeys((None, mixed)):  # beside a float, an exponent of integers becomes a float like it
        wanted = [_other_dtype(t, dtype) if real else t for t, real in zip(types, is_real, strict=True)]
        try:
            made = _applied(case, [converted(x, w) for x, w in zip(operands, wanted, strict=True)])
        except TiduError:
            continue
        # Positions are integers also of floats, and have no twin.
        pairs = zip(made, case.results, has_twin, strict=True)
        twins = [new if due and new.value_type == real_type(t) else None for new, t, due in pairs]
        if any(twins):
            return twins
    return [None] * len(case.results)


def _applied(case: Case, operands: Sequence[Term]) -> Sequence[Term]:
    """The operation applied to real numbers. Motion goes by the natural tangent: only datetimes have structural ones."""
    trace = operands[0].trace
    if case.op == "difference":
        return [converted(trace.emit(case.op, *operands), case.results[0])]
    if case.op == "retract":
        primal, tangent = operands
        return [trace.emit(case.op, primal, converted(tangent, tangent_type(primal.value_type)))]
    attrs = case.attrs.to_data(binary=True)
    real = {str(t): str(real_type(t)) for t in case.results}
    real |= {t.dtype: tensor_tangent_type(t).dtype for t in case.results if isinstance(t, TensorType)}
    changed = {name: real.get(value, value) if isinstance(value, str) else value for name, value in attrs.items()}
    return trace.emit_all(case.op, *operands, **changed)


def _is_step(case: Case) -> bool:
    """Whether the node rounds datetimes to a longer unit. (Of integers, the primitive says so.)"""
    dtypes = [t.dtype for t in (*case.operands, *case.results) if isinstance(t, TensorType)]
    return case.op == "convert_element_type" and DATETIMES.issuperset(dtypes) and is_step(*dtypes)


def _leaves_datetimes(case: Case) -> bool:
    """Whether numbers are made of datetimes here: what these have in common may be more digits than a float has."""
    return any(isinstance(t, TensorType) and t.dtype in DATETIMES for t in case.operands) and not any(
        isinstance(t, TensorType) and t.dtype in DATETIMES for t in case.results
    )


def _other_dtype(type_: Type, dtype: str | None) -> Type:
    if dtype is not None and isinstance(type_, TensorType) and type_.dtype in INTEGERS:
        return type_.with_dtype(dtype)
    return real_type(type_)


def _as_real(value: Term) -> Term:
    type_ = value.value_type
    real = real_type(type_)
    if real == type_:
        return value
    if isinstance(type_, RecordType):
        return fieldwise(real, lambda name, _: _as_real(field(value, name)))
    assert isinstance(real, TensorType)
    return convert(value, new_dtype=real.dtype)


def _sum(value: Term, ahead: Term, behind: Term) -> Term:
    type_ = value.value_type
    if isinstance(type_, RecordType):
        return fieldwise(type_, lambda name, _: _sum(field(value, name), field(ahead, name), field(behind, name)))
    return value if type_.dtype == "bool" else value + (ahead - behind)
