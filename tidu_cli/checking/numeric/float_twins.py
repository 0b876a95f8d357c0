"""Float twins: a graph in which integers and datetimes are computed with once more, as floats and durations.

There are no difference quotients by an integer, nor by a datetime, which is one: how many units after 1970. But where arithmetic
on integers counts as arithmetic on numbers, its derivative is that of the same arithmetic on floats, at the same point, and that
can be compared. So the twin of an integer is a float, that of a datetime a duration, that of a record the record of twins.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence

from tidu_cli.errors import TiduError
from tidu_cli.graph.builder import GraphBuilder
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
from tidu_cli.rules.recording.records import field, record
from tidu_cli.rules.recording.trace import Template, Trace
from tidu_cli.rules.tangents.conversion import converted
from tidu_cli.rules.tangents.units import is_step
from tidu_cli.rules.terms import Term, op
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.stamp import Stamper

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
    twin_inputs = [Input(twin_key[i.key], real_type(i.type)) for i in graph.inputs if i.key in twin_key]
    builder = GraphBuilder(CaseTable(), [*graph.inputs, *twin_inputs])
    twinning = _Twinning(builder, primitives)
    local_ids = iter(range(len(graph.inputs), len(builder.inputs)))
    twin: list[int | None] = [next(local_ids) if i.key in twin_key else None for i in graph.inputs]
    same = list(range(len(graph.inputs)))

    for case, operands in graph.nodes():
        first = builder.append(builder.cases.intern(case), [same[a] for a in operands])
        results = range(first, first + len(case.results))
        twin += twinning.of(case, [same[a] for a in operands], [twin[a] for a in operands], results) or [None] * len(results)
        same += results

    outputs = []
    for output in graph.outputs:
        value = None if output.value is None else twin[output.value]
        if value is not None:
            value = twinning.tangents(value, output.type)
        outputs.append(Output(output.key, value, tangent_type(output.type)))
    if all(o.value is None for o in outputs):
        return None
    return Document((builder.build(graph.name, outputs),), builder.cases), twin_key


def real_type(type_: Type) -> Type:
    """The type of the twins of values of a type: with tangents' dtypes for its own, bools as they are."""
    return map_leaves(type_, tensor_tangent_type)


def holds(type_: Type | None, dtypes: Container[str]) -> bool:
    """Whether an array in values of this type is of one of these dtypes."""
    return type_ is not None and any(leaf.dtype in dtypes for _, leaf in leaves(type_))


class _Twinning:
    """Appends twins to the graph under construction."""

    def __init__(self, builder: GraphBuilder, primitives: PrimitiveSet) -> None:
        self.builder = builder
        self.primitives = primitives
        self.stamper = Stamper.alone(builder)
        self._known: dict[tuple[Case, bool, tuple[int, ...]], tuple[Template, list[bool]] | None] = {}

    def of(
        self, case: Case, operands: Sequence[int], twins: Sequence[int | None], results: Sequence[int]
    ) -> list[int | None] | None:
        """The twins of a node's results; None if it does not compute with numbers that have twins."""
        primitive = self.primitives[case.op]
        types: list[Type] = [t for t in case.operands if t is not None]
        moved = {k for k, t in enumerate(twins) if t is not None and not primitive.domain.is_index(k)}
        if not moved or _is_step(case):
            return None
        # A float that is rounded to an integer is no number any more; an integer is one that is made of integers, or is moved.
        exact = primitive.rules.integers == "moved" or any(holds(types[k], EXACT) for k in moved)
        if exact and primitive.rules.integers == "steps":
            return None
        has_twin = [moves(t) and (exact or not holds(t, EXACT) or isinstance(t, RecordType)) for t in case.results]
        if not any(has_twin):
            return None
        as_real = [
            k
            for k, t in enumerate(types)
            if k in moved or (exact and not primitive.domain.is_index(k)) or isinstance(t, RecordType)
        ]
        key = case, exact, tuple(as_real)
        if key not in self._known:
            self._known[key] = self._template(case, types, as_real, has_twin)
        known = self._known[key]
        if known is None:
            return None
        template, due = known

        def base(k: int) -> int:
            return self._real(operands[k], types[k]) if k in as_real else operands[k]

        arguments = [value if k in moved and (value := twins[k]) is not None else base(k) for k in range(len(types))]
        found: list[int | None] = [
            value if d else None for value, d in zip(self.stamper.stamp(template, arguments), due, strict=True)
        ]
        if primitive.rules.integers == "moved" or _leaves_datetimes(case):
            still = self.stamper.stamp(template, [base(k) for k in range(len(types))])
            for k, value in enumerate(found):
                if value is not None:
                    found[k] = self._onto(results[k], value, still[k], case.results[k])
        return found

    def tangents(self, value: int, type_: Type) -> int:
        """The twin of an output, as a value of its type of tangents, which has no bools."""
        trace = self._trace()
        source = trace.source(real_type(type_), linear=False)
        return self._append(trace, converted(source, tangent_type(type_)), [value])

    def _template(
        self, case: Case, types: Sequence[Type], as_real: Sequence[int], has_twin: Sequence[bool]
    ) -> tuple[Template, list[bool]] | None:
        """The operation applied to real numbers, and of which results that gives the twins; None where it takes none."""
        mixed = next((t.dtype for t in types if isinstance(t, TensorType) and t.inexact), None)
        for dtype in dict.fromkeys((None, mixed)):  # beside a float, an exponent of integers becomes a float like it
            wanted = [_other_dtype(t, dtype) if k in as_real else t for k, t in enumerate(types)]
            trace = self._trace()
            sources = [trace.source(real_type(t) if k in as_real else t, linear=False) for k, t in enumerate(types)]
            try:
                made = self._applied(case, [converted(s, w) for s, w in zip(sources, wanted, strict=True)])
            except TiduError:
                continue
            # Positions are integers also of floats, and have no twin.
            due = [d and new.value_type == real_type(t) for new, t, d in zip(made, case.results, has_twin, strict=True)]
            if any(due):
                return trace.template(len(types), made), due
        return None

    def _applied(self, case: Case, operands: Sequence[Term]) -> Sequence[Term]:
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

    def _real(self, value: int, type_: Type) -> int:
        """A value as its twin would be at this point."""
        if real_type(type_) == type_:
            return value
        trace = self._trace()
        return self._append(trace, _as_real(trace.source(type_, linear=False)), [value])

    def _onto(self, value: int, moved: int, still: int, type_: Type) -> int:
        """What the twin is where it starts from the value that there is: the value, and what the twin has moved."""
        trace = self._trace()
        source = trace.source(type_, linear=False)
        ahead, behind = (trace.source(real_type(type_), linear=False) for _ in range(2))
        return self._append(trace, _sum(_as_real(source), ahead, behind), [value, moved, still])

    def _trace(self) -> Trace:
        return Trace(self.primitives, self.builder.cases)

    def _append(self, trace: Trace, result: Term, sources: Sequence[int]) -> int:
        return self.stamper.stamp(trace.template(len(sources), [result]), sources)[0]


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
        assert isinstance(real, RecordType)
        return record(real, {name: _as_real(field(value, name)) for name in type_.names})
    assert isinstance(real, TensorType)
    return convert(value, new_dtype=real.dtype)


def _sum(value: Term, ahead: Term, behind: Term) -> Term:
    type_ = value.value_type
    if isinstance(type_, RecordType):
        parts = {name: _sum(field(value, name), field(ahead, name), field(behind, name)) for name in type_.names}
        return record(type_, parts)
    return value if type_.dtype == "bool" else value + (ahead - behind)
