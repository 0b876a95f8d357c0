"""Values files with records, tuples and times: what is written reads back as the same values, in every format."""

from __future__ import annotations

import io
import json
import re

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from tidu_cli.errors import DocumentError
from tidu_cli.formats.values import parse_assignment, read_values, write_values
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import RecordType, TensorType, Type
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.runtime.inputs import input_value

LEAVES = [
    "f64[]",
    "f32[2]",
    "c128[1]",
    "bool[]",
    "i64[2,1]",
    "bf16[3]",
    "datetime[ms][2]",
    "datetime[D][]",
    "duration[h][1]",
    "u8[0]",
]
WORDS = st.sampled_from(["x", "y", "re", "im", "type", "data", "base64", "t_0"])


def _nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    records = st.dictionaries(WORDS, inner, min_size=1, max_size=3)
    tuples = st.lists(inner, min_size=1, max_size=3)
    return records.map(lambda fields: f"{{{', '.join(f'{k}: {t}' for k, t in fields.items())}}}") | tuples.map(
        lambda items: f"({', '.join(items)},)"
    )


types = st.recursive(st.sampled_from(LEAVES), _nested, max_leaves=5).map(parse_value_type)


@st.composite
def values_of(draw, type_: Type):
    """A value as evaluation has it: arrays of what holds times, and tuples."""
    if isinstance(type_, RecordType):
        return tuple(draw(values_of(field)) for _, field in type_.fields)
    dtype = numpy_dtype(np, type_.dtype)
    if dtype.kind in "fcV":
        numbers = st.floats(-1e4, 1e4, width=16)
    else:
        numbers = st.integers(0, 1) if dtype.kind in "b" else st.integers(0, 200)
    elements = draw(st.lists(numbers, min_size=type_.size, max_size=type_.size))
    return np.array(elements, float if dtype.kind in "fcV" else dtype).astype(dtype).reshape(type_.shape)


@st.composite
def named_values(draw):
    keys = draw(st.lists(st.sampled_from(["p", "q", "p@1", "a.b", "é"]), min_size=1, max_size=3, unique=True))
    of = {parse_key(key): draw(types) for key in keys}
    return of, {key: draw(values_of(type_)) for key, type_ in of.items()}


def outside(type_: Type, value):
    """A value as the Python API has it."""
    if isinstance(type_, RecordType):
        fields = {name: outside(field, part) for (name, field), part in zip(type_.fields, value, strict=True)}
        return tuple(fields.values()) if type_.is_tuple else fields
    return value.view(type_.dtype.replace("datetime", "M8")) if type_.dtype.startswith("datetime") else value


def same(type_: Type, a, b) -> bool:
    if isinstance(type_, RecordType):
        return all(same(field, x, y) for (_, field), x, y in zip(type_.fields, a, b, strict=True))
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("format", ["json", "npz", "msgpack"])
@settings(max_examples=examples(2000, check=65))
@given(named_values())
def test_what_is_written_reads_back(format, drawn):
    of, values = drawn
    data = write_values(values, format, of)
    assert data == write_values({key: outside(of[key], value) for key, value in values.items()}, format, of)
    again = read_values(data, "v", of)
    assert list(again) == list(of)
    for key, type_ in of.items():
        assert same(type_, input_value(f"input {key}", type_, again[key]), values[key])


@pytest.mark.parametrize("format", ["json", "npz", "msgpack"])
@settings(max_examples=examples(2000, check=40))
@given(named_values())
def test_files_may_hold_records_that_no_input_is(format, drawn):
    of, values = drawn
    data = write_values({**values, Key("x"): np.float64(3)}, format, {**of, Key("x"): TensorType("f64")})
    assert read_values(data, "v", {Key("x"): TensorType("f64")})[Key("x")] is not None


POINT = parse_value_type("{x: f64[], at: datetime[ms][2], d: (duration[h][], c64[])}")
VALUE = (np.array(1.5), np.array([0, 1769860800000]), (np.array(0.1), np.array(1 + 2j, "c8")))
P = Key("p")


def test_json_looks_as_promised():
    assert write_values(
        {P: VALUE, parse_key("p@1"): None}, "json", {P: POINT, parse_key("p@1"): parse_value_type("{x: f64[2]}")}
    ) == (
        b'{"p": {"x": 1.5, "at": ["1970-01-01T00:00:00.000", "2026-01-31T12:00:00.000"], "d": [0.1, {"re": 1.0, "im": 2.0}]}, '
        b'"p@1": {"x": [0.0, 0.0]}}\n'
    )


def test_times_beyond_four_digits_are_integers_in_json():
    type_ = TensorType("datetime[D]", (2,))
    text = write_values({P: np.array([2932896, 2932897])}, "json", {P: type_})
    assert text == b'{"p": ["9999-12-31", 2932897]}\n'
    assert read_values(text, "v", {P: type_})[P] == ["9999-12-31", 2932897]


def test_npz_is_what_numpy_reads():
    loaded = np.load(io.BytesIO(write_values({P: VALUE}, "npz", {P: POINT})))
    assert {name: loaded[name].dtype.str for name in loaded} == {"p.x": "<f8", "p.at": "<M8[ms]", "p.d.0": "<f8", "p.d.1": "<c8"}
    assert loaded["p.at"].astype(str).tolist() == ["1970-01-01T00:00:00.000", "2026-01-31T12:00:00.000"]


def test_msgpack_types_every_tensor():
    record = msgpack.unpackb(write_values({P: VALUE}, "msgpack", {P: POINT}))["p"]
    assert record["at"] == {"type": "datetime[ms][2]", "data": np.array([0, 1769860800000], "<i8").tobytes()}
    assert record["d"][0]["type"] == "duration[h][]" and record["d"][1]["type"] == "c64[]"


def npz(**arrays: object) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def test_members_of_npz_go_to_the_record_of_the_longest_name():
    inner = parse_value_type("{x: f64[], y: {x: f64[]}}")
    data = npz(**{"p.x": 1.0, "p.y.x": 2.0, "p.q.x": 3.0, "r.x": 4.0, "s@2.x": 5.0, "s@2.y.z": 6.0})
    of = {P: inner, Key("p.q"): inner, Key("r.x"): TensorType("f64"), Key("r"): inner}
    values = read_values(data, "v", of)
    assert values == {P: {"x": 1.0, "y": {"x": 2.0}}, Key("p.q"): {"x": 3.0}, Key("r.x"): 4.0}


def test_an_input_of_that_name_comes_first():
    assert read_values(npz(**{"p.x": 1.0}), "v", {P: POINT, Key("p.x"): TensorType("f64")}) == {Key("p.x"): 1.0}
    assert read_values(npz(**{"p.x": 1.0}), "v", {P: TensorType("f64")}) == {}, "it is none of the inputs"


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"p": 1.0, "p.x": 1.0}, "v: the key p.x occurs twice"),
        ({"p.x": 1.0, "p": 1.0}, "v: the key p occurs twice"),
        ({"p.x": 1.0, "p.x.y": 1.0}, "v: the key p.x.y occurs twice"),
        ({"p.x.y": 1.0, "p.x": 1.0}, "v: the key p.x occurs twice"),
        ({"p@.x": 1.0}, "v: malformed key 'p@"),
        ({"p@x.y": 1.0}, "v: malformed key 'p@x"),
    ],
)
def test_malformed_members_are_refused(members, message):
    with pytest.raises(DocumentError, match=re.escape(message)):
        read_values(npz(**members), "v", {P: POINT})


def test_two_values_of_one_name_in_npz_are_refused():
    of = {P: parse_value_type("{x: f64[]}"), Key("p.x"): TensorType("f64")}
    values = {P: (np.float64(1),), Key("p.x"): np.float64(2)}
    with pytest.raises(DocumentError, match=r"two values would be called 'p.x' in an npz file; write JSON or msgpack"):
        write_values(values, "npz", of)
    assert json.loads(write_values(values, "json", of)) == {"p": {"x": 1.0}, "p.x": 2.0}


def test_objects_are_what_the_type_says():
    of = {P: parse_value_type("{re: f64[], im: {type: f64[], data: (f64[],)}}"), Key("z"): TensorType("c128")}
    text = b'{"p": {"re": 1, "im": {"type": 2, "data": [{"type": "f64[]", "data": [3]}]}}, "z": {"re": 1, "im": 2}}'
    values = read_values(text, "v", of)
    assert values[P]["re"] == 1 and values[P]["im"]["type"] == 2 and str(values[P]["im"]["data"][0].type) == "f64[]"
    assert values[Key("z")] == 1 + 2j
    with pytest.raises(DocumentError, match=r"v: p\.im\.data\.0: unknown type"):
        read_values(b'{"p": {"im": {"data": [{"type": "f99[]", "data": []}]}}}', "v", of)
    with pytest.raises(DocumentError, match=r"v: z: an object is a complex number"):
        read_values(b'{"z": {"x": 1}}', "v", of)


def test_assignments_of_times_need_no_quotes():
    of = {Key("t"): TensorType("datetime[ms]"), Key("x"): TensorType("f64"), P: POINT}
    assert parse_assignment("t=2026-01-31T12:00", of, of) == (Key("t"), "2026-01-31T12:00")
    assert parse_assignment('t="2026-01-31"', of, of) == (Key("t"), "2026-01-31")
    assert parse_assignment("t=2026", of, of) == (Key("t"), 2026)
    assert parse_assignment('p={"x": 1, "d": [1, {"re": 1, "im": 2}]}', of, of) == (P, {"x": 1, "d": [1, 1 + 2j]})
    with pytest.raises(DocumentError, match=r"--set x: .2026-01-31. is not a value"):
        parse_assignment("x=2026-01-31", of, of)
