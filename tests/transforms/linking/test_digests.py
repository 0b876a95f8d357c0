"""Digests against an independent computation of what `docs/format.md` specifies, and what tells values apart."""

from __future__ import annotations

import hashlib

import msgpack
from hypothesis import HealthCheck, given, settings

from tests.graphs.sketch import Sketch, Value, document, function, key, op
from tests.graphs.strategies import ANY, documents
from tests.tiers import examples
from tidu_cli.graph.graph import Binding, Document, Externals
from tidu_cli.graph.identity import digest_text, digests
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import literal_from_numbers
from tidu_cli.graph.types import parse_type
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.compose import detach
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

X = key("x")
sin, exp = op("sin"), op("exp")


def sha(value: object) -> bytes:
    return hashlib.sha256(msgpack.packb(value)).digest()


def attrs_of(data: object) -> object:
    if isinstance(data, dict):
        return dict(sorted((k, attrs_of(v)) for k, v in data.items()))
    return [attrs_of(v) for v in data] if isinstance(data, list) else data


def recomputed(doc: Document) -> list[list[bytes]]:
    bound = {b.key: (b.graph, b.value) for b in doc.bindings}
    out: list[list[bytes]] = []
    for graph in doc.graphs:
        values = []
        for i in graph.inputs:
            if i.key in bound:
                g, v = bound[i.key]
                values.append(out[g][v])
            else:
                values.append(sha(["input", i.key.name, list(i.key.path)]))
        for n in range(graph.n_nodes):
            operands = []
            for a in graph.operands(n):
                g, v = (graph.external.graph[-1 - a], graph.external.value[-1 - a]) if a < 0 else (None, a)
                detached = g == Externals.DETACHED
                operands.append(values[v] if g is None else bytes.fromhex(doc.detached[v].digest[7:]) if detached else out[g][v])
            case = graph.case(n)
            mask = None if case.mask is None else list(case.mask)
            attrs = attrs_of(case.attrs.to_data(binary=True))
            values += [sha(["node", case.op, attrs, mask, operands, slot]) for slot in range(len(case.results))]
        out.append(values)
    return out


@settings(max_examples=examples(60, check=33), suppress_health_check=list(HealthCheck))
@given(documents(makers=ANY))
def test_digests_are_what_the_specification_says(doc: Document) -> None:
    wrt = [i.key for g in doc.graphs for i in g.inputs if i.type.inexact and i.key not in {b.key for b in doc.bindings}]
    derived = transpose(linearize(doc, wrt))
    for d in (doc, derived, detach(derived, len(doc.graphs)), materialize(derived)):
        assert digests(d) == recomputed(d)


def test_a_digest_by_hand() -> None:
    """f(x) = x + x: the encodings, byte by byte."""
    doc = function("f", {"x": "f64[]"}, lambda x: x + x)
    x = hashlib.sha256(b"\x93\xa5input\xa1x\x90").digest()
    total = hashlib.sha256(b"\x96\xa4node\xa3add\x80\xc0\x92\xc4\x20" + x + b"\xc4\x20" + x + b"\x00").digest()
    assert digests(doc) == [[x, total]]
    assert digest_text(total) == "sha256:" + total.hex()


def test_tangents_and_cotangents_of_inputs() -> None:
    keys = [key(k) for k in ("x", "y", "x@1", "x@-1", "x@1@2", "x@2@1", "x@-1@2", "x@@1", "x@70000", "é")]
    doc = document(Sketch(dict.fromkeys(keys, "f64[]")).build("f", {}))
    (hashes,) = digests(doc)
    assert len(set(hashes)) == len(keys)
    assert hashes[6] == sha(["input", "x", [-1, 2]])
    assert hashes[7] == sha(["input", "x@1", []])
    # The type of an input is no part of its identity: one key is one input.
    assert digests(document(Sketch({"x": "c64[3]"}).build("f", {})))[0][0] == hashes[0]


def test_whatever_distinguishes_nodes_distinguishes_digests() -> None:
    s = Sketch({"x": "f64[2,2]", "y": "f64[2,2]"})
    x, y = s.inputs

    def constant(type_: str, *numbers: object) -> Value:
        return s.apply("constant", value=literal_from_numbers(parse_type(type_), list(numbers)))

    s.apply("add", x, y)
    s.apply("add", y, x)
    s.apply("mul", x, y)
    s.apply("mul", x, y, mask=(True, False))
    s.apply("mul", x, y, mask=(False, True))
    s.apply("mul", x, y, mask=(False, False))
    s.apply("reduce_sum", x, axes=[0])
    s.apply("reduce_sum", x, axes=[1])
    s.apply("dot_general", x, y, dimension_numbers=(([1], [0]), ([], [])))
    s.apply("dot_general", x, y, dimension_numbers=(([], []), ([1], [0])))
    s.apply("dot_general", x, y, dimension_numbers=(([1], [0]), ([], [])), preferred_element_type="f64")
    s.apply("dot_general", x, y, dimension_numbers=(([1], [0]), ([], [])), preferred_element_type="f32")
    for type_, numbers in (
        ("f64[]", [0.0]), ("f64[]", [-0.0]), ("f64[]", ["NaN"]), ("f32[]", [0.0]), ("i64[]", [0]), ("c64[]", [0.0, 0.0]),
        ("f64[1]", [0.0]), ("f64[2]", [1.0, 2.0]), ("f64[2]", [2.0, 1.0]), ("f64[2,0]", []), ("f64[0,2]", []),
    ):  # fmt: skip
        constant(type_, *numbers)
    (hashes,) = digests(document(s.build("f", {})))
    assert len(set(hashes)) == len(hashes)


def test_an_attr_at_its_default_is_an_attr_left_out() -> None:
    s = Sketch({"x": "f64[2]"})
    (x,) = s.inputs
    plain = s.apply("dot_general", x, x, dimension_numbers=(([0], [0]), ([], [])))
    stated = s.apply("dot_general", x, x, dimension_numbers=[[[0], [0]], [[], []]], preferred_element_type=None)
    doc = document(s.build("f", {"a": plain, "b": stated}))
    assert digests(doc)[0][1] == digests(doc)[0][2]
    assert materialize(doc).head.n_nodes == 1


def test_slots_tell_the_results_of_a_node_apart() -> None:
    from tests.transforms.test_linearize import extended, rotation

    def body(x: Value) -> dict[str, Value]:
        p, q = x.sketch.apply_all("rotate", x, x)
        return {"p": p, "q": q}

    doc = function("f", {"x": "f64[]"}, body, primitives=extended(rotation()))
    assert digests(doc) == recomputed(doc)
    assert len(set(digests(doc)[0])) == 3


def test_equal_structure_has_equal_digests_across_documents_and_graphs() -> None:
    f = function("f", {"x": "f64[]"}, lambda x: exp(sin(x)))
    g = function("other", {"unused": "f64[]", "x": "f64[]"}, lambda _, x: {"z": exp(sin(x)), "w": sin(x)})
    assert set(digests(f)[0]) <= set(digests(g)[0])
    split = Sketch({}, cases=f.cases, number=1)
    doc = document(f.head, split.build("g", {"z": exp(Value(split, split.builder.refer(0, 1), f.head.inputs[0].type))}))
    assert digests(doc)[1][0] == digests(doc)[0][2]


def test_a_bound_input_has_the_digest_of_what_it_is_bound_to() -> None:
    f = function("f", {"x": "f64[]"}, sin)
    g = Sketch({"t": "f64[]"}, cases=f.cases, number=1)
    doc = document(f.head, g.build("g", {"z": exp(g.inputs[0])}), bindings=(Binding(key("t"), 0, 1),))
    composed = function("h", {"x": "f64[]"}, lambda x: exp(sin(x)))
    assert digests(doc)[1] == digests(composed)[0][1:]


def test_materialize_merges_just_what_has_one_digest() -> None:
    f = function("f", {"x": "f64[]"}, lambda x: {"u": exp(x) * exp(x), "v": exp(x) + x})
    derived = transpose(linearize(f, [X]))
    outputs = [Key("u"), Key("v"), Key("x", (-1,))]
    needed = set(digests(materialize(derived, outputs=outputs))[0])
    assert needed <= {d for values in digests(derived) for d in values}
    assert len(needed) == materialize(derived, outputs=outputs).head.n_values
