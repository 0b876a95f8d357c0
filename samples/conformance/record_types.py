"""Documents with record types and times, for the conformance samples: valid ones, and what is wrong with others."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

from defects import Defect
from documents import cotangent, document, f, graph, node, role, tangent
from loops import closed
from own_ops import definition, op_graph

_TYPES = {
    "Segment": {"a": "Point", "b": "Point"},
    "Point": {"x": "f64[]", "y": "f64[2]"},
    "Event": {"at": "datetime[ms][]", "where": "Point", "counts": "(i32[3], bool[])"},
}
_TANGENT = "Segment{a: Point{x: f64[], y: f64[2]}, b: Point{x: f64[], y: f64[2]}}"
_DOUBLED = definition(
    {"p": "Point", "x": "T[...]"},
    {"r": "T[...]"},
    op_graph(["x"], [node("add", 0, 0)], [("r", 1)]),
)


def _records() -> dict[str, Any]:
    nodes = [
        node("field", 0, attrs={"name": "a"}),
        node("field", 3, attrs={"name": "x"}),
        node("record", 4, 4, attrs={"type": "(f64[], f64[])"}),
        node("field", 5, attrs={"name": "1"}),
        node("record", 3, attrs={"type": "{p: Point}"}),
        node("doubled", 3, 4),
    ]
    inputs = {"s": "Segment", "e": "Event", "t": "({z: f32[]}, Point, (bool[],))"}
    first = graph("f", inputs, nodes, {"p": 3, "pair": 5, "inner": 7, "e": 1, "h": 8})
    second = {
        "name": "f@1",
        "linear": {"pass": 1},
        "inputs": [{"key": tangent("s"), "type": _TANGENT}],
        "nodes": [node("field", 0, attrs={"name": "a"}, role=role(True))],
        "outputs": [
            {"key": tangent("p"), "value": 1},
            {"key": tangent("e"), "value": None, "type": "Event{at: duration[ms][], where: Point{x: f64[], y: f64[2]}}"},
        ],
    }
    third = {
        "name": "f@-1",
        "linear": {"pass": 1},
        "inputs": [{"key": cotangent("h"), "type": "f64[]"}],
        "nodes": [
            node("record", 0, attrs={"type": "Point{x: f64[], y: f64[2]}", "fields": ["x"]}, role=role(True)),
            node("record", 1, attrs={"type": _TANGENT, "fields": ["a"]}, role=role(True)),
        ],
        "outputs": [{"key": cotangent("s"), "value": 2}],
    }
    return document(first, second, third, types=_TYPES, ops={"doubled": _DOUBLED})


def _constant(type_: str, **data: object) -> dict[str, object]:
    return node("constant", attrs={"value": {"type": type_, **data}})


def _view(nodes: list[dict[str, object]], low: int, high: int) -> dict[str, Any]:
    """A view of an interval, in which these nodes make the ends of middle and half of the width."""
    ends, parts = dict.fromkeys(("low", "high"), "f64[]"), dict.fromkeys(("middle", "half"), "f64[]")
    to_fields = closed(parts, nodes, {"low": low, "high": high})
    halved = [_constant("f64[]", data=[0.5]), node("add", 0, 1), node("mul", 3, 2), node("sub", 1, 0), node("mul", 5, 2)]
    return {"properties": parts, "from_fields": closed(ends, halved, {"middle": 4, "half": 6}), "to_fields": to_fields}


def _viewed(view: object) -> dict[str, Any]:
    return {"Interval": {"fields": {"low": "f64[]", "high": "f64[]"}, "views": {"centred": view}}}


_CENTRED = _view([node("sub", 0, 1), node("add", 0, 1)], 2, 3)


def _views() -> dict[str, Any]:
    second = {
        "name": "f@1",
        "linear": {"pass": 1},
        "inputs": [{"key": tangent("i"), "type": "Interval{middle: f64[], half: f64[]}"}],
        "nodes": [node("field", 0, attrs={"name": "half"}, role=role(True))],
        "outputs": [{"key": tangent("p"), "value": 1}],
    }
    return document(graph("f", {"i": "Interval"}, [], {"p": 0}), second, types=_viewed(_CENTRED))


def _times(constants: list[dict[str, object]]) -> dict[str, Any]:
    inputs = {"t": "datetime[ms][2]", "d": "duration[h][]"}
    return document(graph("f", inputs, [*constants, node("sub", 0, 2)], {"since": 10, "day": 3, "d": 1}))


_CONSTANTS = [
    _constant("datetime[ms][2]", data=["2026-01-31T12:00:00.000", "1969-12-31T23:59:59.999"]),
    _constant("datetime[D][]", data=["2000-02-29"]),
    _constant("datetime[D][2]", data=["0000-01-01", 2932897]),  # the year 10000 has no such text
    _constant("datetime[h][1]", data=["1970-01-08T00"]),
    _constant("datetime[ns][]", data=["1970-01-01T00:00:00.000000001"]),
    _constant("duration[h][3]", data=[1.5, "NaN", "-Infinity"]),
    _constant("duration[m][0]", data=[]),
    _constant("datetime[s][17]", base64=base64.b64encode(struct.pack("<17q", *range(17))).decode()),
]
_OTHER_CONSTANTS = [
    _constant("datetime[ms][2]", data=["2026-01-31T14:00:00+02:00", -1]),
    _constant("datetime[D]", data=["2000-02-29T00Z"]),
    _constant("datetime[D][2]", data=["0000", 2932897]),
    _constant("datetime[h][1]", data=[7 * 24]),
    _constant("datetime[ns]", data=[1]),
    *_CONSTANTS[5:],
]


def _loose() -> bytes:
    data = _records()
    first = data["graphs"][0]
    first["inputs"][2]["type"] = "( {z:f32[]} ,Point , (bool[],) )"
    for n, types in zip(
        first["nodes"], (["Point"], ["f64[]"], ["(f64[],f64[])"], ["f64[]"], ["{p:Point}"], ["f64[]"]), strict=True
    ):
        n["types"] = types
    types = {**data.pop("types"), "Event": {"at": "datetime[ms]", "where": "Point", "counts": "(i32[3],bool[])"}}
    return json.dumps({**data, "types": types}).encode()


VALID = {
    "record_types": (
        "record types in any order, nested, spelled out, tuples, tangents of which some are left out; an op that takes one",
        _records(),
    ),
    "views": ("a record type with a view, and tangents by its properties", _views()),
    "times": ("datetimes and durations of several units, and constants of them: text, integers, bytes", _times(_CONSTANTS)),
}
"""As in `documents`."""

OTHER = {
    "record_types.loose.json": (
        "record_types",
        "types at the end, white space in types, types of nodes, a time without shape",
        _loose(),
    ),
    "times.loose.json": ("times", "text of other precision and zone, integers", json.dumps(_times(_OTHER_CONSTANTS)).encode()),
}
"""Files that describe one of these documents in another way."""


def _broken(purpose: str, *words: str, types: object) -> Defect:
    return Defect(purpose, json.dumps(document(f(), types=types)).encode(), words)


def _used(
    purpose: str, *words: str, types: object = None, nodes: list[Any] | None = None, at: int | None = None, **inputs: str
) -> Defect:
    data = document(graph("f", {"s": "Segment", **inputs}, nodes or [], {}), types=types or _TYPES)
    return Defect(purpose, json.dumps(data).encode(), words, "f", at)


def _instant(purpose: str, *words: str, type_: str, element: object) -> Defect:
    nodes = [_constant(type_, data=[element])]
    return Defect(purpose, json.dumps(document(graph("f", {}, nodes, {}))).encode(), words, "f", 0)


def _chain(n: int, **fields: str) -> dict[str, dict[str, str]]:
    return {f"t{k}": dict.fromkeys(fields, f"t{k + 1}") if k < n - 1 else fields for k in range(n)}


INVALID = {
    "types_list.json": _broken("types as a list", "'types'", "object", types=[{"x": "f64[]"}]),
    "types_empty.json": _broken("a record type without fields", "type 'Point'", "at least one", types={"Point": {}}),
    "types_name.json": _broken("a record type named as a dtype", "'f64'", types={"f64": {"x": "f64[]"}}),
    "types_dash.json": _broken("a record type whose name has a dash", "'a-b'", "names are", types={"a-b": {"x": "f64[]"}}),
    "types_field.json": _broken("a field named as a tuple's", "type 'P'", "field '0'", types={"P": {"0": "f64[]"}}),
    "types_number.json": _broken("a field whose type is a number", "type 'P'", "field 'x'", "text", types={"P": {"x": 8}}),
    "types_malformed.json": _broken(
        "a record that does not end", "type 'P'", "field 'x'", "{y: f64[]", types={"P": {"x": "{y: f64[]"}}
    ),
    "types_unknown.json": _broken(
        "a field of an undeclared type", "type 'Segment'", "field 'a'", "did you mean 'Point'",
        types={"Point": {"x": "f64[]"}, "Segment": {"a": "Pont"}},
    ),
    "types_recursion.json": _broken(
        "record types that are parts of each other", "'A'", "B of A", types={"A": {"b": "(f64[], B)"}, "B": {"a": "{a: A}"}}
    ),
    "types_itself.json": _broken("a record type that is a part of itself", "'A'", "part of itself", types={"A": {"a": "A"}}),
    "types_deep.json": _broken("record types that nest too deeply", "nests deeper", types=_chain(40, x="f64[]")),
    "types_wide.json": _broken("2**20 tensors", "more than 1,000 tensors", types=_chain(20, x="f64[]", y="f64[]")),
    "views_none.json": _broken(
        "fields as an object, and no views", "type 'I'", "'views'", types={"I": {"fields": {"x": "f64[]"}}}
    ),
    "views_graph.json": _broken(
        "a view without a graph to the fields", "view 'centred'", "to_fields", "missing",
        types=_viewed({k: v for k, v in _CENTRED.items() if k != "to_fields"}),
    ),
    "views_nonlinear.json": _broken(
        "a view that is not linear", "view 'centred'", "to_fields", "node 1 (mul)", "not known to be linear",
        types=_viewed(_view([node("sub", 0, 1), node("mul", 0, 1)], 2, 3)),
    ),
    "views_property.json": _broken(
        "a view whose graphs lack a property", "view 'centred'", "from_fields gives", "is due",
        types=_viewed({**_CENTRED, "properties": dict.fromkeys(("middle", "half", "p"), "f64[]")}),
    ),
    "views_field.json": _broken(
        "a property that is called as a field", "view 'centred'", "'low'",
        types=_viewed({**_CENTRED, "properties": {"low": "f64[]"}}),
    ),
    "types_undeclared.json": _used("an input of an undeclared type", "input 'p'", "'Pont'", "did you mean 'Point'", p="Pont"),
    "types_two_fields.json": _used("a record with a field twice", "input 'p'", "two fields 'x'", p="{x: f64[], x: f64[]}"),
    "types_one_tuple.json": _used("parentheses that are no tuple", "input 'p'", "(f64[],)", p="(f64[])"),
    "types_unknown_field.json": _used(
        "a field that the record lacks", "no field 'aa'", "did you mean 'a'", nodes=[node("field", 0, attrs={"name": "aa"})], at=0
    ),
    "types_missing_field.json": _used(
        "a record of which a field is missing", "field 'y'", "missing", x="f64[]",
        nodes=[node("record", 1, attrs={"type": "Point", "fields": ["x"]})], at=0,
    ),
    "types_field_type.json": _used(
        "a record with a field of another type", "input 0", "f32[]", "field 'x'", x="f32[]",
        nodes=[node("record", 1, 1, attrs={"type": "Point"})], at=0,
    ),
    "types_arithmetic.json": _used("arithmetic on records", "record", "Segment", nodes=[node("mul", 0, 0)], at=0),
    "types_declared_result.json": _used(
        "a node that declares another record type", "Point", "{x: f64[], y: f64[2]}",
        nodes=[node("field", 0, attrs={"name": "a"}, types=["{x: f64[], y: f64[2]}"])], at=0,
    ),
    "times_unit.json": _used("an unknown unit of time", "input 't'", "unit of time", t="datetime[min][]"),
    "times_nat.json": _instant("a constant that is no time", "NaT", type_="datetime[ms][1]", element="NaT"),
    "times_nat_count.json": _instant("NaT as an integer", "NaT", type_="datetime[ms][1]", element=-(2**63)),
    "times_finer.json": _instant("a time finer than its unit", "finer", "unit D", type_="datetime[D][1]", element="2026-01-31T12"),
    "times_day.json": _instant("a day that is not there", "2026-02-29", type_="datetime[D][]", element="2026-02-29"),
    "times_text.json": _instant("text that is no time", "'yesterday'", type_="datetime[D][]", element="yesterday"),
    "times_range.json": _instant("a time beyond 64 bits", "64 bits", type_="datetime[ns][]", element="2300-01-31"),
    "times_float.json": _instant("half a unit of time", "0.5", "integer", type_="datetime[ms][]", element=0.5),
    "times_duration.json": _instant("a duration as text", "'1h'", type_="duration[h][]", element="1h"),
    "types_only.json": Defect("types without graphs", json.dumps({"tidu": 1, "types": _TYPES}).encode(), ("library", "--ops")),
}  # fmt: skip
"""Invalid documents by file name."""
