"""Loops written out step by step, and branches as selections of all of them: what they mean, in operations that have no graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.graphs.sketch import Sketch, Value
from tidu_cli.graph.closed import ClosedGraph, closed_graphs, forwards
from tidu_cli.graph.graph import Document, Graph
from tidu_cli.graph.literals import literal_to_numbers
from tidu_cli.graph.types import RecordType, TensorType, Type, of_batch


def unrolled(document: Document) -> Document:
    """A document of one graph without loops and branches; its whiles count from 0 to the integer in their condition."""
    graph = document.head
    sketch = Sketch({i.key: i.type for i in graph.inputs})
    results = _emitted(sketch, graph, sketch.inputs)
    made = sketch.build(graph.name, {o.key: v for o, v in zip(graph.outputs, results, strict=True)})
    return Document((made,), made.cases)


def counted_as_scans(graph: Graph) -> Graph:
    """The graph with a scan of as many steps in the place of each while, at any depth."""
    sketch = Sketch({i.key: i.type for i in graph.inputs})
    values = list(sketch.inputs)
    for code, args, _, _ in forwards(graph, graph.args):
        case, operands = graph.cases[code], [values[a] for a in args]
        attrs = {name: _mapped(value) for name, value in vars(case.attrs).items()}
        if case.op == "while":
            numbers = {"length": steps_of(case.attrs.condition), "num_consts": case.attrs.body_consts}
            carry = len(operands) - case.attrs.cond_consts - case.attrs.body_consts
            attrs = {**numbers, "num_carry": carry, "body": attrs["body"]}
            values += sketch.apply_all("scan", *operands[case.attrs.cond_consts :], **attrs)
        elif closed_graphs(case.attrs):
            values += sketch.apply_all(case.op, *operands, **attrs)
        else:
            values += _same(sketch, case, operands)
    return sketch.build(graph.name, {o.key: values[o.value] for o in graph.outputs})


def _mapped(value: object) -> object:
    if isinstance(value, ClosedGraph):
        return ClosedGraph.of(counted_as_scans(value.graph))
    return tuple(_mapped(v) for v in value) if isinstance(value, tuple) else value


def steps_of(condition: ClosedGraph) -> int:
    """The integer that a counter is compared with."""
    literals = [c.attrs.value for c in condition.graph.cases.cases if c.op == "constant"]
    (end,) = [literal_to_numbers(v)[0] for v in literals if v.type.dtype == "i32"]
    return int(end)


def _same(sketch: Sketch, case: object, operands: Sequence[Value]) -> list[Value]:
    """A node of the same case."""
    made = replace(case, mask=None)
    first = sketch.builder.append(sketch.builder.cases.intern(made), [v.id for v in operands])
    return [Value(sketch, first + k, t) for k, t in enumerate(made.results)]


def _emitted(sketch: Sketch, graph: Graph, inputs: Sequence[Value]) -> list[Value]:
    values = list(inputs)
    for code, args, _, _ in forwards(graph, graph.args):
        case, operands = graph.cases[code], [values[a] for a in args]
        rule = {"scan": _scan, "while": _while, "cond": _cond}.get(case.op)
        values += rule(sketch, case.attrs, operands) if rule else _same(sketch, case, operands)
    return [values[o.value] for o in graph.outputs]


def _scan(sketch: Sketch, attrs: object, operands: Sequence[Value]) -> list[Value]:
    n, end = attrs.num_consts, attrs.num_consts + attrs.num_carry
    consts, carry, xs = operands[:n], list(operands[n:end]), operands[end:]
    rows: list[list[Value]] = []
    for k in range(attrs.length)[:: -1 if attrs.reverse else 1]:
        results = _emitted(sketch, attrs.body.graph, [*consts, *carry, *[_cut(x, k) for x in xs]])
        carry = results[: attrs.num_carry]
        rows.append(results[attrs.num_carry :])
    rows = rows[:: -1 if attrs.reverse else 1]
    types = attrs.body.output_types[attrs.num_carry :]
    return [*carry, *[_stacked(sketch, t, [row[k] for row in rows]) for k, t in enumerate(types)]]


def _while(sketch: Sketch, attrs: object, operands: Sequence[Value]) -> list[Value]:
    _, consts, carry = attrs.split(operands)
    for _ in range(steps_of(attrs.condition)):
        carry = _emitted(sketch, attrs.body.graph, [*consts, *carry])
    return carry


def _cond(sketch: Sketch, attrs: object, operands: Sequence[Value]) -> list[Value]:
    index, *rest = operands
    each = [_emitted(sketch, b.graph, rest) for b in attrs.branches]
    if len(each) == 1:
        return each[0]
    i32 = TensorType("i32")
    number = sketch.apply("convert_element_type", index, new_dtype="i32")
    which = sketch.apply("clamp", sketch.full(0, i32), number, sketch.full(len(each) - 1, i32))
    return [_selected(sketch, which, some) for some in zip(*each, strict=True)]


def _selected(sketch: Sketch, which: Value, values: Sequence[Value]) -> Value:
    if len(values) == 2:
        return _fieldwise(lambda *some: sketch.apply("select_n", sketch.apply("ne", which, 0), *some), *values)
    return _fieldwise(lambda *some: sketch.apply("select_n", which, *some), *values)


def _fieldwise(function: object, *values: Value, type_: object = lambda t: t) -> Value:
    first = values[0]
    if not isinstance(first.type, RecordType):
        return function(*values)
    sketch = first.sketch
    parts = [_fieldwise(function, *[sketch.apply("field", v, name=n) for v in values], type_=type_) for n, _ in first.type.fields]
    return sketch.apply("record", *parts, type=type_(first.type))


def _cut(value: Value, k: int) -> Value:
    def cut(x: Value) -> Value:
        shape = x.type.shape
        row = x.sketch.apply(
            "slice", x, start_indices=(k, *[0] * (len(shape) - 1)), limit_indices=(k + 1, *shape[1:]), strides=(1,) * len(shape)
        )
        return x.sketch.apply("reshape", row, new_sizes=shape[1:])

    if not isinstance(value.type, RecordType):
        return cut(value)
    parts = [_cut(value.sketch.apply("field", value, name=name), k) for name, _ in value.type.fields]
    names = value.type.names
    type_ = RecordType(value.type.name, tuple(zip(names, [p.type for p in parts], strict=True)))
    return value.sketch.apply("record", *parts, type=type_)


def _stacked(sketch: Sketch, type_: Type, rows: Sequence[Value]) -> Value:
    if isinstance(type_, RecordType):
        parts = [_stacked(sketch, t, [sketch.apply("field", row, name=name) for row in rows]) for name, t in type_.fields]
        return sketch.apply("record", *parts, type=of_batch(type_, len(rows)))
    if not rows:
        return sketch.full(0, type_.with_shape((0, *type_.shape)))
    flat = [sketch.apply("reshape", row, new_sizes=(1, *type_.shape)) for row in rows]
    return sketch.apply("concatenate", *flat, dimension=0)
