"""Type patterns: what they stand for, with tensors of numbers and of times, and records, which have no variables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidu_cli.custom.patterns import TensorPattern, fits, instance, match_all, parse_pattern, variables_of
from tidu_cli.errors import TypeRuleError, TypeTextError
from tidu_cli.graph.keys import Key
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import ITEMSIZE, TIMES, RecordType, TensorType

P, X = Key("p"), Key("x")
RECORDS = {"Point": RecordType("Point", (("x", TensorType("f64")),))}


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("f64[3]", "f64[3]"),
        ("f64[n, m,3]", "f64[n,m,3]"),
        ("T[...]", "T[...]"),
        ("datetime[ms][n]", "datetime[ms][n]"),
        ("duration[h][n,...]", "duration[h][n,...]"),
        ("datetime[D]", "datetime[D][]"),
        ("Point", "Point"),
        ("Point{x: f64[]}", "Point{x: f64[]}"),
        ("{x:f64[],t:datetime[D]}", "{x: f64[], t: datetime[D][]}"),
        ("(Point,)", "(Point,)"),
    ],
)
def test_patterns_are_their_text(text, canonical):
    pattern = parse_pattern(text, RECORDS)
    assert str(pattern) == canonical and parse_pattern(canonical, RECORDS) == pattern


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f64", r"unknown type 'f64'; types are dtype\[shape\]; did you mean 'f64\[\]'"),
        ("f63[n]", r"unknown type 'f63\[n\]'; did you mean 'f64'"),
        ("f64[N]", "a size is a number, a name of small letters"),
        ("f64[...,...]", "may stand once"),
        ("datetime[n][n]", "unknown type"),
        ("datetime[n]", "unit of time"),
        ("Pont", "unknown type 'Pont'; did you mean 'Point'"),
        ("{x: f64[n]}", "unknown type"),
        ("(T[],)", "unknown type"),
        ("f64[9999999999999999999]", "larger than any memory"),
        ("f64[999999999999999999,9]", "larger than any memory"),
    ],
)
def test_malformed_patterns_are_refused(text, message):
    with pytest.raises(TypeTextError, match=message):
        parse_pattern(text, RECORDS)


def test_without_record_types_messages_speak_of_tensors():
    with pytest.raises(TypeTextError, match=r"unknown type 'Point'; write dtype\[shape\], such as f64\[3\], f64\[n,m\]"):
        parse_pattern("Point", {})


shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)
tensor_types = st.builds(TensorType, st.sampled_from([*ITEMSIZE, *sorted(TIMES)]), shapes)


@st.composite
def generalized(draw):
    """A type, a pattern that it fits, and what the pattern's variables then are."""
    type_ = draw(tensor_types)
    variables: dict[str, object] = {}
    sizes: list[int | str] = []
    for n in type_.shape:
        names = [name for name in "abcd" if variables.get(name, n) == n]
        name = draw(st.sampled_from([None, *names]))
        if name is not None:
            variables[name] = n
        sizes.append(n if name is None else name)
    if draw(st.booleans()):
        start = draw(st.integers(0, len(sizes)))
        end = draw(st.integers(start, len(sizes)))
        sizes[start:end] = ["..."]
        variables = {name: n for name, n in variables.items() if name in sizes} | {"...": type_.shape[start:end]}
    dtype = type_.dtype
    if draw(st.booleans()):
        dtype, variables["T"] = "T", type_.dtype
    return type_, TensorPattern(dtype, tuple(sizes)), variables


@given(generalized())
def test_a_pattern_fits_what_it_generalizes_and_gives_it_back(drawn):
    type_, pattern, variables = drawn
    assert parse_pattern(str(pattern), {}) == pattern
    assert match_all({X: pattern}, [type_]) == variables
    assert set(variables_of(pattern)) == set(variables)
    assert instance(pattern, variables) == type_


def test_records_fit_themselves_only():
    point, spelled_out = RECORDS["Point"], parse_value_type("{x: f64[]}")
    any_tensor = parse_pattern("T[...]", RECORDS)
    assert fits(point, point, {}) and instance(point, {}) == point and variables_of(point) == []
    assert not fits(point, spelled_out, {}) and not fits(any_tensor, point, {}) and not fits(point, TensorType("f64"), {})
    assert match_all({P: point, X: any_tensor}, [point, TensorType("f64", (2,))]) == {"T": "f64", "...": (2,)}
    with pytest.raises(TypeRuleError, match=r"input 'p' is \{x: f64\[\]\}, which does not fit Point$"):
        match_all({P: point}, [spelled_out])
    with pytest.raises(TypeRuleError, match=r"input 'x' is Point, which does not fit T\[\.\.\.\]$"):
        match_all({X: any_tensor}, [point])
