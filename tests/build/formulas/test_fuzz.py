"""Formulas that nobody would write: each gives a document or a FormulaError, executes nothing, and costs little."""

from __future__ import annotations

import contextlib
import difflib
import json
import sys
import time
import tracemalloc
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build.comparing import assert_same, run, type_of
from tests.fuzz.inputs.formulas import OPTIONS
from tests.tiers import examples
from tidu_cli.adapters.numpy.formulas.formula import build_formula, function_names
from tidu_cli.errors import TiduError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.types import parse_type
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.fields import Data, layout_of

IMPORTED_LATER = (difflib, ml_dtypes, scipy.special)
"""What tidu imports when it is first wanted; here it is there already, so that any import is the formula's doing."""

classes = [primitive.domain.attrs for primitive in BUILTIN] + Data.__subclasses__()
for data in classes:
    layout_of(data)  # annotations are evaluated when they are first wanted
    classes += data.__subclasses__()

with contextlib.suppress(TiduError):
    BUILTIN.parse_attrs("integer_pow", {"y": "no number"})  # pydantic says what is wrong, and is imported for that

watching = False
seen: list[str] = []


def watch(event: str, args: tuple[object, ...]) -> None:
    """Python tells of all it does: imports, files, processes, sockets, compiling and executing code."""
    if watching and event.split(".")[0] in ("compile", "exec", "import", "open", "os", "subprocess", "socket", "ctypes", "pickle"):
        if event in ("compile", "open") and "<unknown>" in args[:2]:
            return  # ast.parse, which where it fails looks for the line in a file of this name
        if "<methods of " in str(args[:2]):
            return  # of a class of tidu's own, of which many objects have been made
        seen.append(f"{event} {args[:2]}")


sys.addaudithook(watch)


@contextlib.contextmanager
def nothing_is_executed() -> Iterator[None]:
    global watching
    seen.clear()
    watching = True
    try:
        yield
    finally:
        watching = False
    assert not seen


def test_the_watch_sees_what_it_looks_for() -> None:
    for act in (
        lambda: eval("1"),
        lambda: open("/dev/null").close(),
        lambda: compile("1", "x", "eval"),
        lambda: __import__("this_is_none"),
    ):
        with pytest.raises(AssertionError), nothing_is_executed(), contextlib.suppress(ImportError):
            act()


TYPES = {"x": parse_type("f64[2,3]"), "n": parse_type("i64[]"), "A": parse_type("c64[3,3]"), "é": parse_type("f32[0]")}


def build_or_refuse(text: str) -> None:
    with nothing_is_executed():
        try:
            document = build_formula(text, TYPES)
        except TiduError as error:
            message = str(error)
            assert message.startswith("formula") and "\n" not in message and len(message) < 1000
            return
    data = format_document(document, "json")
    json.loads(data)
    parse_document(data, "built")


WORDS = [*function_names(), "x", "n", "A", "é", "pi", "eval", "exec", "__import__", "open", "os", "lambda", "f32", "None", "True",
         "1",
         "0", "-1", "2.5", "1e300", "9" * 30, "3j", "'ij,j->i'", "axis=", "dtype=", "(", ")", "[", "]", ",", ":", "**", "*", "@",
         "+",
         "-", "/", "//", "%", "<", "==", "&", "|", "~", "<<", ".", ".T", "...", "=", ";", "\n", " ", "\0", "\ud800", "ｘ", "\\",
         "#", "if", "for", "in", "not", ":=", "f'{", "'''", "\t", "\r", "\f", "\N{RIGHT-TO-LEFT MARK}"]  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=14).map("".join) | st.text(max_size=40))
@settings(max_examples=examples(400))
def test_any_text(text: str) -> None:
    build_or_refuse(text)


NAMES = st.sampled_from(
    ["x", "n", "A", "é", "y", "sum", "eval", "exec", "open", "__import__", "__builtins__", "globals", "print", "os"]
)
DUNDERS = st.sampled_from(
    ["T", "__class__", "__globals__", "__subclasses__", "recorder", "emit", "real", "shape", "__array_ufunc__"]
)
ATOMS = NAMES | st.sampled_from(
    ["1", "0", "True", "None", "...", "2.5", "1e999", "1e999j", "0x" + "f" * 40, "'os'", "b'os'", "f32", "[]"]
)


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """All that Python's grammar has for expressions."""
    templates = {
        1: ["({0})", "-{0}", "not {0}", "~{0}", "await {0}", "(yield {0})", "(yield from {0})", "[*{0}]", "{{*{0}}}", "{{**{0}}}",
            "f'{{{0}}}'",
            "f'{{{0}!r:>{{{0}}}}}'", "lambda: {0}", "lambda *a, **k: {0}", "(lambda: {0})()", "[{0}]", "({0},)", "{0}()", "{0}[:]",
            "{0}[::-1]", "{0}[...]", "{0}[None]"],
        2: ["{0} + {1}", "{0} ** {1}", "{0} @ {1}", "{0} // {1}", "{0} << {1}", "{0} and {1}", "{0} or {1}", "{0} in {1}",
            "{0} is not {1}",
            "{0}({1})", "{0}(*{1})", "{0}(**{1})", "{0}({1}, axis={1})", "{0}[{1}]", "{0}[{1}:]", "({0}, {1})", "{{{0}: {1}}}",
            "{{{0}, {1}}}",
            "(y := {0}) + {1}", "sum({0}, {1})", "[y for y in {0} if {1}]", "{{y: {0} for y in {1}}}", "({0} for y in {1})"],
        3: ["{0} if {1} else {2}", "{0} < {1} < {2}", "{0}[{1}:{2}]", "{0}[{1}, {2}]", "where({0}, {1}, {2})", "{0}({1}, {2})"],
    }  # fmt: skip
    filled = [st.builds(t.format, *[inner] * n) for n, texts in templates.items() for t in texts]
    return st.one_of(
        *filled, st.builds("{}.{}".format, inner, DUNDERS), st.builds("{}({})".format, st.sampled_from(function_names()), inner)
    )


STATEMENTS = ["{0}", "y = {0}", "y, z = {0}", "x.y = {0}", "x[{0}] = 1", "y += {0}", "del x; {0}", "import os; {0}", "if {0}: pass",
              "while {0}: pass", "def f(): return {0}", "class C: y = {0}", "try: {0}\nexcept: pass", "with {0}: pass",
              "assert {0}",
              "raise {0}", "global x; {0}", "@{0}\ndef f(): pass", "match {0}:\n case _: pass", "async def f(): {0}", "y: {0} = 1",
              "type Y = {0}"]  # fmt: skip


@given(st.sampled_from(STATEMENTS), st.recursive(ATOMS, grown, max_leaves=8))
@settings(max_examples=examples(500))
def test_all_of_pythons_grammar(statement: str, expression: str) -> None:
    build_or_refuse(statement.format(expression))


ARGUMENTS = [
    "x",
    "n",
    "A",
    "1",
    "0",
    "-3",
    "2.5",
    "True",
    "None",
    "[0, 1]",
    "(2, 3)",
    "[]",
    "1e300",
    "f32",
    "'ij->i'",
    "'full'",
    "10**18",
]


def called(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    option = st.builds("{}={}".format, st.sampled_from(OPTIONS), inner)
    return (
        st.builds(
            lambda name, args, options: f"{name}({', '.join([*args, *options])})",
            st.sampled_from(function_names()),
            st.lists(inner, max_size=3),
            st.lists(option, max_size=1),
        )
        | st.builds("({} {} {})".format, inner, st.sampled_from(["+", "*", "@", "**", "//", "<", "&", ">>"]), inner)
        | st.builds("{}[{}]".format, inner, inner)
    )


@given(st.recursive(st.sampled_from(ARGUMENTS), called, max_leaves=6))
@settings(max_examples=examples(500))
def test_calls_with_any_arguments(text: str) -> None:
    build_or_refuse(text)


HOSTILE = [
    "ones((10**9,)) + 1", "ones((10**6, 10**6)) @ ones((10**6, 10**6))", "9**9**9", "arange(10**12)", "eye(10**9)", "zeros(10**18)",
    "linspace(0, 1, 10**12)", "einsum('i,j,k->ijk', arange(10**5), arange(10**5), arange(10**5))", "tile(x, 10**9)",
    "repeat(x, 10**12)", "repeat(x, [10**12, 1])", "pad(x, 10**12)", "pad(x, 10**12, mode='wrap')",
    "pad(arange(10**12), 1, mode='edge')",
    "roll(arange(10**12), 1)", "sort(arange(10**12))", "diff(arange(10**12), n=900)", "split(arange(10**12), 10**6)", "x ** 10**18",
    "unstack(arange(10**12))", "stack(arange(10**12))", "meshgrid(arange(10**6), arange(10**6), arange(10**6))[0]",
    "kron(eye(10**5), eye(10**5))",
    "vander(arange(10**6), 10**6)", "convolve(arange(10**9), arange(10**9))", "searchsorted(arange(10**9), arange(10**9))",
    "delete(arange(10**12), 5)", "isin(arange(10**12), arange(10**12))", "quantile(arange(10**12), 0.5)",
    "quantile(x, [0.5] * 1000)",
    "matrix_power(A, 10**12)", "interp(x, arange(10**12), arange(10**12))", "[[[[[[[[[[x]]]]]]]]]]", "-" * 9000 + "x",
    "x" + ".T" * 4000,
    "(" * 3000 + "x" + ")" * 3000, "[" * 3000, "x" + "[0]" * 3000, "1" * 9000, "1e" + "9" * 5000, "+".join("x" * 4000),
    "einsum('" + "a" * 500 + "', x)", "array([" + "0," * 4000 + "])", "x[" + "None," * 100 + "]", "resize(x, 10**15)",
    "f" * 9000 + "(x)",
    "cov(arange(10**7))", "gradient(arange(10**12))", "tril(ones((10**6, 10**6)))", "arange(10**12)[arange(10**12)]",
    "trapezoid(arange(10**12))",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=lambda t: t[:40])
def test_memory_is_bounded(text: str) -> None:
    tracemalloc.start()
    try:
        build_or_refuse(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64e6


@pytest.mark.campaign
@pytest.mark.parametrize("text", HOSTILE, ids=lambda t: t[:40])
def test_time_is_bounded(text: str) -> None:
    begin = time.process_time()
    build_or_refuse(text)
    assert time.process_time() - begin < 5


# Random formulas have the values that Python gives the same text with NumPy's functions.

SHAPES = {"a": (2, 3), "b": (3,), "c": (2, 1), "s": (), "m": (3, 3)}
PLAIN = {name: getattr(np, name) for name in (
    "abs", "negative", "square", "sign", "floor", "ceil", "trunc", "sum", "max", "min", "cumsum", "sort", "argsort", "argmax",
    "argmin",
    "ravel", "transpose", "flip", "diff", "any", "all", "count_nonzero", "maximum", "minimum", "where", "add", "multiply", "equal",
    "less", "outer", "tril", "triu", "median", "stack", "concatenate", "roll", "mean", "ptp", "copysign", "logical_xor", "dot",
    "nansum",
    "searchsorted", "clip", "convert", "isnan", "isclose", "rint", "trapezoid",
) if hasattr(np, name)}  # fmt: skip
PLAIN["argsort"] = lambda x, axis=-1: np.argsort(x, axis, stable=True)  # else the order of equal elements is NumPy's secret
EXPRESSIONS = {
    1: ["abs({0})", "-{0}", "~({0} > 0)", "square({0})", "sign({0})", "floor({0})", "sum({0})", "sum({0}, axis=0)",
        "max({0}, axis=-1)",
        "min({0})", "cumsum({0})", "sort({0})", "argsort({0}, axis=0)", "argmax({0})", "ravel({0})", "{0}.T", "transpose({0})",
        "flip({0})",
        "diff({0})", "any({0}, axis=0)", "all({0} > 0)", "{0}[0]", "{0}[..., -1]", "{0}[::-1]", "{0}[None, 1:]", "{0}[[0, 1, 0]]",
        "{0} / 2",
        "{0} // 2", "{0} % 3", "(0.0 + {0}) ** 2", "tril({0})", "median({0})", "mean({0}, axis=0, keepdims=True)", "roll({0}, 1)",
        "ptp({0})",
        "{0}[argmax({0}) % 2]", "nansum({0}, axis=-1)",
        "rint({0} / 4)", "count_nonzero({0}, axis=0)", "trapezoid({0})",
        "isnan({0})"],
    2: ["{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} < {1}", "{0} == {1}", "{0} @ {1}", "maximum({0}, {1})", "minimum({0}, {1})",
        "outer({0}, {1})", "stack([{0}, {1}])", "concatenate([{0}, {1}])", "dot({0}, {1})", "copysign({0}, {1})",
        "logical_xor({0}, {1})",
        "clip({0}, {1}, 2)", "isclose({0}, {1})", "({0} > 0) & ({1} > 0)"],
    3: ["where({0}, {1}, {2})", "where({0} > 0, {1}, {2})", "clip({0}, {1}, {2})"],
}  # fmt: skip


FORMULAS = st.recursive(
    st.sampled_from([*SHAPES, "2", "0.5", "True"]),
    lambda inner: st.one_of(
        *[st.builds(t.format, *[inner.map("({})".format)] * n) for n, texts in EXPRESSIONS.items() for t in texts]
    ),
    max_leaves=5,
)


@st.composite
def problems(draw: st.DrawFn) -> tuple[str, dict[str, np.ndarray]]:
    """A formula, and small exact values for its names, of which sums and products are exact in whatever order."""
    values = {}
    for name, shape in SHAPES.items():
        dtype = draw(st.sampled_from(["float64", "float32", "int64", "int32", "bool"]))
        drawn = draw(st.lists(st.integers(-4, 4), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
        values[name] = (np.array(drawn).reshape(shape) / (2 if dtype[0] == "f" else 1)).astype(dtype)
    return draw(FORMULAS), values


@given(problems())
@settings(max_examples=examples(1000))
def test_values_are_numpys(problem: tuple[str, dict[str, np.ndarray]]) -> None:
    text, values = problem
    try:
        with np.errstate(all="ignore"):
            expected = np.asarray(eval(text, {"__builtins__": {}, **PLAIN}, dict(values)))
    except Exception:
        build_or_refuse_with(text, values)
        return
    refused = build_or_refuse_with(text, values)
    if refused is not None:
        assert "of 0 axes" in refused  # NumPy's reductions of numbers take axis 0, too
        return
    document = build_formula(text, {k: type_of(v) for k, v in values.items()})
    (value,) = run(document, values).values()
    assert_same(value, expected)


def build_or_refuse_with(text: str, values: dict[str, np.ndarray]) -> str | None:
    """What a formula is refused with, if it is."""
    try:
        build_formula(text, {k: type_of(v) for k, v in values.items()})
    except TiduError as error:
        return str(error)
    return None
