"""Views of record types: tangents by properties convert from and to those by fields, linearly, and cotangents by the adjoints."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidu_cli
from tests.custom.making import body, definition, graph_data, using
from tests.graphs.interpret import evaluate
from tests.tiers import examples
from tidu_cli.checking.exact_comparison import structural_differences
from tidu_cli.errors import DocumentError, EvaluationError, TransformError, TypeRuleError
from tidu_cli.formats.read import parse_document, parse_library
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import parse_key
from tidu_cli.graph.text import parse_value_type
from tidu_cli.lax.records.joining import conversion_kernel
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.recording.conversion import converted, converted_cotangent
from tidu_cli.transforms.batch import vectorized
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.resolve import resolve
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

P, Y = parse_key("p"), parse_key("y")


def graph(takes, nodes, gives):
    """A graph of a view; `nodes` are (op, inputs, attrs)."""
    return {
        "inputs": [{"key": key, "type": type_} for key, type_ in takes.items()],
        "nodes": [{"op": op, "inputs": inputs, **({"attrs": attrs} if attrs else {})} for op, inputs, attrs in nodes],
        "outputs": [{"key": key, "value": value} for key, value in gives.items()],
    }


def matrix(rows):
    return "constant", [], {"value": {"type": f"f64[{len(rows)},{len(rows[0])}]", "data": [float(x) for row in rows for x in row]}}


DOT = {"dimension_numbers": [[[1], [0]], [[], []]]}
I = "constant", [], {"value": {"type": "c128[]", "data": [0, 1]}}  # noqa: E741
TO_HOURS, TO_MS = (("convert_element_type", [1], {"new_dtype": f"duration[{unit}]"}) for unit in ("h", "ms"))
FIELDS = {"a": "f64[2]", "t": "duration[ms][]", "z": "c128[]"}
PROPERTIES = {"s": "f64[2]", "late": "duration[h][]", "w": "c128[]"}


def pair(forward, back):
    """The type Pair, with a view: s = forward · a, late = t in hours, w = i z; and back."""
    turned = [I, ("mul", [2, 4], {})], [I, ("mul", [2, 4], {}), ("neg", [5], {})]
    maps = [
        graph(takes, [unit, *turn, matrix(m), ("dot_general", [4 + len(turn), 0], DOT)], dict(zip(gives, values, strict=True)))
        for takes, gives, unit, turn, m, values in (
            (FIELDS, PROPERTIES, TO_HOURS, turned[0], forward, (7, 3, 5)),
            (PROPERTIES, FIELDS, TO_MS, turned[1], back, (8, 3, 6)),
        )
    ]
    view = {"properties": {**PROPERTIES, "late": "duration[h]"}, "from_fields": maps[0], "to_fields": maps[1]}
    return {"fields": {"a": "f64[2]", "on": "bool[]", "t": "datetime[ms][]", "z": "c128[]"}, "views": {"turned": view}}


def copied(type_, name="f", **types):
    """y = p."""
    head = {"name": name, "inputs": [{"key": "p", "type": type_}], "nodes": [], "outputs": [{"key": "y", "value": 0}]}
    return {"tidu": 1, "types": types, "graphs": [head]}


def read(data):
    return parse_document(json.dumps(data).encode(), "a.json")[0]


POINT = {"x": "f64[]", "y": "f64[]"}


def as_one(name, type_):
    """A view of x and y as one property, which is a record of another type."""
    whole, parts = f"{type_}{{x: f64[], y: f64[]}}", [("field", [0], {"name": field}) for field in "xy"]
    return {
        "properties": {name: type_},
        "from_fields": graph(POINT, [("record", [0, 1], {"type": whole})], {name: 2}),
        "to_fields": graph({name: whole}, parts, {"x": 1, "y": 2}),
    }


PAIR = pair([[1, 2], [3, 5]], [[-5, 2], [3, -1]])
DOCUMENT = read(copied("Pair", Pair=PAIR))


def type_of(text, document=DOCUMENT):
    return parse_value_type(text, vocabulary(document.cases).records)


NATURAL = "Pair{a: f64[2], t: duration[ms][], z: c128[]}"
VIEWED = "Pair{s: f64[2], late: duration[h][], w: c128[]}"

numbers = st.integers(-9, 9).map(float)
values = st.tuples(
    st.tuples(numbers, numbers).map(np.array), numbers.map(np.float64), st.builds(complex, numbers, numbers).map(np.complex128)
)
whole = st.integers(-5, 5)
matrices = st.lists(st.lists(whole, min_size=2, max_size=2), min_size=2, max_size=2)


def kernel(given_type, wanted, convert=converted, document=DOCUMENT):
    return conversion_kernel(np, type_of(given_type, document), type_of(wanted, document), convert)


def inner(x, y):
    return sum(float(np.real(np.sum(np.conj(a) * b))) for a, b in zip(x, y, strict=True) if a is not None and b is not None)


def same(x, y):
    for a, b in zip(x, y, strict=True):
        np.testing.assert_allclose(np.asarray(a, complex), np.asarray(b, complex), rtol=1e-13, atol=1e-13)


@settings(deadline=None, max_examples=examples(60))
@given(matrices, matrices, values, values, numbers)
def test_conversions_are_linear_and_those_of_cotangents_their_adjoints(forward, back, x, y, c):
    """Whatever the maps are, also where one is not the inverse of the other."""
    document = read(copied("Pair", Pair=pair(forward, back)))
    for one, other in ((NATURAL, VIEWED), (VIEWED, NATURAL)):
        convert = kernel(one, other, document=document)
        same(
            convert(tuple(a + c * b for a, b in zip(x, y, strict=True))),
            [a + c * b for a, b in zip(convert(x), convert(y), strict=True)],
        )
        pulled = kernel(other, one, converted_cotangent, document)
        np.testing.assert_allclose(inner(convert(x), y), inner(x, pulled(y)), rtol=1e-12, atol=1e-9)


@settings(deadline=None, max_examples=examples(40))
@given(values)
def test_one_way_and_back_is_the_identity_where_the_maps_are_inverses(x):
    for one, other in ((NATURAL, VIEWED), (VIEWED, NATURAL)):
        for convert in (converted, converted_cotangent):
            same(kernel(other, one, convert)(kernel(one, other, convert)(x)), x)


def test_the_maps_are_those_that_are_declared():
    tangent = kernel(NATURAL, VIEWED)((np.array([1.0, 10.0]), np.float64(7_200_000), np.complex128(3)))
    same(tangent, [[21, 53], 2, 3j])


def test_properties_in_other_types_that_they_admit():
    tangent = kernel("Pair{s: f32[2], late: duration[m][], w: c64[]}", NATURAL)(
        (np.array([21, 53], np.float32), np.float64(120), np.complex64(3j))
    )
    same(tangent, [[1, 10], 7_200_000, 3])


@settings(deadline=None, max_examples=examples(40))
@given(values, values)
def test_sums_of_tangents_in_both_forms_are_natural(x, y):
    primitives = vocabulary(DOCUMENT.cases)
    for op, convert in (("add", converted), ("add_cotangents", converted_cotangent)):
        case = primitives.case(op, primitives.parse_attrs(op, {}), None, [type_of(VIEWED), type_of(NATURAL)])
        assert case.results == (type_of(NATURAL),)
        total = primitives[op].evaluation.kernel(np, case.attrs, case.operands, case.results)(x, y)
        same(total, [a + b for a, b in zip(kernel(VIEWED, NATURAL, convert)(x), y, strict=True)])


def sum_document():
    """y = u + v, of tangents in both forms."""
    head = {
        "name": "f",
        "inputs": [{"key": "u", "type": VIEWED}, {"key": "v", "type": NATURAL}],
        "nodes": [{"op": "add", "inputs": [0, 1]}],
        "outputs": [{"key": "y", "value": 2}],
    }
    return read({"tidu": 1, "types": {"Pair": PAIR}, "graphs": [head]})


def run(document, **given):
    return evaluate(document, {parse_key(k): v for k, v in given.items()}, primitives=vocabulary(document.cases))


def stack(*records):
    return tuple(np.stack(parts) for parts in zip(*records, strict=True))


@settings(deadline=None, max_examples=examples(20))
@given(st.lists(values, min_size=2, max_size=2), values, values)
def test_derivatives_and_batches_of_sums_in_both_forms(us, v, ct):
    document, u = sum_document(), parse_key("u")
    y = [run(document, u=x, v=v)[Y] for x in us]
    graph, _ = vectorized(document.head, {u}, 2, vocabulary(document.cases))
    total = run(Document((graph,), graph.cases), u=stack(*us), v=v)[Y]
    same(total, stack(*y))
    linear = linearize(document, [u, parse_key("v")])
    tangents = {"u@1": us[0], "v@1": v}
    same(run(linear, **tangents)[Y.tangent(1)], y[0])
    pulled = run(transpose(linear), **{"y@-1": ct})
    np.testing.assert_allclose(
        inner(run(linear, **tangents)[Y.tangent(1)], ct),
        inner(us[0], pulled[u.cotangent(1)]) + inner(v, pulled[parse_key("v@-1")]),
        rtol=1e-12,
        atol=1e-9,
    )


def test_derivatives_by_properties_are_those_by_fields_converted():
    for chosen in (None, VIEWED):
        linear = linearize(DOCUMENT, [P], tangent_types={P: type_of(chosen)} if chosen else None)
        assert str(linear.head.inputs[0].type) == (chosen or NATURAL)
    x = (np.array([21.0, 53.0]), np.float64(2), np.complex128(3j))
    on = {"p": (np.array([0.0, 0.0]), np.bool_(True), np.int64(0), np.complex128(0))}
    tangent = run(linear, **on, **{"p@1": x})[Y.tangent(1)]
    same(tangent, [[1, 10], 7_200_000, 3])
    ct = (np.array([1.0, 2.0]), np.float64(3), np.complex128(4))
    same(run(transpose(linear), **on, **{"y@-1": ct})[P.cotangent(1)], kernel(NATURAL, VIEWED, converted_cotangent)(ct))


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("format_", ["json", "msgpack"])
def test_views_come_back_from_files(format_, listed):
    linear = linearize(DOCUMENT, [P], tangent_types={P: type_of(VIEWED)})
    data = format_document(linear, format_, listed=listed)
    back = parse_document(data, "a")[0]
    assert format_document(back, format_, listed=listed) == data
    assert vocabulary(back.cases).records == vocabulary(DOCUMENT.cases).records
    assert [i.type for i in back.head.inputs] == [i.type for i in linear.head.inputs]
    assert format_document(materialize(back), "json") == format_document(materialize(linear), "json")


@given(values, values)
@settings(deadline=None, max_examples=examples(20))
def test_differences_and_moves_by_properties_are_those_by_fields(x, y):
    x, y = ((a, np.bool_(True), np.int64(t), z) for a, t, z in (x, y))
    head = {
        "name": "f",
        "inputs": [{"key": k, "type": "Pair"} for k in "xy"],
        "nodes": [
            {"op": "difference", "inputs": [0, 1]},
            {"op": "difference", "inputs": [0, 1], "attrs": {"tangent": VIEWED}},
            {"op": "retract", "inputs": [1, 3]},
        ],
        "outputs": [{"key": k, "value": v} for k, v in (("d", 2), ("e", 3), ("back", 4))],
    }
    document = read({"tidu": 1, "types": {"Pair": PAIR}, "graphs": [head]})
    d, e, back = (parse_key(k) for k in ("d", "e", "back"))
    results = run(document, x=x, y=y)
    same(results[e], kernel(NATURAL, VIEWED)(results[d]))
    same(results[back], x)
    graph, _ = vectorized(document.head, {parse_key("x")}, 2, vocabulary(document.cases))
    many = run(Document((graph,), graph.cases), x=stack(x, y), y=y)
    for k, item in enumerate((x, y)):
        for key, one in run(document, x=item, y=y).items():
            same([part[k] for part in many[key]], one)
    # Along a tangent of x by fields, d moves by it, e by its properties, and back along with x.
    linear = linearize(document, [parse_key("x")])
    moved = run(linear, x=x, y=y, **{"x@1": results[d]})
    same(moved[e.tangent(1)], results[e])
    same(moved[back.tangent(1)], results[d])


def test_a_record_in_a_record_chooses_for_itself():
    document = read(copied("Trip", Trip={"p": "Pair", "n": "f64[]"}, Pair=PAIR))
    viewed = type_of(f"Trip{{p: {VIEWED}}}", document)
    linear = linearize(document, [P], tangent_types={P: viewed})
    x = (np.array([21.0, 53.0]), np.float64(2), np.complex128(3j))
    tangent = run(linear, **{"p@1": (x,)})[Y.tangent(1)]
    same(tangent[0], [[1, 10], 7_200_000, 3])


@pytest.mark.parametrize("kind", ["jvp", "backward"])
def test_rules_of_own_ops_may_give_tangents_and_cotangents_by_properties(kind):
    """y = p, by a jvp that gives y@1 by properties, or a backward that gives p@-1 so."""
    if kind == "jvp":
        view = PAIR["views"]["turned"]["from_fields"]
        taken = [("field", 0, {"name": i["key"]}) for i in view["inputs"]]
        nodes = [(n["op"], *[1 + a for a in n["inputs"]], n.get("attrs", {})) for n in view["nodes"]]
        made = "record", *[1 + o["value"] for o in view["outputs"]], {"type": VIEWED}
        rule = body("p@1", [*taken, *nodes, made], {"y@1": 1 + len(taken) + len(nodes)})
    else:
        adjoint = transpose(linearize(DOCUMENT, [P], tangent_types={P: type_of(VIEWED)}))
        rule = graph_data(materialize(adjoint, needed_inputs=True).head, [Y.cotangent(1)], [P.cotangent(1)])
    own = definition({"p": "Pair"}, {"y": "Pair"}, body("p", [], {"y": 0}), **{kind: rule})
    document = read({**using({"o": own}, "o", "Pair"), "types": {"Pair": PAIR}})
    linear = linearize(document, [parse_key("a")])
    x = (np.array([1.0, 10.0]), np.float64(7_200_000), np.complex128(3))
    at = (x[0], np.bool_(True), np.int64(0), x[2])
    same(run(linear, a=at, **{"a@1": x})[parse_key("z0@1")], x)
    same(run(transpose(linear), a=at, **{"z0@-1": x})[parse_key("a@-1")], x)


@pytest.mark.parametrize("batched", [("x",), ("u",), ("x", "u")])
def test_moves_in_batches(batched):
    """Values, tangents by properties, or both are many."""
    nodes = [{"op": "retract", "inputs": [0, 1]}]
    inputs = [{"key": "x", "type": "Pair"}, {"key": "u", "type": VIEWED}]
    head = {"name": "f", "inputs": inputs, "nodes": nodes, "outputs": [{"key": "y", "value": 2}]}
    document = read({"tidu": 1, "types": {"Pair": PAIR}, "graphs": [head]})
    x = [(np.array([k, 1.0]), np.bool_(True), np.int64(k), np.complex128(k)) for k in (1, 2)]
    u = [(np.array([3.0, k]), np.float64(k), np.complex128(1j)) for k in (1, 2)]
    graph, _ = vectorized(document.head, {parse_key(k) for k in batched}, 2, vocabulary(document.cases))
    given = {k: stack(*many) if k in batched else many[0] for k, many in (("x", x), ("u", u))}
    moved = run(Document((graph,), graph.cases), **given)[Y]
    for k in range(2):
        one = run(document, x=x[k if "x" in batched else 0], u=u[k if "u" in batched else 0])[Y]
        same([part[k] for part in moved], one)


def test_a_document_brings_the_types_that_views_of_a_library_name():
    types = {"Idle": POINT, "Place": POINT, "Spot": {"fields": POINT, "views": {"placed": as_one("place", "Place")}}}
    library = parse_library(json.dumps({"tidu": 1, "types": types}).encode(), "lib.json")
    document = parse_document(json.dumps(copied("Spot") | {"types": {}}).encode(), "a.json", library)[0]
    written = json.loads(format_document(document, "json"))
    assert list(written["types"]) == ["Place", "Spot"]
    assert read(written).head.inputs == document.head.inputs


SWAP = {
    "properties": {"u": "f64[]", "v": "f64[]"},
    "from_fields": graph(POINT, [], {"u": 1, "v": 0}),
    "to_fields": graph({"u": "f64[]", "v": "f64[]"}, [], {"x": 1, "y": 0}),
}


def swapped(**changed):
    return {"fields": POINT, "views": {"swap": {**SWAP, **changed}}}


def from_fields(nodes, u, v=0, takes=POINT):
    return swapped(from_fields=graph(takes, nodes, {"u": u, "v": v}))


ONE = "constant", [], {"value": {"type": "f64[]", "data": [1.0]}}
ZERO = "constant", [], {"value": {"type": "f64[]", "data": [0.0]}}


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ({"fields": POINT}, "type 'Point': with 'fields' as an object, 'views' must stand beside it, an object of at least one"),
        ({"fields": POINT, "views": {}}, "'views' must stand beside it"),
        ({"fields": POINT, "views": {"swap": SWAP}, "x": "f64[]"}, "'views' must stand beside it"),
        ({"fields": POINT, "views": {"2": SWAP}}, "a field cannot be called '2'"),
        ({"fields": {"x": 1}, "views": {"swap": SWAP}}, "type 'Point', field 'x': a type is text"),
        (swapped(properties={}), "type 'Point', view 'swap': its from_fields gives u: f64[]; v: f64[], where nothing is due"),
        (swapped(properties={"u": "f64[]", "x": "f64[]"}), "view 'swap': a field is called 'x', too"),
        (swapped(properties={"u": "f64[]", "v": "bool[]"}), "'v' has type bool[], whose only tangent is zero; leave it out"),
        (swapped(properties={"u": "f64[]", "2": "f64[]"}), "property '2': a field cannot be called '2'"),
        (swapped(properties={"u": "f64[2]", "v": "f64[]"}), "gives u: f64[]; v: f64[], where u: f64[2]; v: f64[] is due"),
        (swapped(properties={"u": "Point", "v": "f64[]"}), "type 'Point': is of Point; a record type cannot be a part of itself"),
        ({"fields": POINT, "views": {"swap": SWAP, "again": SWAP}}, "property 'u': the view 'swap' has a property of this name"),
        (from_fields([], 1, takes={"x": "f64[]", "y": "f64[]", "z": "f64[]"}), "takes x: f64[]; y: f64[]; z: f64[], where"),
        (from_fields([("mul", [0, 1], {})], 2), "its from_fields: node 0 (mul): not known to be linear in the tangents"),
        (from_fields([ONE, ("add", [0, 2], {})], 3), "its from_fields: node 1 (add): not known to be linear in the tangents"),
        (from_fields([ONE], 2), "its from_fields: a result does not depend on the tangents, and is not zero"),
        (from_fields([ZERO], 2, 2), "its from_fields gives zeros only"),
        (from_fields([("exq", [0], {})], 2), "view 'swap': from_fields, node 0 (exq): unknown op 'exq'"),
        (from_fields([("neg", [7], {})], 2), "view 'swap': from_fields, node 0 (neg): "),
        ({**swapped(), "views": {"swap": {"properties": POINT}}}, "view 'swap'"),
    ],
)  # fmt: skip
def test_what_is_no_view_is_refused_in_one_line(declaration, message):
    with pytest.raises(DocumentError) as error:
        read(copied("Point", Point=declaration))
    assert message in str(error.value) and "\n" not in str(error.value)
    assert "type 'Point'" in str(error.value)


def test_views_that_convert_by_views_are_refused():
    """Each would write out two of the next type's, and a file of some kB would stand for 2^32."""
    by_fields, by_properties = "Point{x: f64[], y: f64[]}", "Point{u: f64[], v: f64[]}"
    parts = [("field", [0], {"name": "y"}), ("field", [0], {"name": "x"}), ("record", [1, 2], {"type": by_properties})]
    one_way, back = (
        graph({a: by_fields}, [*parts, ("add", [0, 3], {}), ("add", [4, 3], {})], {b: 5}) for a, b in (("at", "p"), ("p", "at"))
    )
    view = {"properties": {"p": "Point"}, "from_fields": one_way, "to_fields": back}
    with pytest.raises(DocumentError, match=r"type 'Spot', view 'v': its from_fields: record has tangents by properties; a view's"):
        read(copied("Spot", Point=swapped(), Spot={"fields": {"at": "Point"}, "views": {"v": view}}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{u: f64[]}", "has the view 'swap', of whose tangents no property may be left out; add v"),
        ("{u: f64[], y: f64[]}", "has no property 'y' (view 'swap': u, v)"),
        ("{u: f64[2], v: f64[]}", "has the property 'u' of type f64[], which admits no tangent f64[2]"),
        ("{w: f64[]}", "has no field 'w' (fields: x, y)"),
    ],
)
def test_tangents_of_no_view_are_refused(text, message):
    document = read(copied("Point", Point=swapped()))
    with pytest.raises(TransformError) as error:
        linearize(document, [P], tangent_types={P: type_of(text, document)})
    assert message in str(error.value)


def test_documents_that_declare_other_views_are_not_joined_and_differ():
    plain, one = (read(copied("Point", "g", Point=t)) for t in (POINT, swapped()))
    other = read(copied("Point", Point=from_fields([("neg", [0], {})], 2)))
    same_views = read(copied("Point", Point=swapped()))
    assert [g.name for g in resolve([one, same_views]).graphs] == ["g", "f"]
    for second in (other, plain):
        with pytest.raises(TypeRuleError, match="type 'Point': one document declares other views of it than another; rename one"):
            resolve([one, second])
        assert "the views of record type 'Point' differ" in list(structural_differences(one, second))


def test_fields_may_be_called_fields_and_views():
    document = read(copied("T", T={"fields": "f64[]", "views": "f64[]"}))
    assert type_of("T", document).names == ("fields", "views") and not type_of("T", document).views
    assert b'{"fields": "f64[]", "views": "f64[]"}' in format_document(document, "json")


def test_views_may_be_made_of_other_types_whatever_the_order():
    """The names of types in a view are known, and a name of a key or an op is none."""
    document = read(copied("Line", Line={"fields": POINT, "views": {"as_point": as_one("Line", "Point")}}, Point=POINT))
    linear = linearize(document, [P], tangent_types={P: type_of("{Line: Point{x: f64[], y: f64[]}}", document)})
    same(run(linear, **{"p@1": ((2.0, 3.0),)})[Y.tangent(1)], [2, 3])


@pytest.mark.parametrize(
    ("move", "ends"),
    [({"middle": 1.0, "width": 0.0}, [2, 4]), ({"width": 2.0, "middle": None}, [0, 4]), ({"low": 1.0}, [2, 3]), ({}, [1, 3])],
)
def test_inputs_move_by_properties(move, ends):
    document = tidu_cli.load(Path(__file__).parents[2] / "samples" / "interval.json")
    results = tidu_cli.evaluate(document, {"over": {"low": 1.0, "high": 3.0}}, moves={"over": move})
    assert results["area"] == (ends[1] ** 3 - ends[0] ** 3) / 3


@pytest.mark.parametrize(
    ("move", "message"),
    [
        ({"middle": 1.0, "low": 1.0}, "move of over.low: Interval{middle: f64[], width: f64[]} has no such field"),
        ({"middle": [1.0], "width": None}, "move of over.middle: expected f64[], got a list of shape [1]"),
    ],
)
def test_moves_by_no_properties_are_refused(move, message):
    document = tidu_cli.load(Path(__file__).parents[2] / "samples" / "interval.json")
    with pytest.raises(EvaluationError) as error:
        tidu_cli.evaluate(document, {"over": {"low": 1.0, "high": 3.0}}, moves={"over": move})
    assert message in str(error.value)
