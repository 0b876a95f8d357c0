"""Comparing documents: what makes no difference makes none, and whatever does is found and shown where it is."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.graphs.sketch import Sketch, Value, document, function, key, op
from tests.graphs.strategies import ANY, documents, seeds
from tests.tiers import examples
from tidu_cli.checking.comparison import PLACES, Comparison, compare
from tidu_cli.checking.exact_comparison import structural_differences
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Binding, Detached, Document, Externals, Graph, column
from tidu_cli.graph.identity import digests
from tidu_cli.graph.link import Application, Definitions, GraphBuilder, link
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.render.phrases import expression
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.compose import detach
from tidu_cli.transforms.linking.resolve import resolve
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

LAWS = settings(max_examples=examples(60, check=20), suppress_health_check=list(HealthCheck))
sin, cos, exp = op("sin"), op("cos"), op("exp")


def derived(doc: Document) -> Document:
    bound = {b.key for b in doc.bindings}
    wrt = [i.key for g in doc.graphs for i in g.inputs if i.type.inexact and i.key not in bound]
    return transpose(linearize(doc, wrt)) if wrt else doc


def rebuilt(doc: Document, seed: int) -> Document:
    """The document with nodes in another order, some twice with either copy read, and the inputs of graphs reversed."""
    chooser = random.Random(seed)
    copies: list[dict[int, list[int]]] = []  # for each graph, the new ids of old ones
    graphs = []
    for graph in doc.graphs:
        builder = GraphBuilder(doc.cases, reversed(graph.inputs))
        new = {k: [len(graph.inputs) - 1 - k] for k in range(len(graph.inputs))}

        def refer(argument: int, graph: Graph = graph, new=new, builder=builder) -> int:
            if argument >= 0:
                return chooser.choice(new[argument])
            g, v = graph.external.graph[-1 - argument], graph.external.value[-1 - argument]
            return builder.refer(g, v if g == Externals.DETACHED else chooser.choice(copies[g][v]))

        waiting = set(range(graph.n_nodes))
        while waiting:
            ready = [n for n in sorted(waiting) if all(a < 0 or a in new for a in graph.operands(n))]
            node = chooser.choice(ready)
            waiting.remove(node)
            for _ in range(chooser.choice([1, 1, 2, 3])):
                first = builder.append(graph.code[node], [refer(a) for a in graph.operands(node)])
                for slot in range(len(graph.case(node).results)):
                    new.setdefault(graph.firsts[node] + slot, []).append(first + slot)
        copies.append(new)
        outputs = [o if o.value is None else replace(o, value=refer(o.value)) for o in reversed(graph.outputs)]
        graphs.append(builder.build(graph.name, outputs, linear=graph.linear))
    bindings = tuple(Binding(b.key, b.graph, chooser.choice(copies[b.graph][b.value])) for b in doc.bindings)
    return replace(doc, graphs=tuple(graphs), bindings=bindings)


def split(doc: Document, at: int) -> Document:
    """The document of one graph as one of two: its first `at` nodes, and the others."""
    graph = doc.head
    n_args = sum(doc.cases.arity[c] for c in graph.code[:at])
    first = replace(graph, name="before", outputs=(), code=graph.code[:at], args=graph.args[:n_args])
    rest = GraphBuilder(doc.cases, graph.inputs)
    new = {k: k for k in range(len(graph.inputs))} | {v: rest.refer(0, v) for v in range(len(graph.inputs), first.n_values)}
    for node in range(at, graph.n_nodes):
        made = rest.append(graph.code[node], [new[a] for a in graph.operands(node)])
        for slot in range(len(graph.case(node).results)):
            new[graph.firsts[node] + slot] = made + slot
    outputs = [o if o.value is None else replace(o, value=new[o.value]) for o in graph.outputs]
    return replace(doc, graphs=(first, rest.build(graph.name, outputs)))


@LAWS
@given(documents(makers=ANY), seeds)
def test_order_numbering_sharing_dead_nodes_and_format_make_no_difference(doc: Document, seed: int) -> None:
    doc = derived(doc)
    other = rebuilt(doc, seed)
    assert compare(doc, doc).same and compare(doc, other).same and compare(other, doc).same
    assert not list(structural_differences(doc, doc))
    for form, options in (("json", {"types": True}), ("json", {}), ("msgpack", {}), ("msgpack", {"listed": True})):
        read, _ = parse_document(format_document(doc, form, **options), form)
        assert compare(other, read).same
        assert not list(structural_differences(doc, read))


@LAWS
@given(documents(makers=ANY), st.integers(0, 20))
def test_the_split_into_graphs_makes_no_difference(doc: Document, at: int) -> None:
    one = materialize(doc)
    parts = split(one, min(at, one.head.n_nodes))
    assert compare(one, parts).same
    travelled = [
        parse_document(format_document(d, "json"), "part")[0] for d in (replace(parts, graphs=parts.graphs[:1]), detach(parts, 1))
    ]
    assert compare(one, resolve(travelled)).same
    assert any(structural_differences(one, parts))


@pytest.mark.parametrize("what", ["op", "attrs", "role", "operand", "type", "zero", "key"])
@LAWS
@given(doc=documents(makers=ANY), at=st.integers(0, 10**6))
def test_a_single_change_is_found(what: str, doc: Document, at: int) -> None:
    changed = mutated(doc, at, what)
    assume(changed is not None)
    for a, b in ((doc, changed), (changed, doc)):
        comparison = compare(a, b)
        assert not comparison.same
        require_sound(comparison, a, b)
    assert any(structural_differences(doc, changed))


def mutated(doc: Document, at: int, what: str) -> Document | None:
    """The document with one thing changed that an output depends on, if there is such a thing."""
    logical = link(doc)
    if what in ("zero", "key"):
        places = [(g, k) for g, graph in enumerate(doc.graphs) for k, o in enumerate(graph.outputs) if o.value is not None]
        g, k = places[at % len(places)]
        outputs = list(doc.graphs[g].outputs)
        outputs[k] = replace(outputs[k], value=None) if what == "zero" else replace(outputs[k], key=key("another"))
        return with_graph(doc, g, replace(doc.graphs[g], outputs=tuple(outputs)))
    data = json.loads(format_document(doc, "json"))
    if what == "type":
        bound = {str(b.key) for b in doc.bindings}
        free = [i for graph in data["graphs"] for i in graph["inputs"] if i["key"] not in bound]
        if not free:
            return None
        name, type_ = free[at % len(free)]["key"], {"f64": "f32", "c12": "c64"}
        for i in free:
            if i["key"] == name:
                dtype, _, shape = i["type"].partition("[")
                i["type"] = f"{type_[dtype[:3]]}[{shape}"
        for graph in data["graphs"]:
            for output in graph["outputs"]:
                output.pop("type", None)
        try:
            return parse_document(json.dumps(data).encode(), "changed")[0]
        except Exception:  # other types do not go together
            return None
    live = logical.depends_on(
        logical.flat_id(g, o.value) for g, graph in enumerate(doc.graphs) for o in graph.outputs if o.value is not None
    )
    nodes = [
        (g, n)
        for g, graph in enumerate(doc.graphs)
        for n in range(graph.n_nodes)
        if live[logical.base[g] + graph.firsts[n]] and changes(doc, g, n, what)
    ]
    if not nodes:
        return None
    g, n = nodes[at % len(nodes)]
    code, arguments = random.Random(at).choice(changes(doc, g, n, what))
    graph = doc.graphs[g]
    codes, args = column(graph.code), column(graph.args)
    codes[n] = code
    start = sum(doc.cases.arity[c] for c in graph.code[:n])
    args[start : start + len(arguments)] = column(arguments)
    return with_graph(doc, g, replace(graph, code=codes, args=args))


def changes(doc: Document, g: int, n: int, what: str) -> list[tuple[int, list[int]]]:
    """Other codes and arguments for a node, with the same types."""
    graph, digest_of = doc.graphs[g], digests(doc)
    case, arguments = graph.case(n), list(graph.operands(n))
    if what == "operand":
        known = [v for v in range(graph.firsts[n]) if graph.type_of(v) in case.operands]

        def digest(a: int) -> bytes:
            h, v = doc.graphs[g].place(g, a)
            return digest_of[h][v]

        return [
            (graph.code[n], [*arguments[:k], v, *arguments[k + 1 :]])
            for k, a in enumerate(arguments)
            for v in known
            if graph.type_of(v) == case.operands[k] and digest(v) != digest(a)
        ]
    others = []
    if what == "role":
        others = [replace(case, mask=(True,) * len(case.operands))] if case.operands else []
    elif what == "op":
        for name in ("neg", "sin", "cos", "exp", "add", "sub", "mul", "max"):
            try:
                other = BUILTIN.case(name, BUILTIN.parse_attrs(name, {}), case.mask, case.operands)
            except Exception:  # does not take these operands
                continue
            others += [other] if other.op != case.op and other.results == case.results else []
    elif case.op == "integer_pow":
        others = [replace(case, attrs=BUILTIN.parse_attrs(case.op, {"y": case.attrs.y + 7}))]
    elif case.op == "constant":
        flipped = replace(case.attrs.value, data=bytes([case.attrs.value.data[0] ^ 1]) + case.attrs.value.data[1:])
        others = [replace(case, attrs=type(case.attrs)(value=flipped))]
    return [(doc.cases.intern(other), arguments) for other in others]


def with_graph(doc: Document, g: int, graph: Graph) -> Document:
    return replace(doc, graphs=(*doc.graphs[:g], graph, *doc.graphs[g + 1 :]))


def require_sound(comparison: Comparison, a: Document, b: Document) -> None:
    """Places are where both sides differ, and one more step down there is nothing that tells it better."""
    assert bool(comparison.computed) == bool(comparison.places) == bool(comparison.n_places)
    assert len(comparison.places) == min(comparison.n_places, PLACES)
    sides = [(Definitions(d), digests(d)) for d in (a, b)]
    for place in comparison.places:
        if place.a is None or place.b is None:
            assert place.a != place.b
            continue
        x, y = (definitions[p] for (definitions, _), p in zip(sides, (place.a, place.b), strict=True))
        assert sides[0][1][place.a[0]][place.a[1]] != sides[1][1][place.b[0]][place.b[1]]
        both = isinstance(x, Application) and isinstance(y, Application)
        assert bool(place.reason) == (both and x.case.op == y.case.op)


# --- what is told


def told(a: Document, b: Document) -> list[tuple[str, str, str, str]]:
    """Of each place: the output, what A and B have there, and the reason."""
    sides = Definitions(a), Definitions(b)
    return [
        (str(p.key), *("0" if q is None else expression(d, q) for d, q in zip(sides, (p.a, p.b), strict=True)), p.reason)
        for p in compare(a, b).places
    ]


def f(body, **inputs: str) -> Document:
    return function("f", inputs or {"x": "f64[2]", "z": "f64[2]"}, body)


@pytest.mark.parametrize(
    ("one", "other", "place"),
    [
        (lambda x, z: x * (x + x), lambda x, z: x * sin(x), ("add(x, x)", "sin(x)", "")),
        (lambda x, z: x * sin(x), lambda x, z: x * sin(z), ("x", "z", "")),
        (lambda x, z: sin(x), lambda x, z: x, ("sin(x)", "x", "")),
        (lambda x, z: sin(x * z), lambda x, z: sin(z * x), ("mul(x, z)", "mul(z, x)", "order of operands")),
        (lambda x, z: x * 2.0, lambda x, z: x * 3.0, ("2: f64[]", "3: f64[]", "attrs")),
        (
            lambda x, z: x.sketch.apply("mul", x, z, mask=(True, False)),
            lambda x, z: x.sketch.apply("mul", x, z, mask=(False, True)),
            ("mul(*x, z)", "mul(x, *z)", "role"),
        ),
        (
            lambda x, z: x.sketch.apply("concatenate", x, z, dimension=0),
            lambda x, z: x.sketch.apply("concatenate", x, z, x, dimension=0),
            ("concatenate[dimension=0](x, z)", "concatenate[dimension=0](x, z, x)", "number of operands"),
        ),
        (
            lambda x, z: x.sketch.apply_all("split", x, sizes=[1, 1], axis=0)[0],
            lambda x, z: x.sketch.apply_all("split", x, sizes=[1, 1], axis=0)[1],
            ("split[sizes=[1, 1], axis=0](x)[0]", "split[sizes=[1, 1], axis=0](x)[1]", "result"),
        ),
    ],
)
def test_the_smallest_parts_that_differ_are_told(one, other, place) -> None:
    assert told(f(one), f(other)) == [("y", *place)]


def test_a_value_may_differ_from_several() -> None:
    places = told(f(lambda x: sin(x) * sin(x), x="f64[]"), f(lambda x: cos(x) * exp(x), x="f64[]"))
    assert places == [("y", "sin(x)", "cos(x)", ""), ("y", "sin(x)", "exp(x)", "")]


def test_a_long_difference_is_cut_short() -> None:
    def deep(inner):
        def body(x: Value) -> Value:
            for _ in range(100):
                x = x * sin(x)
            return inner(x)

        return body

    ((_, a, b, _),) = told(f(deep(exp), x="f64[]"), f(deep(cos), x="f64[]"))
    assert (a, b) == ("exp(mul(mul(..., ...), sin(...)))", "cos(mul(mul(..., ...), sin(...)))")


def test_the_walk_takes_no_more_steps_than_there_are_values() -> None:
    # Each level of A pairs with each of B: n^2 pairs, were all of them followed.
    def levels(n: int, start) -> Document:
        def body(x: Value) -> Value:
            a, b = start(x), x
            for _ in range(n):
                a, b = a + b, b * a
            return a

        return f(body, x="f64[]")

    comparison = compare(levels(3000, sin), levels(3001, cos))
    assert not comparison.same and 1 <= comparison.n_places <= 4 * 3001


def test_a_zero_differs_from_a_value() -> None:
    doc = f(lambda x, z: x)
    zero = with_graph(doc, 0, replace(doc.head, outputs=(replace(doc.head.outputs[0], value=None),)))
    assert told(doc, zero) == [("y", "x", "0", "")]
    assert compare(zero, zero).same


def test_inputs_outputs_and_their_types() -> None:
    a = f(lambda x: {"y": x, "u": x}, x="f64[2]")
    b = f(lambda x, z: {"y": x, "v": x}, x="f64[3]", z="f64[]")
    comparison = compare(a, b)
    assert comparison.inputs_only == ((), (key("z"),)) and comparison.outputs_only == ((key("u"),), (key("v"),))
    assert [(str(d.of), str(d.a), str(d.b)) for d in (*comparison.input_types, *comparison.output_types)] == [
        ("x", "f64[2]", "f64[3]"),
        ("y", "f64[2]", "f64[3]"),
    ]
    assert comparison.computed == ()


def test_values_are_counted_by_op_and_once_each() -> None:
    comparison = compare(f(lambda x, z: sin(x) * sin(x) + cos(z)), f(lambda x, z: sin(x) + cos(z)))
    assert comparison.shared == 2
    assert comparison.values_only == ({"add": 1, "mul": 1}, {"add": 1})


def test_a_bound_input_is_its_value() -> None:
    inner = function("f", {"x": "f64[]"}, sin)
    outer = Sketch({"t": "f64[]"}, cases=inner.cases, number=1)
    bound = document(inner.head, outer.build("g", {"z": exp(outer.inputs[0])}), bindings=(Binding(key("t"), 0, 1),))
    composed = function("h", {"x": "f64[]"}, lambda x: {"y": sin(x), "z": exp(sin(x))})
    assert compare(bound, composed).same
    assert told(bound, function("h", {"x": "f64[]"}, lambda x: {"y": sin(x), "z": exp(cos(x))})) == [("z", "sin(x)", "cos(x)", "")]


def test_detached_values_compare_by_digest() -> None:
    doc = linearize(f(lambda x: sin(x) * x, x="f64[]"), [key("x")])
    cut = detach(doc, 1)
    assert compare(cut, cut).same
    rest = replace(doc, graphs=doc.graphs[1:])
    comparison = compare(cut, doc)
    assert comparison.inputs_only == ((), (key("x"),)) and comparison.outputs_only == ((), (key("y"),)) and rest.graphs
    assert comparison.computed == () and not comparison.value_types
    other = replace(cut, detached=tuple(Detached("sha256:" + "7" * 64, d.type) for d in cut.detached[:1]) + cut.detached[1:])
    assert [a for _, a, _, _ in told(cut, other)] != [] and not compare(cut, other).same


def test_types_that_only_a_detached_reference_hides() -> None:
    def of(n: int) -> Document:
        row = {"op": "reduce_sum", "inputs": [0], "attrs": {"axes": [0]}}
        hidden = {"op": "sin", "inputs": ["sha256:" + "0" * 64], "types": [f"f64[{n}]"]}
        graph = {"name": "f", "inputs": [], "nodes": [hidden, row], "outputs": [{"key": "y", "value": 1}]}
        return parse_document(json.dumps({"tidu": 1, "graphs": [graph]}).encode(), "given")[0]

    (differ,) = compare(of(2), of(3)).value_types
    assert (str(differ.a), str(differ.b)) == ("f64[2]", "f64[3]")
    assert not compare(of(2), of(3)).same and compare(of(2), of(2)).same


def test_outputs_of_one_key_are_matched_from_the_latest() -> None:
    first = function("f", {"x": "f64[]"}, sin)
    second = Sketch({"x": "f64[]"}, cases=first.cases, number=1)
    both = document(first.head, second.build("g", {"y": cos(second.inputs[0])}))
    assert compare(both, both).same
    comparison = compare(both, function("g", {"x": "f64[]"}, cos))
    assert (comparison.computed, comparison.outputs_only) == ((), ((key("y"),), ()))


def test_structure_to_the_letter() -> None:
    one = f(lambda x, z: sin(x) * z)
    assert list(structural_differences(one, rebuilt(one, 0)))
    graph = one.head
    for other, line in (
        (replace(one, meta={"a": 1}), "the meta of the document differs"),
        (with_graph(one, 0, replace(graph, name="g")), "graph 0 is 'f' in A, 'g' in B"),
        (with_graph(one, 0, replace(graph, meta={"a": 1})), "graph 0 'f': its meta differs"),
        (with_graph(one, 0, replace(graph, node_meta={1: {"a": 1}})), "graph 0 'f': the meta of node 1 differs"),
        (
            with_graph(one, 0, replace(graph, inputs=(replace(graph.inputs[0], meta={"a": 1}), graph.inputs[1]))),
            "graph 0 'f': the meta of input 'x' differs",
        ),
        (f(lambda x, z: cos(x) * z), "graph 0 'f': node 0 (sin) has op cos in B"),
        (f(lambda x, z: z * sin(x)), "graph 0 'f': node 1 (mul) has other inputs in B"),
        (replace(one, bindings=(Binding(key("x"), 0, 1),)), "the binding of input 'x' differs"),
        (document(graph, replace(graph, name="g")), "A has 1 graph, B has 2 graphs"),
    ):
        assert list(structural_differences(one, other)) == [line]
