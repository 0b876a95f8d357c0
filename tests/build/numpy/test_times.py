"""Points in time and spans of time in formulas and in functions: NumPy's arithmetic, but that spans are real numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tidu_cli
from tidu_cli.adapters.numpy.data import with_data
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.formulas.formula import build_formula
from tidu_cli.graph.text import parse_value_type
from tidu_cli.port_data import Data, Static

T = np.array(["2026-01-01T09:30", "1969-12-31T23:59:58", "2026-03-01T12:00"], "M8[s]")
DUE = np.array(["2026-01-01T09:00:00.250", "2000-02-29T00:00", "2026-03-01T12:00"], "M8[ms]")
SPAN = np.array([5400, -7, 0], "m8[s]")
HOUR = np.timedelta64(1, "h")

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "difference": lambda t, due, d: t - due,
    "moved": lambda t, due, d: t + d,
    "moved by a constant": lambda t, due, d: np.timedelta64(90, "m") + due,
    "moved back": lambda t, due, d: t - d,
    "from a constant": lambda t, due, d: np.datetime64("2026-01-01T00:00", "m") - t,
    "a constant array": lambda t, due, d: t - DUE[::-1],
    "spans": lambda t, due, d: d + (t - due) - HOUR,
    "number of hours": lambda t, due, d: (t - due) / HOUR,
    "ratio of spans": lambda t, due, d: d / (due - t + HOUR),
    "scaled": lambda t, due, d: 4 * d * 0.5,
    "integers that scale": lambda t, due, d: d * np.arange(3),
    "negative": lambda t, due, d: -d,
    "magnitude": lambda t, due, d: abs(t - due),
    "compared": lambda t, due, d: (t <= due) & (d > np.timedelta64(0, "s")) | (t == due),
    "in seconds, as an integer": lambda t, due, d: d + 5,
    "chosen": lambda t, due, d: np.where(t > due, t, due),
    "later": lambda t, due, d: np.maximum(t, due),
    "last": lambda t, due, d: np.concatenate([t, due]).max(),
    "sum": lambda t, due, d: d.sum(),
    "element": lambda t, due, d: (t[1:] - t[0])[::-1],
    "in another unit": lambda t, due, d: t.astype("M8[ms]"),
    "finite": lambda t, due, d: np.isfinite(d),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_numpys(name: str) -> None:
    function = FUNCTIONS[name]
    due = np.asarray(function(T, DUE, SPAN))
    document = tidu_cli.trace(function, t=T, due=DUE, d=SPAN)
    type_ = str(document.head.outputs[0].type)
    assert due.dtype.kind not in "mM" or f"[{np.datetime_data(due.dtype)[0]}]" in type_, type_
    values = tidu_cli.evaluate(document, t=T, due=DUE, d=SPAN)[document.head.outputs[0].key.name]
    expected = due.astype(np.int64).astype(float) if due.dtype.kind == "m" else due
    np.testing.assert_array_equal(values, expected)


HOURS = "exp(-(t - due) / timedelta64(1, 'h'))"
TYPES = {"t": parse_value_type("datetime[s]"), "due": parse_value_type("datetime[ms]")}


def test_the_gradient_by_a_time_is_per_unit_of_it() -> None:
    at = {"t": np.datetime64("2026-01-01T10:30", "s"), "due": np.datetime64("2026-01-01T09:00", "ms")}
    document = build_formula(HOURS, TYPES)
    gradient = tidu_cli.evaluate(tidu_cli.grad(document, ["t", "due"]), at)
    assert gradient["t@-1"] == pytest.approx(-np.exp(-1.5) / 3600, rel=1e-15)
    assert gradient["due@-1"] == pytest.approx(np.exp(-1.5) / 3_600_000, rel=1e-15)


@pytest.mark.parametrize(
    ("formula", "due"),
    [
        ("(t - datetime64('2026-01-01')) / timedelta64(1, 'h')", 10.5),
        ("(t - datetime64('2026-01-01T00:00:00.001', unit='ms')) / timedelta64(1, 'ms')", 37_799_999),
        ("t + 2.5 * timedelta64(1, 'D')", np.datetime64("2026-01-03T22:30", "s")),
        ("convert(t - due, 'duration[m]') / timedelta64(0.5, 'm')", 180),
        ("where(t > due, t, due)", np.datetime64("2026-01-01T10:30", "s")),
    ],
)
def test_formulas(formula: str, due: Any) -> None:
    at = {"t": np.datetime64("2026-01-01T10:30", "s"), "due": np.datetime64("2026-01-01T09:00", "ms")}
    document = build_formula(formula, {k: type_ for k, type_ in TYPES.items() if re.search(rf"\b{k}\b", formula)})
    assert tidu_cli.evaluate(document, {str(i.key): at[str(i.key)] for i in document.head.inputs})["y"] == due


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("exp(t - due)", "column 1: exp does not take duration[ms]; x / np.timedelta64(1, 'h') is a number of hours"),
        ("(t - due) + 1.5", "add does not take duration[ms], a Python float"),
        ("(t - due) ** 2", "power does not take duration[ms], a Python int"),
        ("t + due", "add does not take datetime[s], datetime[ms]"),
        ("timedelta64(1, 'Y')", "the unit of a time is one of D, h, m, s, ms, us, ns"),
        ("timedelta64('h')", "a span of time is a number and a unit"),
        ("datetime64(1)", "a point in time is text"),
        ("datetime64('now')", "'now' is not a time; write it as 2026"),
        ("datetime64('NaT')", "NaT is not a time"),
        ("datetime64('2026-01-01T00:30', 'h')", "is finer than the unit h"),
        ("convert(t, 'datetime[Y]')", "not a dtype"),
    ],
)
def test_what_formulas_refuse(formula: str, message: str) -> None:
    with pytest.raises(BuildError, match=re.escape(message)):
        build_formula(formula, TYPES)


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        ("2026-01-01T09:30", "datetime[s][]"),
        (["2026-01-01", "2026-01-01T09:30:00.25"], "datetime[ms][2]"),
        ([["2026-01-01T09:30:00.000000001"]], "datetime[ns][1,1]"),
        (DUE, "datetime[ms][3]"),
        (SPAN, "duration[s][3]"),
    ],
)
def test_data_say_that_an_input_is_a_time(value: Any, type_: str) -> None:
    assert str(build_formula("t", {}, data=Data({"t": value})).head.inputs[0].type) == type_
    given = with_data(lambda t, mode="2026-01-01": t, {}, Data({"t": value, "mode": "2026-01-01"}))
    assert str(given["t"]) == type_ and isinstance(given["mode"], Static)


@pytest.mark.parametrize("constant", [np.timedelta64(1, "Y"), np.timedelta64(1), np.datetime64("NaT", "s")])
def test_constants_that_are_no_times_are_refused(constant: Any) -> None:
    with pytest.raises(BuildError, match=r"times have a unit|NaT"):
        tidu_cli.trace(lambda t: t - constant, t="datetime[s]")
