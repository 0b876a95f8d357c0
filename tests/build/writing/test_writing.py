"""Writing into traced arrays: random programs of statements that write, also through views, give what NumPy gives."""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.build.comparing import assert_same, run
from tests.onnx.operators.derivatives import require_derivatives
from tests.tiers import examples, few
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.errors import TiduError
from tidu_cli.graph.graph import Document

INPUTS: dict[str, Any] = {
    "a": np.array([[1.5, -2.0, 3.0, 0.5], [4.0, 5.5, -6.0, 7.0], [0.0, 1.0, 2.0, -3.5]]),
    "b": np.array([2.0, -1.0, 0.5, 3.0]),
    "c": np.arange(12.0).reshape(2, 3, 2) - 4,
    "n": np.array([[3, -1, 4], [1, -5, 9]]),
    "z": np.array([1 + 2j, -3.5j, 2.0]),
    "k": np.array(1),
    "ii": np.array([2, 0, 2]),
    "s": np.zeros((0, 3)),
}
"""Arguments of the programs; k and ii are for indices, and stay."""

BASIC = [
    "0", "-1", "1:", ":-1", "::2", "::-1", "1:3", "2:0:-1", "...", ":", "None", "0, 1", "..., 0", ":, 1", "1:, ::2",
    ":, None, 1:", "-1, ...", "0, ..., 1", "k", ":, k", "k, 1:", "()", "5:", ":, ::-1", "..., None", "0, ...", "..., ::3", "[]",
    "False", "True",
]  # fmt: skip
ADVANCED = [
    "[0, 1]", "[1, 1, 0]", "[-1, 0]", "ii", "[0, 1], [1, 0]", ":, [0, 1]", "0, [1, 0]", "[0, 1], :, 0", "[0, 1], None, [1, 0]",
    "[True, False, True]", "np.array([True, True, False, True])", "{t}.real > 1", "{t} != {t}",
    "np.arange({t}.size).reshape({t}.shape) % 3 == 0", "ii, 1:", "ii - 1", ":, ii", "[[0, 1], [1, 0]]", "..., [1, 0]",
    "np.array([[0], [1]]), [0, 1]", "..., [True, False]", "[[True, False, True, False]] * 3", "[], 0", "ii > 0",
    ":, {t}[0].real > 1", "k, [1, 0]", "[0, 1], k",
]  # fmt: skip
PLACES = [a for a in ADVANCED if "[[" not in a]
"""Those of ufuncs' `at`; where it broadcasts complex numbers to indices of two axes, NumPy 2 reads what nobody wrote."""

VIEWS = [
    "{t}.T", "{t}.reshape(-1)", "{t}.ravel()", "{t}.reshape(2, -1)", "np.flip({t})", "np.flip({t}, 0)", "{t}.swapaxes(0, -1)",
    "{t}.squeeze()", "np.atleast_2d({t})", "np.expand_dims({t}, 0)", "np.split({t}, 2, -1)[1]", "np.array_split({t}, 2)[0]",
    "{t}.real", "{t}.imag", "np.rot90({t})", "np.moveaxis({t}, 0, -1)", "np.einsum('ij->ji', {t})",
    "np.einsum('ii->i', {t}[:2, :2])", "np.diagonal({t})", "np.broadcast_to({t}, (2, *{t}.shape))", "list({t})[1]",
    "np.unstack({t})[0]", "{t}", "np.asarray({t}, like={l})", "np.ascontiguousarray({t}, like={l})",
    "{t}.reshape({t}.shape[::-1])", "np.broadcast_arrays({t}, {u})[1]", "np.transpose({t})", "{t}.T.reshape(-1)",
    "{t}[::-1].ravel()", "np.real({t})", "np.vsplit({t}, 2)[1]", "{t}[1:].reshape(-1)", "{t}.T.T",
    "np.astype({t}, np.float64, copy=False)",
]  # fmt: skip
VALUES = [
    "1", "2.5", "-1.75", "{u}", "{u}", "{u}", "{u}[0]", "{u}[{basic}]", "{u}.T", "{u}.copy()", "[1, 2]", "[0.5, 1.5, -2.5]",
    "np.float32(0.1)", "{u} * 2", "{u}.sum()", "[[1.0], [2.0]]", "np.arange(4)", "{t}[{basic}]", "{t}[::-1]", "True",
    "np.sin({u})", "{u}.ravel()[:2]", "np.ones((1, 1, 3))",
]  # fmt: skip
STATEMENTS = [
    *["{new} = {view}"] * 4, *["{new} = {t}[{basic}]"] * 4, "{new} = {t}[{advanced}]", "{new} = {t} * 2", "{new} = {t} + {u}",
    "{new} = {t}.copy()", "{new} = np.copy({t})", "{new} = {t}.astype(np.int64)", "{new} = {t}[{basic}].T", "{t} += {value}",
    "{t} -= {value}", "{t} *= {value}", "{t} /= 2", "{t} //= 2", *["{t}[{basic}] = {value}"] * 4,
    *["{t}[{advanced}] = {value}"] * 3, *["{t}[{basic}] += {value}"] * 2,
    *["{t}[{advanced}] += {value}", "{t}[{advanced}] *= {value}"], "{t}[{t}.real > 1] = np.sqrt({t}[{t}.real > 1])",
    "{t}[{t}.real < 0] *= -1", "{t}[0], {t}[1] = {t}[1], {t}[0]", "{t}[0], {t}[1] = {t}[1].copy(), {t}[0].copy()",
    "{t}[1:] = {t}[:-1]", "{t}[:, 1:] = {t}[:, :-1]", "{t}.T[{basic}] = {value}", "{t}.reshape(-1)[{basic}] = {value}",
    "{view}[{basic}] = {value}", "{view}[...] = {value}", "np.add.at({t}, ({places}), ({value}) * 1)",
    "np.subtract.at({t}, ({places}), ({value}) * 1)", "np.multiply.at({t}, ([1, 0, 1],), ({value}) * 1)",
    "np.maximum.at({t}, ({places}), ({value}) * 1)", "np.negative.at({t}, ({places}))", "np.add({t}, {value}, out={u})",
    "np.multiply({t}, 2, out={t}, where={t}.real > 0)", "np.sum({t}, axis=0, out={u})", "np.negative({t}, {u})",
    "np.cumsum({t}, axis=0, out={t})", "{new} = np.exp(np.minimum({t}, 1), out={u})", "np.clip({t}, -1, 2, out={t})",
    "np.add.reduce({t}, 0, out={u})", "np.fill_diagonal({t}, {value})", "np.fill_diagonal({t}, 5, wrap=True)",
    "np.copyto({t}, {value})", "np.copyto({t}, {value}, where={t}.real > 0)", "np.put({t}, [0, 2], {value})",
    "np.put({t}, ii, {value})", "np.place({t}, {t}.real > 1, 3)", "np.putmask({t}, {t}.real > 1, {value})",
    "np.put({t}, [1, -1], 7, mode='wrap')", "np.place({t}, np.arange({t}.size) % 2 == 0, [1, 2])",
    "np.put_along_axis({t}, np.argmax({t}, axis=0, keepdims=True), 9, axis=0)",
    "np.put_along_axis({t}, np.array([[0, 1]]), {value}, axis=1)", "{t}.fill(2)", "{t}.sort()", "{t}.sort(axis=0)",
    "{t}.flat[1] = 4", "{t}.flat[::2] = [1, 2]", "{t}.flat = {value}", "{t}.flat[ii] = {value}", "{t}.real = {value}",
    "{t}.imag = {value}", "{t}.shape = (-1,)", "{t}.shape = {t}.shape[::-1]", "np.nan_to_num({t}, copy=False)",
    "{t}.T[0] += {value}", "{t}[1:3] += 1", "{t}[1][0] = 4", "{t}[1:][::-1][0] = {value}", "for row in {t}: row *= 2",
    "for row in {t}: row /= row.sum()",
]  # fmt: skip

MAY_BE_REFUSED = (
    "may be a view or a copy of it",  # of an array whose order in memory is not known
    "mask that is traced",
    "as many elements as the mask, which is traced",
    "complex numbers has no counterpart in graphs",
    "has no order; take the argmax of its magnitude",
    "of a number (",
    "a number would still have its old value",
    "with traced indices cannot be traced",
    "indexing with one bool",
    "does not fit into out",
    "x[i] shows elements of x if i is a number",
    "Incompatible shape for in-place modification",
    "np.negative.at of an array: it is read-only",  # NumPy does not see that
    "np.maximum.at of an array: it is read-only",  # nor here, where the array has no elements
    "axis 0 is out of range for an array of 0 axes",
    "assignment to elements of an array that it reads with another stride",
    "assignment to .flat reads elements",
    "einsum: 'i' has 0 and 2 elements",
    "and out is",
)


def program(choose: Callable[[Sequence[Any]], Any], length: int, inputs: Mapping[str, Any] = INPUTS) -> list[str]:
    """Statements that NumPy runs one after the other."""
    known, statements = dict(inputs), []
    for number in range(length):
        names = [x for x in known if x not in ("k", "ii")]
        text = choose(STATEMENTS)
        for hole, options in (("view", VIEWS), ("value", VALUES), ("places", PLACES), ("advanced", ADVANCED), ("basic", BASIC)):
            while "{" + hole + "}" in text:
                text = text.replace("{" + hole + "}", choose(options), 1)
        text = text.format(t=choose(names), u=choose(names), l="a", new=f"v{number}")
        then = follows(statements, text, inputs)
        if then is not None:
            statements.append(text)
            known = then
    return statements


@st.composite
def programs(draw) -> list[str]:
    """Short ones, which shrink."""
    return program(lambda options: draw(st.sampled_from(options)), draw(st.integers(1, 9)))


def follows(statements: list[str], text: str, inputs: Mapping[str, Any] = INPUTS) -> dict[str, Any] | None:
    """What is known after these statements and another one; None if NumPy complains of that."""
    known = after(statements, inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        try:
            if ".at(" in text and text.endswith(end := ") * 1)"):  # of no values NumPy reads what nobody wrote, and may crash
                assert np.size(eval(text[text.rindex("), (") + 4 : -len(end)], {"np": np}, dict(known)))
            exec(text.replace("like=a", "like=None"), {"np": np}, known)
        except Exception:
            return None
    known.pop("row", None)
    return known if all(isinstance(x, np.ndarray | np.generic) for x in known.values()) else None


def after(statements: list[str], values: Mapping[str, Any]) -> dict[str, Any]:
    """What all names stand for in the end, under NumPy."""
    known = copy.deepcopy(dict(values))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec("\n".join(statements).replace("like=a", "like=None"), {"np": np}, known)
    return known


def graph(statements: list[str], values: dict[str, Any]) -> Document | str:
    """The graph that gives that, or the message of its refusal."""
    code = compile("\n".join(statements), "program.py", "exec")

    def function(**known):
        exec(code, {"np": np}, known)
        return {k: v for k, v in known.items() if k not in ("__builtins__", "np")}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return trace(function, **values)
        except TiduError as error:
            return str(error)


def check(statements: list[str]) -> str | None:
    """The names in the end are what they are under NumPy; or else the refusal.

    A number and an array without axes are inputs of one type, so that a graph has to be right for both.
    """
    document = graph(statements, INPUTS)
    if isinstance(document, str):
        return document
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = run(document, INPUTS)
    for k in (np.array(1), np.int64(1)):
        for name, value in after(statements, {**INPUTS, "k": k}).items():
            assert_same(results[name], np.asarray(value))
    return None


def assert_refused_for_a_reason(message: str | None) -> None:
    """Programs are refused where nobody can know what NumPy does, or for what graphs have not."""
    assert message is None or ("\n" not in message and any(words in message for words in MAY_BE_REFUSED)), message


@settings(max_examples=examples(200, check=45), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(programs())
def test_programs_give_what_numpy_gives(statements):
    assert_refused_for_a_reason(check(statements))


@pytest.mark.parametrize("seed", few(range(150), 50))
def test_longer_programs_give_what_numpy_gives(seed):
    assert_refused_for_a_reason(check(program(random.Random(seed).choice, 25)))


@pytest.mark.campaign
def test_many_programs_give_what_numpy_gives():
    refused = 0
    for seed in range(10_000, 20_000):
        message = check(program(random.Random(seed).choice, seed % 40))
        assert_refused_for_a_reason(message)
        refused += message is not None
    assert refused < 3_000


LAYING_OUT = [
    "np.ascontiguousarray({x})", "np.asfortranarray({x})", "np.require({x}, None, ['C'])", "np.require({x}, requirements='F')",
    "np.require({x})", "np.asarray({x}, order='C')", "np.asarray({x}, None, 'F')", "np.array({x}, copy=None, order='C')",
]  # fmt: skip


@pytest.mark.parametrize("call", LAYING_OUT)
@pytest.mark.parametrize("x", ["a", "a.T", "a[1]", "a[:, 1]", "a[::-1]", "a.T[1:]", "held", "held.T", "held[:, 1:]"])
def test_what_is_laid_out_otherwise_is_a_copy(call, x):
    """A write into it changes the array if NumPy gives that back, or a view of it, and leaves it if NumPy copies."""
    statements = ["held = np.zeros((2, 4))", "held[0] = a[1]", f"w = {call.format(x=x)}", "w[0] = 9", "held = held * 1"]
    assert check(statements) is None


def test_a_copy_of_a_read_only_view_is_writable():
    assert check(["w = np.ascontiguousarray(np.diagonal(c))", "np.multiply.at(w, ([1, 0, 1],), 3)", "w[0] = 1"]) is None


def test_what_is_flipped_without_axes_is_a_number():
    assert check(["v = np.flip(b[..., 0])", "b[0] = 9"]) is None


# Derivatives.

ARRAYS = ("a", "b", "c")


def require_right_derivatives(seed: int) -> str | None:
    """Of a random program at a random point, or why it has none: it is refused, or the point is at a kink."""
    rng = np.random.default_rng(seed)
    inputs = INPUTS | {name: rng.standard_normal(INPUTS[name].shape) for name in ARRAYS}
    document = graph(program(random.Random(seed).choice, 12, inputs), inputs)
    if isinstance(document, str):
        return document
    floats = [str(o.key) for o in document.head.outputs if str(o.type).startswith("f64")]
    point = {str(i.key): inputs[str(i.key)] for i in document.head.inputs}
    try:
        with np.errstate(all="ignore"):
            require_derivatives(document, point, ARRAYS, floats, seed=seed)
    except AssertionError as error:
        if "has no derivative here" in str(error):
            return str(error)
        raise
    return None


@pytest.mark.check
@pytest.mark.parametrize("start", few(range(0, 100, 10), 3))
def test_programs_have_the_derivatives_of_what_they_compute(start):
    told = [require_right_derivatives(seed) for seed in range(start, start + 10)]
    assert told.count(None) >= 4, told


# Dtypes, errors, loops and branches.

DTYPES = ("bool", "i1", "u1", "i8", "u8", "f2", "f4", "f8", "c8", "c16")


@pytest.mark.parametrize("given", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_are_converted_as_numpy_converts_them(dtype, given):
    def function(x, y):
        y2 = y * 1
        for index in (slice(None, 2), [2, 3], x.astype(bool), 5):
            x[index] = y2[0]
        x[6:] = y2[1:]
        np.put(x, [0], y2[1])
        return x

    x, y = np.arange(9).astype(dtype), np.array([1.75, 2.5, 0, 3]).astype(given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        document = trace(function, x, y)
        expected = function(x.copy(), y)
    (value,) = run(document, {"x": x, "y": y}).values()
    assert_same(value, expected)


@pytest.mark.parametrize("value", [300, -1, 2.5, 1j, np.float32(2.5), np.complex64(1 + 2j), [1, 2], True, "1", None, 10**30])
@pytest.mark.parametrize("dtype", ["u1", "i8", "f4", "c8"])
@pytest.mark.parametrize("index", [0, slice(0, 2), [0, 1]])
def test_numbers_are_assigned_or_refused_as_numpy_does(index, dtype, value):
    def function(x):
        x[index] = value
        return x

    x = np.array([3, 0, 1]).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = function(x.copy())
        except (TypeError, ValueError, OverflowError):
            expected = None
        if expected is None:
            with pytest.raises(TiduError):
                trace(function, x=x)
        else:
            assert_same(run(trace(function, x=x), {"x": x})["y"], expected)


def test_complex_numbers_lose_their_imaginary_part_with_numpys_warning():
    def function(x, z):
        x[0] = z
        return x

    with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part"):
        trace(function, x="f64[2]", z="c128[]")
