"""Records, tuples and times in pictures and pages: their words, types and values, of all orders of derivatives."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.cli.running import ROOT, document, graph, succeed
from tests.programs import needs
from tests.render.chromium import Browser
from tests.render.test_phrases import case_of
from tests.render.test_view import data_of
from tidu_cli.checking.numeric.exact_laws import cotangent_owners
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.link import Definitions
from tidu_cli.graph.text import parse_value_type
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.render.dot import to_dot
from tidu_cli.render.folding import type_text
from tidu_cli.render.phrases import attrs_label, expression, phrase, value_text
from tidu_cli.render.picture import picture
from tidu_cli.render.words import Words

SEGMENT, EVENTS = ROOT / "samples" / "segment.json", ROOT / "samples" / "events.json"
AT = {"s": {"a": {"x": 0, "y": 1}, "b": {"x": 3, "y": 5}}, "length@-1": 1}


def read(data):
    return parse_document(data, "test")[0]


def field(value, name):
    return {"op": "field", "inputs": [value], "attrs": {"name": name}}


def record(type_, *values, **attrs):
    return {"op": "record", "inputs": list(values), "attrs": {"type": type_, **attrs}}


def of_nodes(nodes, inputs, outputs, **more):
    """A document of one graph whose nodes are given in full."""
    data = json.loads(document(graph(inputs=inputs, outputs=outputs), **more))
    data["graphs"][0]["nodes"] = nodes
    return json.dumps(data).encode()


def captions(data, **options):
    made = read(data)
    return [caption for _, caption in Words(picture(made, **options), cotangent_owners(made)).captions()]


def reverse(file, *options):
    return succeed("transpose", input=succeed("linearize", file, *options))


# --- words


@pytest.mark.parametrize(
    ("op", "operands", "attrs", "formula", "passing", "label"),
    [
        ("field", ["{x: f64[], y: f64[3]}"], {"name": "y"}, "a.y", " to its field y", "y"),
        ("field", ["(f64[], f64[3])"], {"name": "1"}, "a.1", " to its item 1", "1"),
        (
            "record",
            ["f64[]", "f64[3]"],
            {"type": "{x: f64[], y: f64[3]}"},
            "{x: a, y: b}",
            ", put together as a record of x and y",
            "{x, y}",
        ),
        (
            "record",
            ["f64[3]", "f64[]"],
            {"type": "{x: f64[], y: f64[3], z: f64[]}", "fields": ["y", "x"]},
            "{x: b, y: a, z: 0}",
            ", put together as a record, zero but for y and x",
            "{y, x}, else 0",
        ),
        ("record", ["f64[]"], {"type": "(f64[],)"}, "(a,)", ", put together as a tuple", "(0)"),
        (
            "record",
            ["f64[]"],
            {"type": "(f64[], f64[])", "fields": ["1"]},
            "(0, a)",
            ", put together as a tuple, zero but for item 1",
            "(1), else 0",
        ),
        (
            "convert_element_type",
            ["duration[ms][]"],
            {"new_dtype": "duration[h]"},
            "a in hours",
            ", converted to hours",
            "converted to hours",
        ),
        ("convert_element_type", ["duration[h][]"], {"new_dtype": "f64"}, "a as f64", ", counted in hours", "counted in hours"),
        ("convert_element_type", ["f64[]"], {"new_dtype": "duration[D]"}, "a as duration[D]", ", taken as days", "taken as days"),
        (
            "convert_element_type",
            ["datetime[ms][]"],
            {"new_dtype": "datetime[D]"},
            "a as datetime[D]",
            ", rounded down to days",
            "rounded down to days",
        ),
        (
            "convert_element_type",
            ["datetime[D][]"],
            {"new_dtype": "datetime[s]"},
            "a as datetime[s]",
            ", converted to seconds",
            "converted to seconds",
        ),
        (
            "convert_element_type",
            ["datetime[s][]"],
            {"new_dtype": "i64"},
            "a as i64",
            ", counted in seconds since 1970",
            "counted in seconds since 1970",
        ),
        ("difference", ["datetime[s][]", "datetime[s][]"], {}, "difference(a, b)", " through the tangent from b to a", ""),
        (
            "difference",
            ["datetime[s][]", "datetime[s][]"],
            {"tangent": "duration[h]"},
            "difference(a, b)",
            " through the tangent from b to a, of type duration[h]",
            "duration[h]",
        ),
        ("retract", ["i32[]", "f64[]"], {}, "a moved by b", ", moved along the tangent b", ""),
    ],
)
def test_words(op, operands, attrs, formula, passing, label):
    case = case_of(op, operands, **attrs)
    told = phrase(case, "ab"[: len(operands)], BUILTIN)
    assert (told.formula, told.passing, attrs_label(case)) == (formula, passing, label)


def test_long_records_are_cut():
    fields = [f"field_{k}" for k in range(40)]
    type_ = f"{{{', '.join(f'{name}: f64[]' for name in fields)}}}"
    case = case_of("record", ["f64[]"] * 40, type=type_)
    told = phrase(case, [f"v{k}" for k in range(40)], BUILTIN)
    assert told.formula.count("field") == 6 and told.formula.endswith(", …}")
    assert told.what == "put together as a record of field_0, field_1, field_2, field_3 and 36 more"
    assert attrs_label(case) == "{field_0, field_1, field_2, field_3, …}"
    data = of_nodes([field(0, "field_7")], [("p", type_)], [("y", 1)])
    assert all(len(line) < 200 for line in to_dot(read(data), types=True).splitlines()[4:])


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("f64[3]", "f64[3]"),
        ("{x: f64[], y: f64[3]}", "{x: f64[], y: f64[3]}"),
        (
            "{first: {x: f64[], y: f64[]}, second: {x: f64[], y: f64[]}, third: f64[3]}",
            "{first: {…}, second: {…}, third: f64[3]}",
        ),
        ("(datetime[ms][1000], datetime[ms][1000], datetime[ms][1000])", "(datetime[ms][1000], datetime[ms][1000], …)"),
    ],
)
def test_types_as_pictures_have_room_for(type_, text):
    assert type_text(parse_value_type(type_)) == text


@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [
        ({"x": 1.2, "y": np.arange(5.0)}, "{x: f64[], y: f64[5]}", "{x: 1.2, y: [0, 1, 2, 3, …]}"),
        ({"x": 1.2, "y": np.arange(1e8, 2e8, 2e7)}, "{x: f64[], y: f64[5]}", "{x: 1.2, y: …}"),
        (dict.fromkeys("abcde", 0.5), "{a: f64[], b: f64[], c: f64[], d: f64[], e: f64[]}", "{a: 0.5, b: 0.5, c: 0.5, d: 0.5, …}"),
        ((1.5, 2), "(f64[], i32[])", "(1.5, 2)"),
        ((1.5,), "(f64[],)", "(1.5,)"),
        ({"a": {"x": 0.0, "y": 1.0}}, "{a: {x: f64[], y: f64[]}}", "{a: {x: 0, y: 1}}"),
        (2.5, "duration[h][]", "2.5 h"),
        ([2.5, 3], "duration[h][2]", "[2.5, 3] h"),
        (np.datetime64("2026-01-01T12:00", "m"), "datetime[m][]", "2026-01-01T12:00"),
        (np.array(["2026-01-01", "2026-01-02", "2026-01-03"], "M8[D]"), "datetime[D][3]", "[2026-01-01, 2026-01-02, …]"),
        (np.datetime64(2**60, "D"), "datetime[D][]", str(2**60)),
    ],
)  # fmt: skip
def test_values(value, type_, text):
    def arrays(value):
        if isinstance(value, dict):
            return {name: arrays(part) for name, part in value.items()}
        return tuple(map(arrays, value)) if isinstance(value, tuple) else np.asarray(value)

    assert value_text(arrays(value), parse_value_type(type_)) == text


def test_expressions():
    nodes = [
        field(0, "p"),
        field(1, "x"),
        {"op": "mul", "inputs": [2, 2]},
        record("Point", 3, 2),
        field(4, "x"),
        record("(f64[], Point)", 5, 4),
    ]
    types = {"Point": {"x": "f64[]", "y": "f64[]"}, "Q": {"p": "Point"}}
    made = read(of_nodes(nodes, [("q", "Q")], [("z", 6)], types=types))
    assert (
        expression(Definitions(made), (0, 6)) == "(Point{x: mul(q.p.x, q.p.x), y: q.p.x}.x, Point{x: mul(q.p.x, q.p.x), y: q.p.x})"
    )
    linear = read(succeed("linearize", "--wrt", "q", input=of_nodes(nodes[:3], [("q", "Q")], [("z", 3)], types=types)))
    value = linear.head.outputs[0].value
    assert "*q@1.p.x" in expression(Definitions(linear), (len(linear.graphs) - 1, value))


# --- pictures


def test_the_sweep_back_to_a_record():
    told = captions(reverse(SEGMENT, "--wrt", "s", "--output", "length"))
    assert told[3].endswith("; this is the cotangent of s.a.y")
    assert told[-1] == "c8 = Segment{a: c7, b: c6}: c7 and c6 go back, put together as Segment; this is the cotangent of s"


def test_contributions_to_a_field_are_counted():
    nodes = [field(0, "x"), field(0, "x"), {"op": "mul", "inputs": [1, 2]}]
    data = of_nodes(nodes, [("p", "{x: f64[], y: f64[]}")], [("z", 3)])
    told = captions(succeed("transpose", input=succeed("linearize", "--wrt", "p", input=data)))
    assert any(line.endswith("the cotangent of p.x gets its second and last contribution") for line in told)
    assert told[-1].endswith("put together as a record, zero but for x; this is the cotangent of p")
    assert "{x: c3, y: 0}" in told[-1]


def test_a_record_of_several_outputs_and_a_run_of_nodes():
    nodes = [field(0, "x"), {"op": "neg", "inputs": [1]}, record("{x: f64[]}", 2)]
    data = of_nodes(nodes, [("p", "{x: f64[], y: f64[]}")], [("z", 3), ("w", 3)])
    assert captions(data)[1] == "v2 = -v1: negation; this is z.x and w.x"
    assert captions(data, collapse=True) == ["v3, by 3 nodes (field, neg, record); this is z and w"]


def orders(file, wrt):
    """The document, and derivatives up to the third order in both modes."""
    data = file.read_bytes()
    yield data
    for command in (
        ["linearize", "--wrt", wrt],
        ["transpose"],
        ["linearize", "--wrt", wrt],
        ["linearize", "--wrt", wrt],
        ["transpose"],
    ):
        data = succeed(*command, input=data)
        yield data
    yield succeed("materialize", input=data)


@pytest.mark.parametrize(("file", "wrt"), [(SEGMENT, "s"), (EVENTS, "events")])
def test_all_orders(file, wrt, tmp_path):
    for k, data in enumerate(orders(file, wrt)):
        made = read(data)
        for collapse in (False, True):
            assert to_dot(made, types=True, collapse=collapse).startswith("digraph")
            shown = picture(made, collapse=collapse)
            assert {item.id for item, _ in Words(shown, cotangent_owners(made)).captions()} <= {item.id for item in shown.items}
        text, packed = tmp_path / f"{k}.json", tmp_path / f"{k}.msgpack"
        text.write_bytes(data)
        succeed("convert", text, "-o", packed)
        succeed("diff", "--exact", text, packed)
        summary = json.loads(succeed("info", "--json", packed))
        assert list(summary["types"]) == list(json.loads(file.read_text())["types"])
        assert summary["evaluation"]["nodes_of_unknown_flops"] == 0


def test_operands_of_a_record_are_told_by_field():
    lines = to_dot(read(SEGMENT.read_bytes())).splitlines()
    assert any('headlabel="x"' in line for line in lines) and any('headlabel="y"' in line for line in lines)
    assert any('label="s: Segment\\n{a: Point, b: Point}"' in line for line in lines)


# --- pages


pages = needs("dot")


@pages
def test_values_on_a_page():
    settings = [part for key, value in AT.items() for part in ("--set", f"{key}={json.dumps(value)}")]
    page = data_of(succeed("view", *settings, input=reverse(SEGMENT, "--wrt", "s", "--output", "length")))
    assert page["steps"][-2]["numbers"] == "c8 = {a: {x: -0.6, y: -0.8}, b: {x: 0.6, y: 0.8}}"
    assert page["items"]["g0v0"]["lines"] == [
        "input of segment, type Segment",
        "Segment is {a: Point, b: Point}",
        "= {a: {x: 0, y: 1}, b: {x: 3, y: 5}}",
    ]


@pages
def test_zero_fields_and_times_on_a_page():
    data = of_nodes(
        [
            field(0, "at"),
            {"op": "sub", "inputs": [2, 1]},
            {"op": "convert_element_type", "inputs": [3], "attrs": {"new_dtype": "duration[h]"}},
            {"op": "convert_element_type", "inputs": [4], "attrs": {"new_dtype": "f64"}},
        ],
        [("e", "{at: datetime[m][], place: f64[2]}"), ("due", "datetime[m][]")],
        [("late", 5)],
    )
    given = ["--set", 'e={"at": "2026-01-01T12:30", "place": [1, 2]}', "--set", 'due="2026-01-01T10:00"']
    steps = data_of(succeed("view", *given, input=data))["steps"]
    assert [step["numbers"] for step in steps[2:]] == [
        "v3 = 2026-01-01T12:30 - 2026-01-01T10:00 = 150 m",
        "v4 = 150 m in hours = 2.5 h",
        "v5 = 2.5 h as f64 = 2.5",
        "late = 2.5",
    ]
    back = succeed("transpose", input=succeed("linearize", "--wrt", "e", input=data))
    steps = data_of(succeed("view", *given, "--set", "late@-1=60", input=back))["steps"]
    assert steps[-1]["numbers"] == "e@-1 = {at: 1 m, place: [0, 0]}"
    assert "; this is the cotangent of e.at" in steps[-3]["caption"]


@pages
@needs("chromium")
def test_a_page_of_records_in_the_browser(tmp_path):
    page = tmp_path / "page.html"
    settings = [part for key, value in AT.items() for part in ("--set", f"{key}={json.dumps(value)}")]
    page.write_bytes(succeed("view", "--types", *settings, input=reverse(SEGMENT, "--wrt", "s", "--output", "length")))
    with Browser(tmp_path / "profile") as browser:
        browser.open(page)
        texts = browser.evaluate("[...document.querySelectorAll('.edge text')].map((text) => text.textContent.trim())")
        browser.evaluate("slider.value = slider.max; slider.dispatchEvent(new Event('input'))")
        told = browser.evaluate("document.getElementById('numbers').textContent")
        assert browser.messages == []
    assert "{x: 3, y: 5}" in texts and "Point" in texts
    assert told == "s@-1 = {a: {x: -0.6, y: -0.8}, b: {x: 0.6, y: 0.8}}"
