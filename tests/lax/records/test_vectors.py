"""Durations and tangents of records are vectors: numbers scale them, and those of one thing add up whichever types they have."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graphs.interpret import evaluate, inner, random_value, tree
from tests.graphs.sketch import Sketch, document, key, op
from tests.graphs.templates import apply, interpret, make_case
from tests.tiers import examples
from tidu_cli.errors import DocumentError, TypeRuleError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import CaseTable
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import TensorType, tangent_type
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN, with_records
from tidu_cli.rules.contract import NoAttrs
from tidu_cli.rules.recording.conversion import conversion
from tidu_cli.rules.tangents import admitted, chosen, structural
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.compose import detach
from tidu_cli.transforms.linking.resolve import resolve
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.rewriting import simplify
from tidu_cli.transforms.transpose import transpose

TRIP = parse_value_type("{at: datetime[ms][2], n: i32[], w: f64[]}")
TRIP = type(TRIP)("Trip", TRIP.fields)
SET = with_records(BUILTIN, {"Trip": TRIP}, {})
NATURAL = tangent_type(TRIP)

OF_A_TRIP = [
    "Trip{at: duration[ms][2], n: f64[], w: f64[]}",
    "Trip{at: duration[h][2]}",
    "Trip{w: f64[], n: f32[]}",
    "Trip{at: {instant: {periods: f64[2]}}, w: f32[]}",
    "Trip{at: {instant: {periods: duration[h][2]}}}",
]


def type_of(text):
    return parse_value_type(text, SET.records)


def add(x, y):
    return BUILTIN.case("add", NoAttrs(), None, [x, y]).results[0]


def whole(type_, rng):
    """Small whole numbers, whose sums are exact."""
    if hasattr(type_, "fields"):
        return tuple(whole(t, rng) for _, t in type_.fields)
    return rng.integers(-9, 9, type_.shape).astype(numpy_dtype(np, type_.dtype))


def moved(value, type_, natural=NATURAL):
    """Where a tangent leads from a point: the numbers of its natural type, by hand."""
    if isinstance(natural, TensorType):
        while hasattr(type_, "fields"):
            (value,), ((_, type_),) = value, type_.fields
        hours = str(type_).startswith("duration[h]") and str(natural).startswith("duration[ms]")
        return np.asarray(value, float) * (3_600_000.0 if hours else 1.0)
    given = dict(zip(type_.names, value, strict=True))
    return tuple(
        moved(given[name], type_.get(name), part) if given.get(name) is not None else np.zeros(part.shape)
        for name, part in natural.fields
    )


@pytest.mark.parametrize(("one", "other"), list(itertools.product(OF_A_TRIP, repeat=2)))
def test_tangents_of_one_record_add_up_in_the_natural_type(one, other):
    rng = np.random.default_rng(5)
    types = [chosen(TRIP, type_of(t)) for t in (one, other)]
    case = SET.case("add", NoAttrs(), None, types)
    due = types[0] if types[0] == types[1] else NATURAL
    assert case.results == (due,)
    values = [whole(t, rng) for t in types]
    added = SET["add"].evaluation.kernel(np, case.attrs, case.operands, case.results)(*values)
    expected = [moved(v, t) for v, t in zip(values, types, strict=True)]
    total = tuple(a + b for a, b in zip(*expected, strict=True))
    tree(lambda a, b: np.testing.assert_array_equal(a, b), moved(added, due), total)


DURATIONS = list(admitted(TensorType("duration[s]", (2,))))


@pytest.mark.parametrize("other", DURATIONS)
def test_durations_add_up_in_the_finer_unit(other):
    day = TensorType("duration[D]", (2,))
    finer = max(day, other, key=lambda t: DURATIONS.index(t))
    assert add(day, other) == add(other, day) == finer
    case = make_case("add", {}, [day, other])
    days = make_case("convert_element_type", {"new_dtype": finer.dtype}, [day])
    others = make_case("convert_element_type", {"new_dtype": finer.dtype}, [other])
    x, y = np.array([1.0, -2.5]), np.array([3.0, 0.25])
    assert apply(case, [x, y])[0].tolist() == (apply(days, [x])[0] + apply(others, [y])[0]).tolist()


def test_the_structural_tangent_adds_to_the_natural_one():
    natural, parts = TensorType("duration[h]", (2,)), structural((2,))
    assert add(natural, parts) == add(parts, natural) == natural and add(parts, parts) == parts
    assert apply(make_case("add", {}, [natural, parts]), [np.ones(2), ((np.array([2.0, 3.0]),),)])[0].tolist() == [3, 4]


@pytest.mark.parametrize(
    ("one", "other", "due"),
    [
        ("{instant: {periods: duration[h][2]}}", "duration[s][2]", "duration[s][2]"),
        ("{instant: {periods: duration[h][2]}}", "{instant: {periods: f64[2]}}", "duration[h][2]"),
        ("{instant: {periods: duration[h][2]}}", "{instant: {periods: duration[s][2]}}", "{instant: {periods: duration[s][2]}}"),
    ],
)
def test_semi_structural_tangents_add_up_in_the_finest_unit(one, other, due):
    types = [type_of(one), type_of(other)]
    assert add(*types) == add(*reversed(types)) == type_of(due)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("f32[]", "f64[]"),
        ("duration[h][]", "f64[]"),
        ("duration[h][2]", "duration[ms][3]"),
        ("{x: f64[]}", "{y: f64[]}"),
        ("{x: f64[]}", "{x: f32[]}"),
        ("{instant: {periods: f64[3]}}", "duration[h][2]"),
        ("{instant: {periods: duration[h][3]}}", "duration[h][2]"),
        ("{at: duration[h][]}", "{at: f64[]}"),
    ],
)
def test_what_is_no_tangent_of_one_thing_does_not_add_up(one, other):
    with pytest.raises(TypeRuleError, match="type mismatch"):
        add(type_of(one), type_of(other))


VECTORS = ["duration[h][2]", "{x: f64[2], d: (duration[s][], c128[2])}", "Trip{at: duration[ms][2], w: f64[]}", "{x: f32[]}"]


@pytest.mark.parametrize("vector", VECTORS)
@pytest.mark.parametrize("first", [False, True])
def test_numbers_scale_vectors(vector, first):
    type_ = type_of(vector)
    number = TensorType("f64", (2,)) if isinstance(type_, TensorType) else TensorType("f64")
    x, c = random_value(type_, np.random.default_rng(1)), random_value(number, np.random.default_rng(2))
    case = SET.case("mul", NoAttrs(), None, [number, type_] if first else [type_, number])
    assert case.results == (type_,)
    scaled = SET["mul"].evaluation.kernel(np, case.attrs, case.operands, case.results)(*((c, x) if first else (x, c)))
    tree(lambda a, b: np.testing.assert_array_equal(a, b * np.asarray(c).astype(a.dtype)), scaled, x)


@pytest.mark.parametrize(
    ("one", "other"),
    [("duration[h][]", "duration[h][]"), ("c64[]", "duration[h][]"), ("f64[]", "duration[h][2]"), ("bool[]", "duration[h][]"),
     ("f64[2]", "{x: f64[2]}"), ("{x: f64[]}", "{x: f64[]}"), ("f64[]", "{n: i32[]}"), ("f64[]", "Trip"),
     ("c128[]", "{x: c128[]}")],
)  # fmt: skip
def test_other_products_are_refused(one, other):
    for types in ([one, other], [other, one]):
        with pytest.raises(TypeRuleError):
            SET.case("mul", NoAttrs(), None, [type_of(t) for t in types])


@pytest.mark.parametrize("format_", ["json", "msgpack"])
def test_derivatives_of_scaled_and_joined_tangents_go_through_files(format_):
    """y = c (u + v), of hours and milliseconds: forwards and backwards, and detached residuals."""
    sketch = Sketch({"c": "f64[2]", "u": "duration[h][2]", "v": "duration[ms][2]"}, cases=CaseTable())
    c, u, v = sketch.inputs
    doc = document(sketch.build("f", {"y": op("mul")(c, sketch.apply("add", u, v))}))
    wrt = [key("c"), key("u"), key("v")]
    forward = parse_document(format_document(linearize(doc, wrt), format_), "test")[0]
    back = parse_document(format_document(materialize(transpose(forward)), format_), "test")[0]
    at = {key("c"): np.array([2.0, 3.0]), key("u"): np.array([1.0, 2.0]), key("v"): np.array([5.0, 7.0])}
    seeds = {key("c@1"): np.array([1.0, 0.0]), key("u@1"): np.array([0.0, 1.0]), key("v@1"): np.array([1.0, 1.0])}
    (y,) = evaluate(forward, at | seeds).values()
    assert y.tolist() == [3_600_005.0 + 2.0, 3.0 * 3_600_001.0]
    cotangents = evaluate(back, at | {key("y@-1"): np.array([1.0, 10.0])})
    assert {str(k): x.tolist() for k, x in cotangents.items()} == {
        "c@-1": [3_600_005.0, 72_000_070.0],
        "u@-1": [2.0 * 3_600_000, 30.0 * 3_600_000],
        "v@-1": [2.0, 30.0],
    }


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("format_", ["json", "msgpack"])
def test_products_with_detached_numbers_and_durations(format_, reverse):
    """y = sin(c) u: what is hidden is a duration or a number, as the types that files state tell."""
    sketch = Sketch({"c": "f64[]", "u": "duration[h][]"}, cases=CaseTable())
    c, u = sketch.inputs
    doc = document(sketch.build("f", {"y": op("mul")(op("sin")(c), u)}))
    linear = linearize(doc, [key("u"), key("c")])
    apart = parse_document(format_document(detach(linear, 1), format_), "test")[0]
    derived, whole = (transpose(apart), transpose(linear)) if reverse else (apart, linear)
    together = resolve([doc, parse_document(format_document(derived, format_), "test")[0]])
    seeds = {key("y@-1"): 3.0} if reverse else {key("u@1"): 0.5, key("c@1"): 2.0}
    at = {key("c"): 0.25, key("u"): 5.0} | seeds
    assert evaluate(together, at) == evaluate(whole, at)


NUMBERS = st.sampled_from(["f16", "bf16", "f32", "f64", "i8", "i64", "u16"])


def computed(name, types, *values):
    case = SET.case(name, NoAttrs(), None, types)
    return case.results[0], SET[name].evaluation.kernel(np, case.attrs, case.operands, case.results)(*values)


@given(st.sampled_from(OF_A_TRIP), st.sampled_from(OF_A_TRIP), NUMBERS, st.integers(0, 9), st.integers(0, 99))
@settings(max_examples=examples(60))
def test_tangents_form_a_vector_space(one, other, dtype, number, seed):
    """On whole numbers, exactly: u - v = u + (-1) v, a (u + v) = a u + a v, u - u = 0, (8 u) / 8 = u."""
    rng = np.random.default_rng(seed)
    u_type, v_type, n_type = chosen(TRIP, type_of(one)), chosen(TRIP, type_of(other)), TensorType(dtype)
    u, v, a = whole(u_type, rng), whole(v_type, rng), np.asarray(number).astype(numpy_dtype(np, dtype))[()]

    def same(left, right):
        tree(lambda x, y: np.testing.assert_array_equal(x, y), *[moved(value, type_) for type_, value in (left, right)])

    minus_v = computed("mul", [v_type, TensorType("i32")], v, np.int32(-1))
    same(minus_v, computed("neg", [v_type], v))
    same(computed("sub", [u_type, v_type], u, v), computed("add", [u_type, v_type], u, minus_v[1]))
    total = computed("add", [u_type, v_type], u, v)
    parts = computed("mul", [n_type, u_type], a, u)[1], computed("mul", [v_type, n_type], v, a)[1]
    same(computed("mul", [n_type, total[0]], a, total[1]), computed("add", [u_type, v_type], *parts))
    nothing = computed("sub", [u_type, u_type], u, u)
    same(nothing, computed("mul", [u_type, n_type], u, np.zeros_like(a)))
    eight = TensorType("f32")
    scaled = computed("mul", [u_type, eight], u, np.float32(8))[1]
    same((u_type, u), computed("div", [u_type, eight], scaled, np.float32(8)))


@given(st.sampled_from(OF_A_TRIP), st.sampled_from(OF_A_TRIP), st.integers(0, 99))
@settings(max_examples=examples(60))
def test_a_sum_of_cotangents_pairs_with_tangents_as_they_do(one, other, seed):
    """<a + b, t> = <a, t> + <b, t>, each with t in its own type, for cotangents of one primal type in any two tangent types."""
    rng = np.random.default_rng(seed)
    types = [chosen(TRIP, type_of(text)) for text in (one, other)]
    a, b = (random_value(t, rng) for t in types)
    result, total = computed("add_cotangents", types, a, b)
    assert result == computed("add", types, a, b)[0]
    along = random_value(result, rng)

    def paired(type_, cotangent):
        cases = CaseTable(SET)
        (tangent,) = interpret(conversion(SET, cases, result, type_), cases, [along])
        return inner(cotangent, tangent)

    np.testing.assert_allclose(paired(result, total), sum(map(paired, types, (a, b))), 1e-5)


def test_cotangents_count_per_unit():
    """1 per hour and 1 per millisecond."""
    types = [TensorType("duration[h]"), TensorType("duration[ms]")]
    result, total = computed("add_cotangents", types, np.float64(1), np.float64(1))
    assert str(result) == "duration[ms][]" and total == 1 + 1 / 3_600_000


@pytest.mark.parametrize("name", ["add", "sub", "add_cotangents"])
def test_readers_refuse_to_add_cotangents_as_tangents(name):
    """In the graph of a transpose: v there is per millisecond, u per hour."""
    sketch = Sketch({"u": "duration[h][]", "v": "duration[ms][]"}, cases=CaseTable())
    backward = transpose(linearize(document(sketch.build("f", dict(zip("uv", sketch.inputs, strict=True)))), [key("u"), key("v")]))
    data = json.loads(format_document(backward, "json"))
    head = data["graphs"][-1]
    head["nodes"].append({"op": name, "inputs": [0, 1], "role": {"linearized": {"active_mask": [True, True]}}})
    text = json.dumps(data).encode()
    if name == "add_cotangents":
        assert parse_document(text, "test")
        return
    with pytest.raises(DocumentError, match=rf"node \d \({name}\): joins .*; write add_cotangents"):
        parse_document(text, "test")


@pytest.mark.parametrize("name", ["sub", "neg", "mul", "div", "add_cotangents"])
def test_transposes_of_vector_operations_are_adjoint(name):
    """In tangents of different types and in the number, where the number is a float, too."""
    rng = np.random.default_rng(3)
    hours, seconds = ("{a: duration[h][2], b: c128[]}", "{a: duration[s][2], b: c128[]}")
    of_two = [(hours, seconds), ("duration[h][2]", "duration[ms][2]")]
    pairs = {"sub": of_two, "add_cotangents": of_two, "neg": [(hours,)]}
    for texts in pairs.get(name, [(hours, "f32[]"), (hours, "f64[]"), ("duration[h][2]", "f32[2]")]):
        sketch = Sketch({f"x{k}": text for k, text in enumerate(texts)}, cases=CaseTable())
        doc = document(sketch.build("f", {"y": sketch.apply(name, *sketch.inputs)}))
        at = {key(f"x{k}"): random_value(type_of(text), rng) for k, text in enumerate(texts)}
        linear = linearize(doc, list(at))
        turned = transpose(linear)
        along = {i.key: random_value(i.type, rng) for i in linear.head.inputs}
        against = {i.key: random_value(i.type, rng) for i in turned.head.inputs}
        image, pulled = evaluate(linear, at | along), evaluate(turned, at | against)
        right = sum(inner(along[x.tangent(1)], pulled[x.cotangent(1)]) for x in at)
        np.testing.assert_allclose(inner(image[key("y@1")], against[key("y@-1")]), right, 1e-4)


def test_identities_of_arrays_leave_records_alone():
    """Simplified, u c, -(-u) and u - u of records have the values that they had; before, such graphs had no simplified form."""
    texts = {"c": "f64[]", "u": "{x: f64[], t: duration[h][2]}"}
    sketch = Sketch(texts, cases=CaseTable())
    c, u = sketch.inputs
    product = sketch.apply("mul", u, c)
    back = sketch.apply("neg", sketch.apply("neg", sketch.apply("div", product, c)))
    doc = document(sketch.build("f", {"y": sketch.apply("sub", back, sketch.apply("sub", product, product))}))
    at = {key(k): random_value(type_of(text), np.random.default_rng(4)) for k, text in texts.items()}
    (plain,), (simple,) = evaluate(doc, at).values(), evaluate(simplify(materialize(doc)), at).values()
    tree(lambda x, y: np.testing.assert_array_equal(x, y), plain, simple)
