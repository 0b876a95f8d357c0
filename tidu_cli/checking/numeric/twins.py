"""Twins of graphs, of which difference quotients can be taken in their place: with loops written out, and with floats for integers.

Loops are written out where stop_gradient stands in their steps, so that what it passes on can be held in difference quotients.

A float twin is a graph in which integers and datetimes are computed with once more, as floats and durations. There are no
difference quotients by an integer, nor by a datetime, which is one: how many units after 1970. But where arithmetic on integers
counts as arithmetic on numbers, its derivative is that of the same arithmetic on floats, at the same point, and that can be
compared. So the twin of an integer is a float, that of a datetime a duration, that of a record the record of twins.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Sequence
from typing import Any

from tidu_cli.errors import TiduError
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import cases_within, forwards, named_graphs
from tidu_cli.graph.graph import Case, CaseTable, Document, Graph, Input, Output
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
from tidu_cli.rules.recording.conversion import converted
from tidu_cli.rules.recording.trace import Trace, recorded
from tidu_cli.rules.terms import Term, field, fieldwise, op
from tidu_cli.rules.units import is_step
from tidu_cli.rules.vocabulary import PrimitiveSet

STOP = "stop_gradient"

MOST_NODES = 20_000
"""Loops that would be more nodes stay loops."""


def unrolled(document: Document, primitives: PrimitiveSet) -> Document:
    """A document of one graph, with scans whose steps hold stop_gradient written out, at any depth, where they are few nodes."""
    (graph,) = document.graphs
    if not any(_is_unrolled(case) for case in _used(graph)):
        return document
    trace = Trace(primitives, graph.cases)
    results = _results(trace, graph, [trace.source(i.type, linear=False) for i in graph.inputs])
    ends = [replace(o, value=None if term is None else term.slot) for o, term in zip(graph.outputs, results, strict=True)]
    return replace(document, graphs=(recorded(trace, graph.name, graph.inputs, ends),))


def not_held(document: Document, primitives: PrimitiveSet) -> Iterator[str]:
    """Why what stop_gradient passes on within the nodes of a graph cannot be held, once scans are written out."""
    (graph,) = unrolled(document, primitives).graphs
    for case in dict.fromkeys(_used(graph)):
        inner = (node.op for d in primitives.reached_from([case.op]) for node in d.graphs["forward"].nodes)
        if case.op == STOP or not (_holds(case) or STOP in inner):
            continue
        if case.op == "scan":
            why = f"of {case.attrs.length} steps is more than {MOST_NODES:,} nodes"  # type: ignore[attr-defined]
        else:
            why = "runs as its values say" if named_graphs(case.attrs) else "has a graph of its own"
        yield f"{STOP} passes on values within {case.op}, which {why}, so that difference quotients cannot hold them still"


def _used(graph: Graph) -> list[Case]:
    return [graph.cases[code] for code in sorted(set(graph.code))]


def _holds(case: Case) -> bool:
    return any(inner.op == STOP for inner in cases_within([case]))


def _is_unrolled(case: Case) -> bool:
    arrays = all(isinstance(t, TensorType) for t in (*case.operands, *case.results))
    return case.op == "scan" and _holds(case) and arrays and 0 < _size(case) <= MOST_NODES


def _size(case: Case) -> int:
    """The nodes that a node is, scans within it written out."""
    if case.op != "scan":
        return 1
    attrs: Any = case.attrs
    body = attrs.body.graph
    sizes = {code: _size(body.cases[code]) for code in set(body.code)}
    return int(attrs.length * (len(case.operands) + sum(sizes[code] for code in body.code)))


def _results(trace: Trace, graph: Graph, inputs: Sequence[Term]) -> list[Term | None]:
    """The outputs of a graph for these inputs."""
    values = list(inputs)
    for code, args, _, _ in forwards(graph, graph.args):
        case, operands = graph.cases[code], [values[a] for a in args]
        values += _steps(trace, case, operands) if _is_unrolled(case) else trace.apply(case.op, case.attrs, operands)
    return [None if o.value is None else values[o.value] for o in graph.outputs]


def _steps(trace: Trace, case: Case, operands: Sequence[Term]) -> list[Term]:
    """A scan, step by step."""
    attrs: Any = case.attrs
    n = attrs.num_consts + attrs.num_carry
    consts, carry, xs = operands[: attrs.num_consts], list(operands[attrs.num_consts : n]), operands[n:]
    rows: list[list[Term]] = []
    for step in range(attrs.length)[:: -1 if attrs.reverse else 1]:
        taken = []
        for x in xs:
            shape = x.type.shape
            limits = {"start_indices": (step, *[0] * (len(shape) - 1)), "limit_indices": (step + 1, *shape[1:]), "strides": None}
            taken.append(trace.emit("reshape", trace.emit("slice", x, **limits), new_sizes=shape[1:]))
        after = [term for term in _results(trace, attrs.body.graph, [*consts, *carry, *taken]) if term is not None]
        carry = after[: attrs.num_carry]
        rows.append([trace.emit("reshape", y, new_sizes=(1, *y.type.shape)) for y in after[attrs.num_carry :]])
    columns = zip(*(rows[::-1] if attrs.reverse else rows), strict=True)
    return [*carry, *[trace.emit("concatenate", *column, dimension=0) for column in columns]]


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
