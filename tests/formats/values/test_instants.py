"""Points in time as text: NumPy's text and NumPy's counts, in every unit; and constants of times in both formats."""

import json

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.plain import read
from tidu_cli.errors import TypeTextError
from tidu_cli.formats.write import format_document
from tidu_cli.graph.literals import Literal, literal_from_numbers, literal_to_numbers
from tidu_cli.graph.text import NOT_A_TIME, instant_from_text, instant_to_text
from tidu_cli.graph.types import UNITS, TensorType, parse_type

units = st.sampled_from(UNITS)
counts = st.builds(lambda n, shift: n >> shift, st.integers(-(2**63) + 1, 2**63 - 1), st.integers(0, 62))


def in_years_of_four_digits(count: int, unit: str) -> bool:
    year = np.array(count, f"M8[{unit}]").astype("M8[Y]").astype(int) + 1970
    return bool(0 <= year <= 9999)


@given(counts, units)
def test_text_is_numpys(count, unit):
    if unit in ("h", "m") and abs(count) > 2**56:
        return  # NumPy itself overflows
    text = instant_to_text(count, unit)
    if text is None:
        assert not in_years_of_four_digits(count, unit)
    else:
        assert text == np.datetime_as_string(np.array(count, f"M8[{unit}]"))


@given(counts, units)
def test_text_reads_back(count, unit):
    text = instant_to_text(count, unit)
    assert text is None or instant_from_text(text, unit) == count


@given(st.datetimes(), st.sampled_from(["s", "ms", "us"]))
def test_reads_what_numpy_reads(instant, unit):
    text = instant.replace(microsecond=0).isoformat()
    assert instant_from_text(text, unit) == np.datetime64(text, unit).astype(int)


@given(st.dates(), st.sampled_from(["D", "h", "m", "s", "ms", "us"]))
def test_dates_are_read_in_all_units_that_hold_them(date, unit):
    text = date.isoformat()
    day = np.datetime64(text, "D")
    assert instant_from_text(text, unit) == day.astype(f"M8[{unit}]").astype(int)


@pytest.mark.parametrize(
    ("text", "unit", "count"),
    [
        ("2026", "D", 20454),
        ("2026-03", "D", 20513),
        ("1970-01-01T00:00:00.000000001000000000", "ns", 1),
        ("2026-01-31T12Z", "h", 491628),
        ("2026-01-31 12:30", "m", 29497710),
        ("1970-01-01T02:00:00+02:00", "s", 0),
        ("1969-12-31T23:00:00-01:30", "m", 30),
        ("1970-01-01T00:00:00.25", "ms", 250),
        ("1970-01-01T00:00:01.000000", "s", 1),
        ("0000-02-29", "D", -719469),
    ],
)
def test_forms_of_text(text, unit, count):
    assert instant_from_text(text, unit) == count


@pytest.mark.parametrize(
    ("text", "unit", "reason"),
    [
        ("NaT", "s", "NaT is not a time"),
        ("now", "s", "'now' is not a time; write it as 2026-01-31"),
        ("2026-1-1", "D", "is not a time"),
        ("26-01-01", "D", "is not a time"),
        ("2026-13-01", "D", "there is no such day"),
        ("2026-02-29", "D", "there is no such day"),
        ("1900-02-29", "D", "there is no such day"),
        ("2026-01-31T24", "h", "there is no such day or hour"),
        ("2026-01-31T23:59:60", "s", "there is no such day or hour"),
        ("2026-01-31T01", "D", "finer than the unit D"),
        ("1970-01-01T00:00:00.0001", "ms", "finer than the unit ms"),
        ("1970-01-01T00:00:00.000000001000000001", "ns", "finer than the unit ns"),
        ("9999-01-31", "ns", "64 bits"),
        ("２026", "D", "is not a time"),
    ],
)
def test_what_is_no_time_is_refused(text, unit, reason):
    with pytest.raises(TypeTextError, match=reason):
        instant_from_text(text, unit)


@given(st.lists(counts, max_size=20), units)
def test_constants_of_datetimes_round_trip(elements, unit):
    literal = literal_from_numbers(TensorType(f"datetime[{unit}]", (len(elements),)), list(elements))
    assert literal.data == np.array(elements, "<i8").tobytes()
    assert literal_from_numbers(literal.type, literal_to_numbers(literal)) == literal
    document = read(one_constant({"type": str(literal.type), "data": elements}))
    for format in ("json", "msgpack"):
        assert read(format_document(document, format)).cases[0].attrs.value == literal


def test_constants_of_durations_are_doubles():
    literal = literal_from_numbers(parse_type("duration[h][3]"), [1, 0.1, "NaN"])
    assert np.frombuffer(literal.data, "<f8")[:2].tolist() == [1.0, 0.1]
    assert literal_to_numbers(literal) == [1.0, 0.1, "NaN"]


def one_constant(value: object) -> dict:
    node = {"op": "constant", "inputs": [], "attrs": {"value": value}}
    return {"tidu": 1, "graphs": [{"name": "f", "inputs": [], "nodes": [node], "outputs": []}]}


def test_constants_are_text_in_json_and_bytes_in_msgpack():
    document = read(one_constant({"type": "datetime[D]", "data": ["2026-01-31"]}))
    (node,) = json.loads(format_document(document, "json"))["graphs"][0]["nodes"]
    assert node["attrs"]["value"] == {"type": "datetime[D][]", "data": ["2026-01-31"]}
    (row,) = msgpack.unpackb(format_document(document, "msgpack"))["graphs"][0]["nodes"]["table"]
    assert row["attrs"]["value"] == {"type": "datetime[D][]", "data": (20484).to_bytes(8, "little")}


def test_no_constant_is_nat():
    type_ = parse_type("datetime[s][1]")
    with pytest.raises(TypeTextError, match="NaT"):
        Literal(type_, NOT_A_TIME.to_bytes(8, "little", signed=True))
    with pytest.raises(TypeTextError, match="out of range"):
        literal_from_numbers(type_, [2**63])
    with pytest.raises(TypeTextError, match="neither ISO 8601 text"):
        literal_from_numbers(type_, [True])
