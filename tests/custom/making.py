"""Own primitives for tests: definitions as plain data, by hand and at random, with derivatives that tidu derives from `forward`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from tests.graphs.sketch import Sketch, Value, document
from tests.graphs.strategies import SMOOTH, Maker, Pool
from tidu_cli.formats.read import parse_document, parse_library
from tidu_cli.graph.graph import CaseTable, Document, Graph
from tidu_cli.graph.keys import Key, key_to_json, parse_key
from tidu_cli.graph.types import TensorType, parse_type
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.vocabulary import PrimitiveSet
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
    values = {o.key: o.value for o in graph.outputs}
    return {
        "inputs": [{"key": key_to_json(i.key)} for i in graph.inputs if i.key in inputs],
        "nodes": [
            {"op": c.op, "inputs": list(graph.operands(n)), "attrs": c.attrs.to_data(binary=False)}
            for n, c in ((n, graph.case(n)) for n in range(graph.n_nodes))
        ],
        "outputs": [{"key": key_to_json(key), "value": values.get(key)} for key in outputs],
    }


KINDS = ("forward", "jvp", "backward", "transpose")
WHOLE = "i64"
"""The dtype of integers that are numbers, whose tangents are f64."""


def may_move(type_: TensorType) -> bool:
    """Whether inputs of a type get tangents in laws."""
    return type_.inexact or type_.dtype == WHOLE


def derived(made: Document, kind: str) -> Data:
    """The definition of a function, a document of one graph, whose `jvp` or `backward` is what tidu derives."""
    graph = made.head
    x, y = [i.key for i in graph.inputs], [o.key for o in graph.outputs]
    data = definition(
        {str(i.key): str(i.type) for i in graph.inputs}, {str(o.key): str(o.type) for o in graph.outputs}, graph_data(graph, x, y)
    )
    moving = [i.key for i in graph.inputs if may_move(i.type)]
    if kind == "forward" or not moving:
        return data
    tangents = linearize(made, moving)
    if kind == "jvp":
        head = materialize(tangents).head
        return data | {"jvp": graph_data(head, [*x, *(k.tangent(1) for k in x)], [k.tangent(1) for k in y])}
    head = materialize(transpose(tangents)).head
    return data | {"backward": graph_data(head, [*x, *(k.cotangent(1) for k in y)], [k.cotangent(1) for k in x])}


def derivative(made: Document) -> Data | None:
    """The definition of the derivative of a function: an op that is linear in its inputs dx, by `transpose`. None if it is zero."""
    wrt = [i.key for i in made.head.inputs if may_move(i.type)]
    moving = [o.key for o, t in zip(made.head.outputs, linearize(made, wrt).head.outputs, strict=True) if t.value is not None]
    if not moving:
        return None
    tangents = linearize(made, wrt, outputs=moving)
    forward, back = materialize(tangents).head, materialize(transpose(tangents)).head
    names = {i.key: Key(f"d{i.key.name}") for i in tangents.head.inputs} | {o.key: Key(f"d{o.key.name}") for o in forward.outputs}
    names |= {key.dual(): name.cotangent(1) for key, name in names.items()}

    def renamed(graph: Graph) -> Graph:
        inputs = tuple(replace(i, key=names.get(i.key, i.key)) for i in graph.inputs)
        return replace(graph, inputs=inputs, outputs=tuple(replace(o, key=names[o.key]) for o in graph.outputs if o.key in names))

    primal = {str(i.key): str(i.type) for i in made.head.inputs}
    moved = {str(names[i.key]): str(i.type) for i in tangents.head.inputs}
    x, dx = [Key(k) for k in primal], [Key(k) for k in moved]
    dy = [names[o.key] for o in forward.outputs]
    return definition(
        primal | moved,
        {str(names[o.key]): str(o.type) for o in forward.outputs},
        graph_data(renamed(forward), [*x, *dx], dy),
        transpose=graph_data(renamed(back), [*x, *(k.cotangent(1) for k in dy)], [k.cotangent(1) for k in dx]),
    )


TYPES = (
    *(TensorType(d, s) for d in ("f64", "c128") for s in ((), (2,), (2, 3))),
    TensorType(WHOLE),
    TensorType(WHOLE, (2,)),
)


def _of_whole(pool: Pool) -> Value | None:
    """A float made of integers, by arithmetic on these or not."""
    n = pool.pick(lambda t: t.dtype == WHOLE)
    m = None if n is None else pool.pick(lambda t: t == n.type)
    if n is None or m is None:
        return None
    if n.bound * m.bound < 64 and pool.draw(st.booleans()):
        op = pool.draw(st.sampled_from(["add", "sub", "mul"]))
        n = pool.apply(op, n, m, bound=n.bound * m.bound if op == "mul" else n.bound + m.bound)
    return pool.apply("convert_element_type", n, new_dtype="f64", bound=n.bound)


MAKERS: tuple[Maker, ...] = (*SMOOTH, _of_whole, _of_whole)


class OwnOp:
    """An own primitive: its definition, types and attrs to use it with, and bounds of its results where operands are below 2."""

    def __init__(
        self, name: str, types: Sequence[TensorType], bounds: Sequence[float], data: Data, attrs: Data | None = None
    ) -> None:
        self.name, self.types, self.data, self.attrs = name, types, data, attrs or {}
        self.bounds = bounds


def _apply(pool: Pool, op: OwnOp) -> None:
    operands = []
    for type_ in op.types:
        value = pool.pick(lambda t, type_=type_: t == type_ and t.dtype != WHOLE)
        value = value or next((v for v in pool.values if v.type == type_ and v.bound <= 2.2), None)
        if value is None:
            return
        operands.append(pool.tame(value, 2) if type_.inexact else value)
    results = pool.sketch.apply_all(op.name, *operands, **op.attrs)
    pool.values += [Value(v.sketch, v.id, v.type, bound) for v, bound in zip(results, op.bounds, strict=True)]


@st.composite
def own_ops(draw, name: str, primitives: PrimitiveSet, known: Sequence[OwnOp] = ()) -> OwnOp:
    """A random op of one to three inputs and one to three outputs, which may use those known."""
    inner = draw(st.sampled_from(known)) if known and draw(st.booleans()) else None
    types = [*inner.types] if inner else draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    cases = CaseTable(primitives)
    sketch = Sketch({f"x{k}": t for k, t in enumerate(types)}, cases=cases, primitives=primitives)
    pool = Pool(draw, sketch, [Value(sketch, v.id, v.type, 2.2) for v in sketch.inputs])
    if any(t.dtype == WHOLE for t in types):
        _of_whole(pool)
    if inner:
        _apply(pool, inner)
    for make in draw(st.lists(st.sampled_from(MAKERS), min_size=0 if inner else 1, max_size=5)):
        make(pool)
    outputs = draw(st.lists(st.sampled_from(pool.values[-3:]), min_size=1, max_size=3))
    made = document(sketch.build(name, {f"y{k}": v for k, v in enumerate(outputs)}))
    kind = draw(st.sampled_from(KINDS))
    data = derivative(made) if kind == "transpose" else None
    if data is None:
        return OwnOp(name, types, [v.bound for v in outputs], derived(made, draw(st.sampled_from(KINDS[:3]))))
    # Its operands dx have the types of tangents. What makes of them is bounded by slopes below 8, as is most of what is made here.
    operands = [parse_type(i["type"]) for i in data["inputs"]]
    return OwnOp(name, operands, [16.0 * len(operands)] * len(data["outputs"]), data)


def general_ops(shape: tuple[int, ...], dtype: str, power: int) -> list[OwnOp]:
    """Ops by hand with type variables and attrs, one for each kind, of two inputs or two outputs, at one shape."""
    two, one = {"x": "T[...]", "w": "T[...]"}, {"y": "T[...]"}
    real = {"x": "f64[...]", "w": "f64[...]"}
    type_, f64 = TensorType(dtype, shape), TensorType("f64", shape)
    number = {"type": "f64[]", "data": [0.5 * power]}
    scaling = [
        ("constant", {"value": {"attr": "c"}}),
        ("broadcast_in_dim", 1, {"shape": {"attr": "shape"}, "broadcast_dimensions": []}),
    ]
    both = body("x w", [("add", 0, 1), ("mul", 0, 1)], {"s": 2, "p": 3})
    turned = {"permutation": {"attr": "order"}}
    return [
        OwnOp("weigh", (type_, type_), [4.0], definition(two, one, body("x w", [("mul", 0, 1)], {"y": 2}), jvp=body(
            "x w x@1 w@1", [("mul", 0, 3), ("mul", 1, 2), ("add", 4, 5)], {"y@1": 6}))),
        OwnOp("raised", (type_,), [2.0**power], unary(body("x", [("integer_pow", 0, {"y": {"attr": "k"}})], {"y": 1}), "T[...]",
              attrs={"k": None}), {"k": power}),
        OwnOp("both", (f64, f64), [4.0, 4.0], definition(real, {"s": "f64[...]", "p": "f64[...]"}, both, backward=body(
            "x w s@-1 p@-1", [("mul", 1, 3), ("add", 2, 4), ("mul", 0, 3), ("add", 2, 6)], {"x@-1": 5, "w@-1": 7}))),
        OwnOp("damped", (f64,), [1.0 * power], unary(body("x", [*scaling, ("sin", 0), ("mul", 2, 3)], {"y": 4}), backward=body(
            "y x y@-1", [("constant", {"value": {"attr": "c"}}),
                         ("broadcast_in_dim", 3, {"shape": {"attr": "shape"}, "broadcast_dimensions": []}),
                         ("cos", 1), ("mul", 4, 5), ("mul", 6, 2)], {"x@-1": 7}),
            attrs={"c": number, "shape": list(shape)}), {"c": number, "shape": list(shape)} if power % 2 else {}),
        OwnOp("applied", (TensorType("f64", (2, 3)), TensorType("f64", (3,))), [12.0], definition(
            {"a": "f64[n,m]", "x": "f64[m]"}, {"y": "f64[n]"},
            body("a x", [("dot_general", 0, 1, {"dimension_numbers": [[[1], [0]], [[], []]]})], {"y": 2}),
            transpose=body("a y@-1", [("dot_general", 0, 1, {"dimension_numbers": [[[0], [0]], [[], []]]})], {"x@-1": 2}))),
        OwnOp("turned", (TensorType("f64", (2, 3)),), [2.0], definition(
            {"x": "f64[n,m]"}, {"y": "f64[m,n]"}, body("x", [("transpose", 0, turned)], {"y": 1}),
            transpose=body("y@-1", [("transpose", 0, turned)], {"x@-1": 1}), attrs={"order": [1, 0]})),
    ]  # fmt: skip


@st.composite
def own_documents(draw) -> Document:
    """A document of one graph that applies own ops: some by hand, and random ones, which may be made of those before."""
    general = draw(st.lists(st.sampled_from(range(6)), unique=True, max_size=2))
    made = general_ops(draw(st.sampled_from(((), (2,), (2, 3)))), draw(st.sampled_from(("f64", "c128"))), draw(st.integers(1, 3)))
    ops: list[OwnOp] = [made[k] for k in general]
    primitives = primitives_of({op.name: op.data for op in ops})
    for name in ("o", "p")[: draw(st.integers(0 if ops else 1, 2))]:
        op = draw(own_ops(name, primitives, ops))
        ops.append(op)
        primitives = primitives_of({op.name: op.data}, primitives)
    cases = CaseTable(primitives)
    # An input for every operand of every op: of linear ones not all shall move.
    types = [t for op in ops for t in op.types]
    sketch = Sketch({f"a{k}": t for k, t in enumerate(types)}, cases=cases, primitives=primitives)
    pool = Pool(draw, sketch, [Value(sketch, v.id, v.type, 2.2) for v in sketch.inputs])
    applying: list[Maker] = [lambda pool, op=op: _apply(pool, op) for op in ops]
    for make in (
        *draw(st.lists(st.sampled_from(MAKERS), max_size=2)),
        *draw(st.lists(st.sampled_from(applying), min_size=1, max_size=3)),
        *draw(st.lists(st.sampled_from(MAKERS), max_size=2)),
    ):
        make(pool)
    outputs = draw(st.lists(st.sampled_from(pool.values[-4:]), min_size=1, max_size=2))
    return document(sketch.build("f", {f"z{k}": v for k, v in enumerate(outputs)}))
