"""Numbers of files and options: rounded once, to nearest, and refused where they would round to infinity."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.cli.running import invoke
from tests.graphs.sketch import key
from tests.tiers import examples
from tidu_cli.errors import DocumentError, EvaluationError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.values import parse_assignment, read_values
from tidu_cli.formats.write import format_document
from tidu_cli.graph.literals import literal_from_numbers, literal_to_numbers
from tidu_cli.graph.types import TensorType, parse_type
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.runtime.inputs import input_value

BITS = {"f16": (11, -24, 16), "bf16": (8, -133, 128), "f32": (24, -149, 128), "f64": (53, -1074, 1024)}
"""Of each dtype the bits of precision, the exponent of the least number, and that of what is past the greatest."""
X = key("x")
law = settings(max_examples=examples(400))


def rounded(exact: Fraction, dtype: str) -> Fraction | None:
    """To nearest, ties to even, by the definition; None past the range."""
    bits, least, past = BITS[dtype]
    if not exact:
        return Fraction(0)
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > magnitude
    unit = Fraction(2) ** max(exponent - bits + 1, least)
    whole = math.floor(magnitude / unit)
    rest = magnitude / unit - whole
    whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2)
    nearest = whole * unit
    if nearest >= Fraction(2) ** past:
        return None
    return nearest if exact > 0 else -nearest


def halfway(dtype: str) -> st.SearchStrategy[Fraction]:
    """Points between two floats, normal ones or not, and at the end of the range."""
    bits, least, past = BITS[dtype]
    return st.builds(
        lambda whole, exponent: Fraction(2 * whole + 1, 2) * Fraction(2) ** exponent,
        st.integers(0, 2**bits - 1) | st.just(2**bits - 1),
        st.sampled_from([least, least + 1, past - bits, 0, 1, -bits]) | st.integers(least, past - bits),
    )


def decimal_text(exact: Fraction, places: int) -> str:
    """A fraction over a power of two as decimal text, all of it or cut to so many significant digits."""
    digits, power = exact.numerator, 0
    while exact.denominator > 1 and Fraction(digits, exact.denominator).denominator > 1:
        digits, power = digits * 10, power + 1
    text = str(int(Fraction(digits, exact.denominator)))
    if places and places < len(text):
        return f"{text[0]}.{text[1:places]}e{len(text) - 1 - power}"
    return f"{text}e-{power}"


@st.composite
def texts(draw, dtype: str) -> str:
    """Decimal text at, next to or near what is halfway between two floats; or any."""
    point = draw(halfway(dtype))
    text = decimal_text(point, draw(st.sampled_from([0, 0, 16, 17, 18, 25, 40])))
    nudge = draw(st.sampled_from(["", "1", "0" * 30 + "1"]))
    mantissa, _, power = text.partition("e")
    if nudge:
        mantissa = mantissa if "." in mantissa else f"{mantissa}."
    return draw(st.sampled_from(["", "-"])) + f"{mantissa}{nudge}e{power}"


def check(text: str, dtype: str, given_value: object) -> None:
    """That a value read from text is what the definition says, or refused."""
    type_ = TensorType(dtype)
    expected = rounded(Fraction(text), dtype)
    if expected is None:
        with pytest.raises(EvaluationError, match=r"out of (its )?range"):
            input_value("input x", type_, given_value)
        return
    number = float(input_value("input x", type_, given_value))
    assert Fraction(number) == expected and (number or math.copysign(1, number) == math.copysign(1, float(text)))


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
@settings(law, max_examples=examples(400, check=70))
@given(data=st.data())
def test_text_rounds_once(dtype, data):
    text = data.draw(texts(dtype))
    type_ = TensorType(dtype)
    check(text, dtype, parse_assignment(f"x={text}", [X], {X: type_})[1])
    check(text, dtype, read_values(f'{{"x": {text}}}'.encode(), "v", {X: type_})[X])


WHOLE = st.integers(-(2**130), 2**130) | st.builds(
    lambda a, b, c: a * 2**b + c, st.integers(0, 2**54), st.integers(0, 99), st.integers(-1, 1)
)


@pytest.mark.parametrize("dtype", sorted(BITS))
@law
@given(n=WHOLE)
@example(n=2**53 + 1)
@example(n=2**24 + 1)
@example(n=(2**25 + 1) * 2**40 + 1)
@example(n=65520)
@example(n=65519)
def test_integers_round_once(dtype, n):
    check(str(n), dtype, parse_assignment(f"x={n}", [X], {X: TensorType(dtype)})[1])


@pytest.mark.parametrize("dtype", ["i64", "u64"])
@pytest.mark.parametrize("n", [2**53 + 1, 2**63 - 1, 2**62 + 1])
def test_integers_stay_integers(dtype, n):
    type_ = TensorType(dtype)
    assert int(input_value("x", type_, parse_assignment(f"x={n}", [X], {X: type_})[1])) == n


HALF = "1.00000005960464477540000000001"
"""Just above halfway between 1 and the next f32; as a double, halfway, from where ties go to 1."""
NEXT = 1 + 2.0**-23


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        ("f32[2]", f"[1, {HALF}]", [1.0, NEXT]),
        ("f32[2]", f'{{"type": "f32[2]", "data": [1, {HALF}]}}', [1.0, NEXT]),
        ("c64[]", f'{{"re": {HALF}, "im": {HALF}}}', complex(NEXT, NEXT)),
        ("c64[1]", f'[{{"re": 16777217, "im": {2**60 + 2**36 + 1}}}]', [complex(2**24, 2**60 + 2**37)]),
        ("f64[]", HALF, float(HALF)),
    ],
)
def test_wherever_it_stands(type_, text, expected):
    declared = {X: parse_type(type_)}
    for given_value in (
        parse_assignment(f"x={text}", [X], declared)[1],
        read_values(f'{{"x": {text}}}'.encode(), "v", declared)[X],
    ):
        assert input_value("x", declared[X], given_value).tolist() == expected


def test_constants_of_documents_round_once_and_are_written_as_they_are():
    wide = {"op": "constant", "inputs": [], "attrs": {"value": {"type": "f64[1]", "data": [0.125]}}}
    short = {"op": "constant", "inputs": [], "attrs": {"value": {"type": "f32[2]", "data": [1, 0.125]}}}
    outputs = [{"key": "y", "value": 0}, {"key": "z", "value": 1}]
    graph = {"name": "f", "meta": {"m": [0.125]}, "inputs": [], "nodes": [short, wide], "outputs": outputs}
    text = json.dumps({"tidu": 1, "graphs": [graph]}).replace("0.125", HALF)
    document, _ = parse_document(text.encode(), "test")
    assert literal_to_numbers(document.head.case(0).attrs.value) == [1.0, NEXT]
    assert literal_to_numbers(document.head.case(1).attrs.value) == document.head.meta["m"] == [float(HALF)]
    again, _ = parse_document(format_document(document, "json"), "test")
    assert again.head.case(0).attrs.value == document.head.case(0).attrs.value


SHAPES = ("%s", "[1, %s]", "[[1], [%s]]", '{"type": "f64[1]", "data": [%s]}', '{"re": 1, "im": %s}', '["NaN", %s]')


@pytest.mark.parametrize("text", ["1e400", "-1e400", "1e9999999999999", "9" * 400 + ".0", "0.1e310"])
@pytest.mark.parametrize("dtype", ["f64", "f32", "bf16"])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_beyond_every_float_is_refused_with_key_and_text(text, dtype, shape):
    value = shape % text
    shown = text if len(text) <= 40 else text[:37]
    for read, place in (
        (lambda: parse_assignment(f"x={value}", [X], {X: TensorType(dtype)}), "--set x: the number "),
        (lambda: read_values(f'{{"a": 1, "x": {value}}}'.encode(), "v.json", {X: TensorType(dtype)}), "v.json: x: the number "),
    ):
        with pytest.raises(DocumentError) as caught:
            read()
        assert str(caught.value).startswith(place + shown) and "Infinity" in str(caught.value)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "c64", "f64", "c128"])
def test_infinity_that_is_spelled_out_is_meant(dtype):
    for spelled, expected in (("Infinity", math.inf), ("-Infinity", -math.inf)):
        value = parse_assignment(f'x="{spelled}"', [X], {X: TensorType(dtype)})[1]
        assert input_value("x", TensorType(dtype), value).real == expected
        assert input_value("x", TensorType(dtype), expected).real == expected  # as Python has it


@pytest.mark.parametrize(("dtype", "number"), [("f32", 1e39), ("f16", 65520), ("bf16", 3.4e38), ("c64", -1e39)])
def test_constants_past_the_range_are_refused(dtype, number):
    data = [number, 0] if dtype == "c64" else [number]
    text = json.dumps({"type": f"{dtype}[]", "data": data})
    with pytest.raises(DocumentError, match="is out of its range"):
        parse_assignment(f"x={text}", [X], {X: TensorType(dtype)})
    node = {"op": "constant", "inputs": [], "attrs": {"value": {"type": f"{dtype}[]", "data": data}}}
    graph = {"name": "f", "inputs": [], "nodes": [node], "outputs": [{"key": "y", "value": 0}]}
    with pytest.raises(DocumentError, match="is out of its range"):
        parse_document(json.dumps({"tidu": 1, "graphs": [graph]}).encode(), "test")


@pytest.mark.parametrize(
    ("formula", "type_", "message"),
    [
        ("1e400*x", "f64[]", "formula, column 1: the number 1e400 is beyond every float; write inf"),
        ("x + 2j*1e999j", "c128[]", "formula, column 8: the number 1e999j is beyond every float; write inf"),
        ("1e39*x", "f32[]", "the number 1e+39 is out of the range of f32"),
        ("x - 70000", "f16[]", "the number 70000 is out of the range of f16"),
    ],
)
def test_formulas_hold_no_number_that_is_none(formula, type_, message):
    result = invoke("build", formula, "-i", f"x:{type_}")
    assert result.exit_code == 1 and message in result.stderr and result.stdout == ""
    assert '"Infinity"' in invoke("build", "inf*x", "-i", "x:f32[]").stdout


def test_doubles_are_read_without_looking_at_their_text(monkeypatch):
    def refused(text):
        raise AssertionError(text)

    monkeypatch.setattr("tidu_cli.formats.values.reading.number", refused)
    assert read_values(b'{"x": [1.5, 2.5]}', "v", {X: parse_type("f64[2]")})[X] == [1.5, 2.5]
    with pytest.raises(AssertionError):
        read_values(b'{"x": [1.5, 2.5]}', "v", {X: parse_type("f32[2]")})


def test_literals_from_python_are_rounded_once():
    wide = 2**60 + 2**36 + 1  # as a double, halfway between two f32
    (number,) = literal_to_numbers(literal_from_numbers(TensorType("f32"), [wide]))
    assert number == 2.0**60 + 2.0**37 and numpy_dtype(np, "f32").type(float(wide)) == 2.0**60
