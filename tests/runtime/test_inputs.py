"""Values of records and times as users give them: what is taken, what is refused, and in which words."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tidu_cli
from tests.graphs.interpret import random_value, tree
from tests.tiers import examples
from tidu_cli.errors import EvaluationError, TiduError
from tidu_cli.formats.chunks.sources import sources_of
from tidu_cli.formats.values import read_values, write_values
from tidu_cli.graph.graph import CaseTable, Document, Graph, Input, Output
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.literals import Literal, literal_from_numbers
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import RecordType, TensorType, Type, of_batch, tangent_type
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.contract import NoAttrs
from tidu_cli.runtime.batches import evaluate_batch
from tidu_cli.runtime.evaluate import evaluate
from tidu_cli.runtime.inputs import input_constant, input_value, is_as_declared, value_of_input
from tidu_cli.transforms.batch import vectorized
from tidu_cli.transforms.linking.rename import bind_constants
from tidu_cli.transforms.materialize import materialize

POINT = RecordType("Point", (("x", TensorType("f64")), ("y", TensorType("f64", (3,)))))
EVENT = RecordType("Event", (("at", TensorType("datetime[ms]")), ("on", TensorType("bool")), ("where", POINT)))
DECLARED = {"Point": POINT, "Event": EVENT}
P = {"x": 1, "y": [1, 2, 3]}
NOON = 1_767_268_800_000  # 2026-01-01T12:00 in ms


def type_(text: str) -> Type:
    return parse_value_type(text, DECLARED)


def taken(text: str, value: object) -> Any:
    return input_value("input p", type_(text), value)


def plain(value: Any) -> Any:
    return tuple(map(plain, value)) if isinstance(value, tuple) else value if value is None else value.tolist()


@pytest.mark.parametrize(
    ("text", "value", "due"),
    [
        ("Point", P, (1, [1, 2, 3])),
        ("Point", {"y": np.arange(3.0), "x": np.float64(2)}, (2, [0, 1, 2])),
        ("Event", {"at": NOON, "on": True, "where": P}, (NOON, True, (1, [1, 2, 3]))),
        ("(f64[], i32[2])", [1, [2, 3]], (1, [2, 3])),
        ("(f64[], i32[2])", (1, [2, 3]), (1, [2, 3])),
        ("(f64[], i32[2])", {"1": [2, 3], "0": 1}, (1, [2, 3])),
        ("({re: f64[], im: f64[]},)", [{"re": 1, "im": 2}], ((1, 2),)),
        ("{re: f64[], im: f64[]}", 1 + 2j, (1, 2)),
        ("Point{x: f64[], y: f64[3]}", {"x": None, "y": [1, 2, 3]}, (None, [1, 2, 3])),
        ("Point{x: f64[], y: f64[3]}", None, (None, None)),
        ("{a: Point{x: f64[]}, b: f64[]}", {"a": None, "b": 1}, (None, 1)),
    ],
)
def test_records(text: str, value: object, due: Any) -> None:
    assert plain(taken(text, value)) == due


@pytest.mark.parametrize(
    ("text", "value", "message"),
    [
        ("Point", {"x": 1}, "input p.y: missing; f64[3] is due"),
        ("Point{x: f64[]}", {}, "input p.x: missing; f64[] is due, or null for zero"),
        ("Point", {**P, "z": 1}, "input p.z: Point has no such field (fields: x, y)"),
        ("Point", {"x": None, "y": [1, 2, 3]}, "input p.x: expected f64[], got null"),
        ("Point", None, "input p: expected Point {x: f64[], y: f64[3]}, an object of its fields, got null"),
        ("Point", [1, [1, 2, 3]], "an object of its fields, got a ragged list, of numbers beside lists"),
        ("Point", 3, "an object of its fields, got a single number"),
        ("Point", "2026", "an object of its fields, got text"),
        ("Point", np.zeros(4), "an object of its fields, got f64[4]"),
        ("Point", Literal(TensorType("f64"), bytes(8)), "an object of its fields, got f64[]"),
        (
            "Event",
            {"at": NOON, "on": True, "where": {"x": 1, "y": [1, 2]}},
            "input p.where.y: expected f64[3], got a list of shape [2]",
        ),
        (
            "Event",
            {"at": NOON, "on": True, "where": {"x": 1, "yy": 2}},
            "input p.where.yy: Point has no such field; did you mean 'y'?",
        ),
        ("(f64[], i32[2])", [1], "input p: expected (f64[], i32[2]), a list of 2, got 1 item"),
        ("(f64[], i32[2])", [1, [2.5, 3]], "input p.1: expected i32[2], but 2.5 is not an integer"),
        ("(f64[], i32[2])", {"0": 1, "2": 2}, "input p.2: (f64[], i32[2]) has no such field"),
        ("(f64[], i32[2])", {0: 1, 1: 2}, "input p.0: (f64[], i32[2]) has no such field"),
        ("f64[2]", {"a": 1}, "input p: expected f64[2], got an object"),
        ("f64[]", {}, "input p: expected f64[], got an empty object"),
        ("f64[2]", [{}, {}], "input p: expected f64[2], got a list of objects"),
    ],
)
def test_records_that_do_not_fit(text: str, value: object, message: str) -> None:
    with pytest.raises(EvaluationError, match=re.escape(message)) as caught:
        taken(text, value)
    assert "\n" not in str(caught.value)


def test_an_array_in_a_file_is_no_record(tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", np.zeros((2, 4)))
    with pytest.raises(EvaluationError, match=re.escape("an object of its fields, got f64[2,4]")):
        taken("Point", sources_of(str(tmp_path))["p"])


@pytest.mark.parametrize(
    ("text", "value", "due"),
    [
        ("datetime[ms][]", "2026-01-01T12:00:00.000", NOON),
        ("datetime[ms][]", "2026-01-01T13:00+01:00", NOON),
        ("datetime[ms][]", NOON, NOON),
        ("datetime[ms][2]", ["2026-01-01T12:00", NOON + 1], [NOON, NOON + 1]),
        ("datetime[ms][]", np.datetime64("2026-01-01T12", "h"), NOON),
        ("datetime[h][2]", np.array(["2026-01-01T12", "1969-12-31T23"], "M8[ns]"), [NOON // 3_600_000, -1]),
        ("datetime[ms][1]", np.array([NOON]), [NOON]),
        ("datetime[D][]", "2026-03", 20513),
        ("datetime[D][]", np.datetime64("2026-01-01T00", "s"), 20454),
        ("datetime[ms][]", np.array([NOON // 1000], "M8[25s]")[0] - np.datetime64(0, "s") + np.datetime64(0, "s"), 25 * NOON),
        ("datetime[ms][]", datetime.datetime(2026, 1, 1, 12), NOON),
        ("datetime[D][2]", [datetime.date(1970, 1, 2), datetime.date(1969, 12, 31)], [1, -1]),
        ("datetime[ms][1]", Literal(type_("datetime[s][1]"), np.array([NOON // 1000]).tobytes()), [NOON]),
        ("duration[h][]", 1.5, 1.5),
        ("duration[h][]", "Infinity", float("inf")),
        ("duration[h][2]", np.array([90, -30], "m8[m]"), [1.5, -0.5]),
        ("duration[h][1]", np.array([0.25]), [0.25]),
        ("duration[h][2]", literal_from_numbers(type_("duration[D][2]"), [1, 0.5]), [24, 12]),
    ],
)
def test_times(text: str, value: object, due: Any) -> None:
    array = taken(text, value)
    assert array.tolist() == due and array.dtype == (np.int64 if text.startswith("datetime") else np.float64)


@pytest.mark.parametrize(
    ("text", "value", "message"),
    [
        ("datetime[ms][]", "NaT", "NaT is not a time"),
        ("datetime[ms][]", np.datetime64("NaT", "ms"), "got NaT, which is not a time"),
        ("datetime[ms][1]", np.array([-(2**63)]), "got NaT"),
        ("duration[h][]", np.timedelta64("NaT", "h"), "got NaT"),
        ("datetime[ms][]", "yesterday", "'yesterday' is not a time; write it as 2026-01-31T12:00:00.000"),
        ("datetime[s][]", "2026-01-01T12:00:00.5", "is finer than the unit s"),
        ("datetime[s][1]", np.array(["2026-01-01T12:00:00.5"], "M8[ms]"), "and some are not a whole number of s in 64 bits"),
        ("datetime[ns][]", np.datetime64("9999-01-01", "D"), "and some are not a whole number of ns in 64 bits"),
        ("datetime[ms][]", 1.5, "input p: expected datetime[ms][], but 1.5"),
        ("datetime[ms][]", True, "input p: expected datetime[ms][], but True"),
        ("datetime[ms][2]", "2026-01-01", "expected datetime[ms][2], got text; give text such as 2026-01-31T12:00, integers of ms"),
        ("datetime[ms][2]", np.zeros(2, "M8[D]")[:1], "expected datetime[ms][2], got datetime[D][1]"),
        ("datetime[ms][]", np.float64(3), "expected datetime[ms][], got f64[]; give text such as 2026-01-31T12:00"),
        ("datetime[ms][]", np.timedelta64(3, "h"), "expected datetime[ms][], got duration[h][]"),
        ("datetime[ms][]", np.datetime64("NaT"), "expected datetime[ms][], got datetime64[]"),
        ("duration[h][]", np.timedelta64(5), "expected duration[h][], got timedelta64[]; give numbers of h"),
        ("duration[h][]", np.datetime64("2026-01-01"), "expected duration[h][], got datetime[D][]"),
        ("duration[h][]", np.timedelta64(1, "M"), "got timedelta64[M][], whose unit is none of D, h, m, s, ms, us, ns; convert it"),
        ("datetime[D][1]", np.array(["2026-01"], "M8"), "expected datetime[D][1], got datetime64[M][1], whose unit is none"),
        ("duration[h][]", np.float32(1), "expected duration[h][], got f32[]; give numbers of h, as f64 where they are typed"),
        ("duration[h][]", "1h", "input p: expected duration[h][], but '1h' is not a number"),
        ("f64[]", np.datetime64("2026"), "input p: expected f64[], got datetime64[Y][]; give exactly that type"),
    ],
)
def test_times_that_do_not_fit(text: str, value: object, message: str) -> None:
    with pytest.raises(EvaluationError, match=re.escape(message)) as caught:
        taken(text, value)
    assert "\n" not in str(caught.value)


ARRAYS = [
    np.zeros(2),
    np.zeros(2, ">f8"),
    np.zeros(2, "f4"),
    np.zeros((2, 1)),
    np.zeros(2).view(np.recarray),
    np.ma.zeros(2),
    np.float64(0),
    np.zeros(()),
    [0.0, 0.0],
    np.zeros(2, "M8[s]"),
    np.full(2, np.iinfo(np.int64).min),  # as a datetime, none
    np.zeros(2, bool),
    np.zeros(2, "V2"),
    None,
]


@pytest.mark.parametrize(
    "text", ["f64[2]", "f64[]", "f32[2]", "i64[2]", "bool[2]", "bf16[2]", "datetime[s][2]", "duration[s][2]", "Point"]
)
def test_what_is_plainly_as_declared_stays_as_it_is(text: str) -> None:
    declared = type_(text)
    fitting = [value for value in ARRAYS if is_as_declared(declared, value)]
    assert all(input_value("input x", declared, value) is value for value in fitting)
    assert len(fitting) == (text not in ("bf16[2]", "datetime[s][2]", "Point"))


def test_constants_of_records() -> None:
    constant = input_constant(Key("e"), EVENT, {"at": "2026-01-01T12:00", "on": False, "where": P})
    assert constant == (
        Literal(TensorType("datetime[ms]"), np.int64(NOON).tobytes()),
        Literal(TensorType("bool"), b"\0"),
        (Literal(TensorType("f64"), np.float64(1).tobytes()), Literal(TensorType("f64", (3,)), np.array([1.0, 2, 3]).tobytes())),
    )
    assert input_constant(Key("p", (1,)), tangent_type(POINT), {"x": None, "y": [0, 0, 0]})[0] is None


# Random types and values.

TENSORS = st.sampled_from(
    ["f64[]", "f32[2]", "i8[]", "bool[2]", "c64[]", "datetime[ms][]", "datetime[D][2]", "duration[h][2]", "u64[]"]
)
NAMES = st.sampled_from(["x", "y", "re", "im", "type", "data"])
TYPES = st.recursive(
    TENSORS.map(type_),
    lambda inner: (
        st.dictionaries(NAMES, inner, min_size=1, max_size=3).map(lambda d: RecordType("", tuple(d.items())))
        | st.lists(inner, min_size=1, max_size=3).map(lambda d: RecordType("", tuple((str(k), t) for k, t in enumerate(d))))
    ),
    max_leaves=6,
)
CONSTANTS = [{"type": "f64[]", "data": [1]}, {"type": "datetime[s][]", "data": [1]}, {"re": 1, "im": 2}]
LEAVES = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(-9, 9) | st.text(max_size=4)
LEAVES |= st.sampled_from(["2026-01-01", "NaN", *CONSTANTS])
FIELDS = NAMES | st.sampled_from("012")
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=3), max_leaves=8)
fuzz = settings(max_examples=examples(400, check=100), suppress_health_check=list(HealthCheck))


def near(draw: Any, type_: Type) -> Any:
    """JSON that fits a type, but where it does not."""
    if draw(st.integers(0, 7)) == 0:
        return draw(JSON)
    if isinstance(type_, RecordType):
        fields = {name: near(draw, t) for name, t in type_.fields if draw(st.integers(0, 9))}
        return list(fields.values()) if type_.is_tuple else fields
    one: Any = {"b": st.booleans(), "i": st.integers(-128, 127), "u": st.integers(0, 5)}.get(type_.dtype[0], st.floats(-9, 9))
    if type_.dtype.startswith("datetime"):
        one = st.dates().map(str) | st.integers(-9, 9)
    return draw(one) if not type_.shape else [draw(one) for _ in range(type_.size)]


@fuzz
@given(st.data())
def test_no_json_gives_anything_but_a_value_or_one_line(data: st.DataObject) -> None:
    due = data.draw(TYPES)
    value = near(data.draw, due)
    try:
        read = read_values(json.dumps({"p": value}).encode(), "v", {Key("p"): due})
        constant = input_value("input p", due, read[Key("p")])
    except TiduError as error:
        message = str(error)
    else:
        message = "input p"
        assert fits(constant, due)
    assert message.startswith(("input p", "v: ")) and "\n" not in message


def fits(value: Any, type_: Type) -> bool:
    if isinstance(type_, RecordType):
        parts = zip(value, type_.fields, strict=True)
        return all(fits(x, t) if x is not None else type_.inexact for x, (_, t) in parts)
    return value.dtype == numpy_dtype(np, type_.dtype) and value.shape == type_.shape


def passing(type_: Type) -> Graph:
    """The graph that gives back what it takes."""
    key = parse_key("p@-1")
    return Graph("f", (Input(key, type_),), (Output(key, 0, type_),), CaseTable())


@pytest.mark.parametrize("format", ["json", "npz", "msgpack"])
@fuzz
@given(st.data())
def test_results_are_read_back_as_inputs(format: str, data: st.DataObject) -> None:
    due, key = data.draw(TYPES), parse_key("p@-1")
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    value = drawn(due, rng)
    results = evaluate(passing(due), {key: value})
    written = write_values(results, format, {key: due})
    again = evaluate(passing(due), read_values(written, "v", {key: due}))
    assert bits(again[key]) == bits(results[key])
    assert write_values(again, format, {key: due}) == written


def drawn(type_: Type, rng: np.random.Generator) -> Any:
    if isinstance(type_, RecordType):
        parts = {name: drawn(t, rng) for name, t in type_.fields}
        return tuple(parts.values()) if type_.is_tuple else parts
    return rng.integers(0, 2 if type_.dtype == "bool" else 100, type_.shape).astype(numpy_dtype(np, type_.dtype))


def bits(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: bits(x) for name, x in value.items()}
    return tuple(map(bits, value)) if isinstance(value, tuple) else (value.dtype.str, value.shape, value.tobytes())


def test_results_are_numpys_times() -> None:
    event = RecordType("", (("at", TensorType("datetime[s]", (2,))), ("took", TensorType("duration[h]"))))
    (record,) = evaluate(passing(event), {parse_key("p@-1"): {"at": ["2026", "1970-01-01T00:01"], "took": 1.5}}).values()
    assert record["at"].dtype == "M8[s]" and record["at"].astype(str).tolist() == ["2026-01-01T00:00:00", "1970-01-01T00:01:00"]
    assert record["took"].dtype == np.float64 and record["took"].shape == () and record["took"] == 1.5


SEEDS = ("f64[]", "f32[2,3]", "c128[2]", "duration[h][2]", "(f64[], f64[2])")


@pytest.mark.parametrize("text", SEEDS)
@pytest.mark.parametrize("path", [(1,), (-1,), (-1, 2)])
def test_a_tangent_or_cotangent_of_null_is_zero(text, path):
    """In evaluation, of a batch, of which it is no part, and as a constant."""
    cases = CaseTable()
    builder = GraphBuilder(cases, [Input(Key("u", path), type_(text)), Input(Key("v"), type_(text))])
    total = builder.append(cases.intern(BUILTIN.case("add", NoAttrs(), None, [type_(text)] * 2)), [0, 1])
    graph = builder.build("f", [Output(Key("y"), total, type_(text))])
    value = random_value(type_(text), np.random.default_rng(1))
    tree(np.testing.assert_array_equal, evaluate(graph, {Key("u", path): None, Key("v"): value})[Key("y")], value)
    twice = random_value(of_batch(type_(text), 2), np.random.default_rng(2))
    axes = {Key("u", path): 0, Key("v"): 0}
    results, _ = evaluate_batch(graph, {Key("u", path): None, Key("v"): twice}, axes, vectorized)
    tree(np.testing.assert_array_equal, results[Key("y")], twice)
    document = bind_constants(Document((graph,), cases), {Key("u", path): input_constant(Key("u", path), type_(text), None)})
    (result,) = evaluate(materialize(document).head, {Key("v"): value}).values()
    tree(np.testing.assert_array_equal, result, value)


@pytest.mark.parametrize(("key", "text"), [(Key("u"), "f64[]"), (Key("u", (1,)), "i32[]"), (Key("u", (1,)), "bool[]")])
def test_other_nulls_are_refused(key, text):
    with pytest.raises(EvaluationError, match="got null"):
        value_of_input(key, type_(text), None)


class OfAnotherPackage:
    """An array that NumPy can read, as those of JAX and PyTorch, or cannot, as one on a device."""

    def __init__(self, data: object) -> None:
        self.data, self.shape = data, np.shape(data)

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        if self.data is None:
            raise TypeError("cannot read an array on the device cuda:0")
        return np.array(self.data)


def test_arrays_of_other_packages_are_those_of_numpy() -> None:
    document = tidu_cli.formula("2 * x", x="f64[N]")
    given = OfAnotherPackage([1.0, 2.0])
    for result in (tidu_cli.evaluate(document, x=given), tidu_cli.compile(document)(x=given)):
        np.testing.assert_array_equal(result["y"], [2, 4])
    with pytest.raises(EvaluationError, match=r"^input x: not an array of NumPy's: cannot read an array on the device cuda:0$"):
        tidu_cli.evaluate(tidu_cli.formula("2 * x", x="f64[2]"), x=OfAnotherPackage(None))
