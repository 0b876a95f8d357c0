"""Numbers as one types them: what is taken, and that JSON stays what it is."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.running import F, invoke, succeed
from tests.tiers import examples
from tidu_cli.formats.values import parse_assignment
from tidu_cli.formats.values.text import as_json
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import parse_type


def value(text: str, type_: str = "f64[]"):
    return parse_assignment(f"x={text}", [Key("x")], {Key("x"): parse_type(type_)})[1]


@pytest.mark.parametrize(
    ("text", "due"),
    [
        *((".03", 0.03), ("+1", 1), ("1.", 1.0), ("-.5e-3", -0.0005), ("1e5", 1e5), ("1E+5", 1e5), ("007", 7), ("00.5", 0.5)),
        *(("inf", "Infinity"), ("-inf", "-Infinity"), ("+Infinity", "Infinity"), ("nan", "NaN"), ("NaN", "NaN"), ("-nan", "NaN")),
        *(("1+2j", 1 + 2j), ("2j", 2j), ("-j", complex(0, -1)), ("1-.5j", 1 - 0.5j), ("(1e3+2J)", 1e3 + 2j), ("-2.-3.j", -2 - 3j)),
        *(("1,2,3", [1, 2, 3]), (".5, +1., 2", [0.5, 1.0, 2]), ("1,", [1]), ("1,2,", [1, 2]), ("1j,2", [1j, 2])),
        *(("[1,2]", [1, 2]), ("[[.5],[-inf]]", [[0.5], ["-Infinity"]]), ("[1+1j]", [1 + 1j]), ("inf,nan", ["Infinity", "NaN"])),
        *(("true", True), ("True", True), ('{"re": .5, "im": +2}', 0.5 + 2j), ('"NaN"', "NaN"), ("infj", complex(0, math.inf))),
    ],
)
def test_spellings(text, due):
    number = value(text)
    assert number == due and str(number) == str(due)


@settings(max_examples=examples(2000, check=70))
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_json_stays_what_it_is(data):
    for text in (json.dumps(data), json.dumps(data, ensure_ascii=False, indent=1)):
        assert as_json(text) == text.strip()


@given(st.floats(allow_nan=False))
def test_every_float_of_python_is_that_number(x):
    for text in (repr(x), f"{x:+}", f"{x:.0f}." if abs(x) < 1e300 else repr(x)):
        number = value(text)
        assert float(number) == float(text) and math.copysign(1, float(number)) == math.copysign(1, float(text))


@given(st.complex_numbers())
def test_every_complex_number_of_python_is_that_number(z):
    for text in (repr(z), repr(z).strip("()")):
        assert repr(value(text, "c128[]")) == repr(complex(text))


@pytest.mark.parametrize(
    "text", ["three", "1_000", "0x10", "1/3", "1+2i", "1;2", "--1", "1e", ".", "+", "e5", "[one]", "{re: 1}", "1..2"]
)
def test_what_is_no_number_is_told_with_what_is(text):
    result = invoke("eval", F, f"--set=x={text}")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        f"tidu eval: error: --set x: '{text}' is not a value; write 3, .5, 1e-3, inf, 1+2j, a vector 1,2,3, "
        "JSON such as [[1,2],[3,4]], or @FILE.npy\n"
    )


@pytest.mark.parametrize("text", ["", "[1,2", "1 2", "1,,2", "[1],[2]", ",", '"', "{", "1e999"])
def test_what_is_malformed_is_told_in_one_line(text):
    result = invoke("eval", F, f"--set=x={text}")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)


def test_a_file_without_its_mark_is_recognised(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("x.npy", "v.npz"):
        (tmp_path / name).write_bytes(b"")
    for text, told in {
        "x.npy": "did you mean @x.npy?",
        "y.npy": "an array of a file is written @y.npy, and there is none",
        "v.npz": "give a file of values as --inputs v.npz",
    }.items():
        assert invoke("eval", F, "--set", f"x={text}").stderr == f"tidu eval: error: --set x: '{text}' is not a number; {told}\n"


def test_they_are_rounded_once_to_short_floats(tmp_path):
    document = succeed("build", "x * 1", "-i", "x:f32[1]")
    halfway = "1.00000005960464477539062500000001"  # above the middle of two f32, and nearest to it as a double
    assert succeed("eval", "--set", f"x={halfway},", input=document) == succeed("eval", "--set", f"x=[{halfway}]", input=document)
    assert b"1.0000001192092896" in succeed("eval", "--set", f"x=+{halfway},", input=document)
