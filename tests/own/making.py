"""Own primitives for tests: definitions as plain data, by hand and at random, with derivatives that tidu derives from `forward`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from tests.sketch import Sketch, Value, document
from tests.strategies import SMOOTH, Maker, Pool
from tidu_cli.documents.read import parse_document, parse_library
from tidu_cli.graph.graph import CaseTable, Document, Graph
from tidu_cli.graph.keys import Key, key_to_json, parse_key
from tidu_cli.graph.types import TensorType
from tidu_cli.primitives.builtin import BUILTIN
from tidu_cli.primitives.contract import PrimitiveSet
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

Data = dict[str, Any]


def body(inputs: str, nodes: Sequence[tuple[Any, ...]], outputs: Mapping[str, int | None]) -> Data:
    """A graph of a definition: `body("x x@1", [("cos", 0), ("mul", 2, 1)], {"y@1": 3})`; attrs come last in a node."""
    listed = []
    for op, *rest in nodes:
        attrs = rest.pop() if rest and isinstance(rest[-1], dict) else {}
        listed.append({"op": op, "inputs": rest, **({"attrs": attrs} if attrs else {})})
    return {
        "inputs": [{"key": key_to_json(parse_key(key))} for key in inputs.split()],
        "nodes": listed,
        "outputs": [{"key": key_to_json(parse_key(key)), "value": value} for key, value in outputs.items()],
    }


def definition(inputs: Mapping[str, str], outputs: Mapping[str, str], forward: Data, **more: Any) -> Data:
    """A definition: ports with their types, `forward`, and what else there is."""
    ports = {kind: [{"key": k, "type": t} for k, t in of.items()] for kind, of in (("inputs", inputs), ("outputs", outputs))}
    return {**ports, "forward": forward, **more}


SINE = body("x", [("sin", 0)], {"y": 1})
COSINE = body("x", [("cos", 0)], {"y": 1})


def unary(forward: Data = SINE, type_: str = "f64[...]", **more: Any) -> Data:
    """A definition of one input x and one output y of one type."""
    return definition({"x": type_}, {"y": type_}, forward, **more)


def using(ops: Data, op: str, *types: str, n_outputs: int = 1, attrs: Data | None = None) -> Data:
    """A document that applies an op once to inputs a, b, ..., with outputs z0, z1, ..."""
    node = {"op": op, "inputs": list(range(len(types))), **({"attrs": attrs} if attrs else {})}
    inputs = [{"key": "abcdef"[k], "type": t} for k, t in enumerate(types)]
    outputs = [{"key": f"z{k}", "value": len(types) + k} for k in range(n_outputs)]
    return {"tidu": 1, "ops": ops, "graphs": [{"name": "f", "inputs": inputs, "nodes": [node], "outputs": outputs}]}


def encoded(data: Data) -> bytes:
    return json.dumps(data).encode()


def read(data: Data) -> Document:
    return parse_document(encoded(data), "test")[0]


def primitives_of(ops: Data, base: PrimitiveSet = BUILTIN) -> PrimitiveSet:
    """`base` with these ops, as a document's own."""
    return parse_library(encoded({"tidu": 1, "ops": ops}), "", base)


def graph_data(graph: Graph, inputs: Sequence[Key], outputs: Sequence[Key]) -> Data:
    """A self-contained graph as one of a definition, which takes what of `inputs` it needs, and gives null for outputs it lacks."""
    found = {o.key: o.value for o in graph.outputs}
    return {
        "inputs": [{"key": key_to_json(i.key)} for i in graph.inputs if i.key in inputs],
        "nodes": [
            {"op": c.op, "inputs": list(graph.operands(n)), "attrs": c.attrs.to_data(binary=False)}
            for n, c in ((n, graph.case(n)) for n in range(graph.n_nodes))
        ],
        "outputs": [{"key": key_to_json(key), "value": found.get(key)} for key in outputs],
    }


def derived(made: Document, kind: str) -> Data:
    """The definition of a function, a document of one graph, whose `jvp` or `backward` is what tidu derives."""
    graph = made.head
    x, y = [i.key for i in graph.inputs], [o.key for o in graph.outputs]
    data = definition(
        {str(i.key): str(i.type) for i in graph.inputs}, {str(o.key): str(o.type) for o in graph.outputs}, graph_data(graph, x, y)
    )
    moving = [i.key for i in graph.inputs if i.type.inexact]
    if kind == "forward" or not moving:
        return data
    tangents = linearize(made, moving)
    if kind == "jvp":
        head = materialize(tangents).head
        return data | {"jvp": graph_data(head, [*x, *(k.tangent(1) for k in x)], [k.tangent(1) for k in y])}
    head = materialize(transpose(tangents)).head
    return data | {"backward": graph_data(head, [*x, *(k.cotangent(1) for k in y)], [k.cotangent(1) for k in x])}


KINDS = ("forward", "jvp", "backward")
TYPES = (*(TensorType(d, s) for d in ("f64", "c128") for s in ((), (2,), (2, 3))), TensorType("i32", (2,)))


class OwnOp:
    """An own primitive made at random: its name, its definition, and bounds of its results where operands are below 2."""

    def __init__(self, name: str, types: list[TensorType], outputs: list[Value], data: Data) -> None:
        self.name, self.types, self.data = name, types, data
        self.bounds = [v.bound for v in outputs]


def _apply(pool: Pool, op: OwnOp) -> None:
    operands = []
    for type_ in op.types:
        value = pool.pick(lambda t, type_=type_: t == type_)
        if value is None:
            return
        operands.append(pool.tame(value, 2) if type_.inexact else value)
    results = pool.sketch.apply_all(op.name, *operands)
    pool.values += [Value(v.sketch, v.id, v.type, bound) for v, bound in zip(results, op.bounds, strict=True)]


@st.composite
def own_ops(draw, name: str, primitives: PrimitiveSet, known: Sequence[OwnOp] = ()) -> OwnOp:
    """A random op of one to three inputs and one to three outputs, which may use those known."""
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3).filter(lambda ts: any(t.inexact for t in ts)))
    cases = CaseTable(primitives)
    sketch = Sketch({f"x{k}": t for k, t in enumerate(types)}, cases=cases, primitives=primitives)
    pool = Pool(draw, sketch, [Value(sketch, v.id, v.type, 2.2) for v in sketch.inputs])
    makers: list[Maker] = [*SMOOTH, *[lambda pool, op=op: _apply(pool, op) for op in known for _ in range(8)]]
    for make in draw(st.lists(st.sampled_from(makers), min_size=1, max_size=5)):
        make(pool)
    outputs = draw(st.lists(st.sampled_from(pool.values[-3:]), min_size=1, max_size=3))
    made = document(sketch.build(name, {f"y{k}": v for k, v in enumerate(outputs)}))
    return OwnOp(name, types, outputs, derived(made, draw(st.sampled_from(KINDS))))


@st.composite
def own_documents(draw) -> Document:
    """A document of one graph that applies random own ops, of which the second may be made of the first."""
    ops: list[OwnOp] = []
    primitives = BUILTIN
    for name in ("o", "p")[: draw(st.integers(1, 2))]:
        op = draw(own_ops(name, primitives, ops))
        ops.append(op)
        primitives = primitives_of({op.name: op.data}, primitives)
    cases = CaseTable(primitives)
    types = list(dict.fromkeys(t for op in ops for t in op.types))
    sketch = Sketch({"abcdefg"[k]: t for k, t in enumerate(types)}, cases=cases, primitives=primitives)
    pool = Pool(draw, sketch, [Value(sketch, v.id, v.type, 2.2) for v in sketch.inputs])
    applying: list[Maker] = [lambda pool, op=op: _apply(pool, op) for op in ops]
    for make in (
        *draw(st.lists(st.sampled_from(SMOOTH), max_size=2)),
        *draw(st.lists(st.sampled_from(applying), min_size=1, max_size=3)),
        *draw(st.lists(st.sampled_from(SMOOTH), max_size=2)),
    ):
        make(pool)
    outputs = draw(st.lists(st.sampled_from(pool.values[-4:]), min_size=1, max_size=2))
    return document(sketch.build("f", {f"z{k}": v for k, v in enumerate(outputs)}))
