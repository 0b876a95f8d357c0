"""The field `types`: record types by name in documents and libraries, kept through commands that join and write these."""

import json
import re
import subprocess
import sys
from contextlib import suppress

import msgpack
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.formats.plain import EMPTY, described, documents, read, records_of, type_tables
from tests.formats.schema.agreement import stock
from tests.tiers import examples
from tidu_cli.errors import DocumentError, TypeRuleError, TypeTextError
from tidu_cli.formats.read import parse_document, parse_library, parse_subject
from tidu_cli.formats.write import format_document
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import RecordType, TensorType
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.transforms.linking.rename import inline
from tidu_cli.transforms.linking.resolve import resolve
from tidu_cli.transforms.materialize import materialize

POINT = {"x": "f64[]", "y": "f64[]"}
TABLE = {"Segment": {"a": "Point", "b": "Point"}, "Point": POINT}


def with_types(types: object, *inputs: str, **fields: object) -> dict:
    graph = {**EMPTY, "name": "f", "inputs": [{"key": "pqrs"[k], "type": t} for k, t in enumerate(inputs)]}
    return {"tidu": 1, "types": types, **fields, "graphs": [graph]}


def written(document) -> dict:
    return json.loads(format_document(document, "json"))


@given(type_tables())
def test_a_table_reads_back_in_both_formats_in_its_order(table):
    document = read(with_types(table))
    for format in ("json", "msgpack"):
        data = format_document(document, format)
        again = read(data)
        assert list(vocabulary(again.cases).records.items()) == list(vocabulary(document.cases).records.items())
        assert format_document(again, format) == data
    types = written(document)["types"]
    assert list(types) == list(table) and {n: list(fields) for n, fields in types.items()} == {n: list(f) for n, f in table.items()}


@given(type_tables(), st.randoms())
def test_the_order_of_declarations_does_not_matter(table, random):
    names = list(table)
    random.shuffle(names)
    assert records_of({name: table[name] for name in names}) == records_of(table)


@given(type_tables())
def test_types_are_their_text(table):
    records = records_of(table)
    for name, type_ in records.items():
        assert parse_value_type(name, records) == type_
        for _, field in type_.fields:
            assert parse_value_type(str(field), records) == field


@given(documents())
@settings(max_examples=examples(40))
def test_the_schema_accepts_what_the_reader_accepts(data):
    stock().validate(data)
    stock().validate(json.loads(format_document(read(data), "json", types=True)))
    stock().validate(json.loads(format_document(read(data), "json", listed=False)))


_PIECES = [
    "{",
    "}",
    "(",
    ")",
    ":",
    ",",
    " ",
    "\n",
    "x",
    "P",
    "Q_1",
    "f64",
    "[]",
    "[3]",
    "f64[]",
    "datetime[ms]",
    "duration[h][2]",
    "0",
]


@given(st.lists(st.sampled_from(_PIECES), max_size=9).map("".join))
@example("{x : f64[],}")
@example(" P {x: f64[]} ")
@example("(f64[],\n(P,),) ")
@example("{}")
@example("()")
def test_the_schema_accepts_every_text_of_a_type(text):
    with suppress(TypeTextError):
        parse_value_type(text, {"P": RecordType("P", (("x", TensorType("f64")),)), "Q_1": RecordType("Q_1", ())})
        assert re.search(stock().schema["$defs"]["Type"]["pattern"], text)


def test_the_layout_byte_for_byte():
    text = """\
{"tidu": 1,
 "meta": {"by": "é"},
 "types": {
  "Segment": {"a": "Point", "b": "Point"},
  "Point": {"x": "f64[]", "at": "datetime[ms][3]", "rest": "({z: f32[]}, bool[])"}},
 "graphs": [
   {"name": "f",
    "inputs":  [{"key": "s", "type": "Segment"}],
    "nodes":   [{"op": "field", "inputs": [0], "attrs": {"name": "a"}, "types": ["Point"]}],
    "outputs": [{"key": "p", "value": 1, "type": "Point"},
                {"key": {"tangent": {"of": "p", "pass": 1}}, "value": null, "type": "Point{x: f64[]}"}]}]}
"""
    assert format_document(read(text.encode()), "json", types=True).decode() == text


def test_types_in_documents_that_declare_none():
    document = read({"tidu": 1, "graphs": [{**EMPTY, "inputs": [{"key": "p", "type": "{x: f64[], t: (datetime[D],)}"}]}]})
    assert written(document)["graphs"][0]["inputs"][0]["type"] == "{x: f64[], t: (datetime[D][],)}"
    with pytest.raises(DocumentError, match=r"input 'p': type: unknown type 'Point'; declare it under 'types'"):
        read({"tidu": 1, "graphs": [{**EMPTY, "inputs": [{"key": "p", "type": "Point"}]}]})


@pytest.mark.parametrize(
    ("types", "message"),
    [
        (None, "d: 'types' must be an object"),
        ({"P": None}, "d: type 'P': must be an object of fields"),
        ({"P": {"x": None}}, "d: type 'P', field 'x': a type is text"),
        ({"P": {"x": "f63[]"}}, r"d: type 'P', field 'x': unknown type 'f63\[\]'; did you mean 'f64'"),
        ({"P": {"x": "datetime[min]"}}, "d: type 'P', field 'x': .*unit of time"),
        ({"P": {"": "f64[]"}}, "d: type 'P', field '': a field cannot be called ''"),
        ({"datetime": POINT}, "a record type cannot be called 'datetime', as a dtype is"),
        ({"A": {"a": "B"}, "B": {"b": "{c: (f64[], A)}"}}, "d: type 'A': is of B of A; a record type cannot be a part of itself"),
        ({"A": {"a": "f64[]", "b": "A{a: f64[]}"}}, "d: type 'A': is of A; a record type cannot be a part of itself"),
        ({"A": {"B": "f64[]"}, "B": {"A": "A"}, "C": {"ms": "datetime[ms]"}, "ms": {"c": "C"}}, None),
        ({f"t{k}": {"x": f"t{k + 1}" if k < 31 else "f64[]"} for k in range(32)}, None),
        ({f"t{k}": {"x": f"t{k + 1}" if k < 32 else "f64[]"} for k in range(33)}, "type 't0': the type t0 nests deeper than 32"),
        ({"A": {f"x{k}": "f64[]" for k in range(1000)}}, None),
        ({"A": {f"x{k}": "f64[]" for k in range(1001)}}, "type 'A': the type A holds more than 1,000 tensors"),
        ({"A": {"x": "f64[288230376151711744]", "y": "f64[576460752303423487]"}}, "larger than any memory"),
        ({"A": {"x": "{}"}}, None),
        ({f"t{k}": {"x": f"t{k + 1}", "y": f"t{k + 1}"} if k < 30 else {"x": "{}"} for k in range(31)}, "more than 1,000 tensors"),
    ],
)
def test_what_types_may_be(types, message):
    data = with_types(types)
    if message is None:
        assert written(read(data))["types"].keys() == types.keys()
        return
    for encoded in (json.dumps(data).encode(), msgpack.packb(data)):
        with pytest.raises(DocumentError, match=message) as raised:
            parse_document(encoded, "d")
        assert len(str(raised.value)) <= 600


@pytest.mark.check
def test_many_types_take_linear_time():
    n = 20_000
    chained = {f"t{k}": {"x": f"t{k + 1}" if k % 30 else "f64[]"} for k in range(n)}
    chained[f"t{n}"] = {"x": "f64[]"}
    document = read(with_types(chained))
    assert len(vocabulary(document.cases).records) == n + 1
    endless = {f"t{k}": {"x": f"t{(k + 1) % n}"} for k in range(n)}
    with pytest.raises(DocumentError, match="part of itself"):
        read(with_types(endless))


def test_inputs_of_two_graphs_must_agree():
    graphs = [{**EMPTY, "name": n, "inputs": [{"key": "p", "type": t}]} for n, t in (("f", "Point"), ("g", "{x: f64[], y: f64[]}"))]
    with pytest.raises(DocumentError, match=r"graph 'g', input 'p': has type \{x: f64\[\], y: f64\[\]\}, but Point in graph 'f'"):
        read({"tidu": 1, "types": TABLE, "graphs": graphs})


def test_bindings_and_detached_values_are_of_records():
    digest = "sha256:" + "0a" * 32
    node = {"op": "field", "inputs": [digest], "attrs": {"name": "x"}, "types": ["f64[]"]}
    f = {
        **EMPTY,
        "name": "f",
        "inputs": [{"key": "p", "type": "Point"}],
        "outputs": [{"key": "o", "value": digest, "type": "Point"}],
    }
    g = {**EMPTY, "name": "g", "inputs": [{"key": "q", "type": "Point"}], "nodes": [node]}
    data = {"tidu": 1, "types": TABLE, "graphs": [f, g], "bindings": [{"input": "q", "value": [0, 0]}]}
    document = read(data)
    assert str(document.detached[0].type) == "Point"
    for format in ("json", "msgpack"):
        assert described(read(format_document(document, format))) == described(document)
    data["types"] = {**TABLE, "Other": POINT}
    data["graphs"][1]["inputs"][0]["type"] = "Other"
    with pytest.raises(DocumentError, match=r"binding of input 'q': the input has type Other, but value \[0, 0\] has type Point"):
        read(data)


def library(types: object, ops: object = None, name: str = "lib.json", **fields: object):
    data = {"tidu": 1, "types": types, **({"ops": ops} if ops else {})}
    return parse_library(json.dumps(data).encode(), name, **fields)


DOUBLE = {
    "inputs": [{"key": "p", "type": "Segment"}, {"key": "x", "type": "f64[]"}],
    "outputs": [{"key": "y", "type": "f64[]"}],
    "forward": {
        "inputs": [{"key": "x"}],
        "nodes": [{"op": "add", "inputs": [0, 0]}],
        "outputs": [{"key": "y", "value": 1}],
    },
}


def test_a_library_brings_types_and_what_is_used_of_them_is_embedded():
    primitives = library({**TABLE, "Unused": {"p": "Point"}})
    data = {"tidu": 1, "graphs": [{**EMPTY, "inputs": [{"key": "p", "type": "{s: Segment}"}]}]}
    document, _ = parse_document(json.dumps(data).encode(), "d", primitives)
    assert list(written(document)["types"]) == ["Segment", "Point"]
    assert described(read(format_document(document, "msgpack"))) == described(read(format_document(document, "json")))
    unused, _ = parse_document(json.dumps({"tidu": 1, "graphs": [EMPTY]}).encode(), "d", primitives)
    assert "types" not in written(unused)


@pytest.mark.parametrize("place", ["tangent", "op", "attrs", "own attrs", "declared"])
def test_every_place_that_names_a_type_counts_as_use(place):
    record = {"op": "record", "inputs": [0, 0], "attrs": {"type": "Point"}}
    ops = {"double": DOUBLE}
    graph, more = {**EMPTY, "inputs": [{"key": "x", "type": "f64[]"}]}, {}
    if place == "tangent":
        graph = {**EMPTY, "outputs": [{"key": "z", "value": None, "type": "{t: Segment{a: f64[]}}"}]}
    elif place == "op":
        more = {"ops": ops}
    elif place == "attrs":
        graph["nodes"] = [record, {"op": "field", "inputs": [1], "attrs": {"name": "x"}}]
    elif place == "declared":
        more = {"types": {"Path": {"first": "Segment"}}}
    else:
        through = {
            "inputs": [{"key": "x", "type": "f64[]"}],
            "outputs": [{"key": "y", "type": "f64[]"}],
            "attrs": {"of": None},
            "forward": {
                "inputs": [{"key": "x"}],
                "nodes": [{**record, "attrs": {"type": {"attr": "of"}}}, {"op": "field", "inputs": [1], "attrs": {"name": "x"}}],
                "outputs": [{"key": "y", "value": 2}],
            },
        }
        graph["nodes"] = [{"op": "through", "inputs": [0], "attrs": {"of": "Point"}}]
        more = {"ops": {"through": through}}
    data = {"tidu": 1, **more, "graphs": [graph]}
    document, _ = parse_document(json.dumps(data).encode(), "d", library(TABLE))
    for format in ("json", "msgpack"):
        assert described(read(format_document(document, format)))[1:] == described(document)[1:]
    assert set(written(document)["types"]) >= ({"Point"} if "attrs" in place else {"Segment", "Point"})


def test_libraries_are_told_from_documents():
    data = json.dumps({"tidu": 1, "types": TABLE}).encode()
    types, _ = parse_subject(data, "lib.json")
    assert list(types.records) == ["Segment", "Point"] and types.origins == {"Segment": "lib.json", "Point": "lib.json"}
    with pytest.raises(DocumentError, match=r"it has types and no graphs: a library, for load\(file, ops=FILE\)"):
        parse_document(data, "lib.json")


def test_two_definitions_of_one_type_are_an_error_that_names_both_origins():
    message = (
        r"type 'Point': the document declares it as \{x: f64\[\]\}, lib.json as \{x: f64\[\], y: f64\[\]\}; rename one of them"
    )
    with pytest.raises(DocumentError, match=message):
        parse_document(json.dumps(with_types({"Point": {"x": "f64[]"}})).encode(), "d", library(TABLE))
    with pytest.raises(DocumentError, match=r"b.json declares it as \(?\{x: f32\[\]\}, a.json as"):
        library({"Point": {"x": "f32[]"}}, name="b.json", primitives=library(TABLE, name="a.json"))
    with pytest.raises(TypeRuleError, match=r"type 'Point': one document declares it as \{z: f64\[\]\}, another as"):
        resolve([read(with_types(TABLE, "Point")), read({**with_types({"Point": {"z": "f64[]"}}, "Point")})])


def test_joined_documents_have_the_types_of_both():
    f = read(with_types(TABLE, "Segment"))
    g = read({**with_types({"Point": POINT, "Other": {"p": "Point"}}), "graphs": [{**EMPTY, "name": "g"}]})
    assert list(written(resolve([f, g]))["types"]) == ["Segment", "Point", "Other"]
    assert list(written(resolve([g, f]))["types"]) == ["Point", "Other", "Segment"]


def test_what_a_document_declares_beside_a_library_is_its_own():
    document, _ = parse_document(json.dumps(with_types({"Point": POINT})).encode(), "d", library(TABLE))
    assert list(written(document)["types"]) == ["Point"]


def test_types_stay_through_materialize_and_inline():
    data = with_types(TABLE, "Segment", "f64[]", ops={"double": DOUBLE})
    data["graphs"][0]["nodes"] = [{"op": "double", "inputs": [0, 1]}, {"op": "field", "inputs": [0], "attrs": {"name": "a"}}]
    data["graphs"][0]["outputs"] = [{"key": "y", "value": 2}, {"key": "a", "value": 3}]
    document = materialize(read(data))
    for made in (document, inline(document)):
        assert list(written(made)["types"]) == ["Segment", "Point"]
        assert described(read(format_document(made, "msgpack"))) == described(made)


def test_documents_without_types_do_not_import_what_reads_them():
    program = """
import sys
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
document, _ = parse_document(sys.stdin.buffer.read(), "stdin")
format_document(document, "msgpack"), format_document(document, "json")
names = ("documents.types", "graph.type_text", "graph.instants", "primitives.record_types", "primitives.records")
assert [name for name in names if f"tidu_cli.{name}" in sys.modules] == []
"""
    node = {"op": "constant", "inputs": [], "attrs": {"value": {"type": "f64[1]", "data": [1]}}}
    data = {
        "tidu": 1,
        "graphs": [{**EMPTY, "inputs": [{"key": "x", "type": "f64[3]"}], "nodes": [node, {"op": "sin", "inputs": [0]}]}],
    }
    subprocess.run([sys.executable, "-c", program], input=json.dumps(data).encode(), check=True)
