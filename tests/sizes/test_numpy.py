"""Functions of NumPy traced at an open size: the same as traced at its numbers, with first and second derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidu_cli as tidu
from tidu_cli.adapters.numpy.errors import BuildError

SIZES = (1, 2, 3, 7, 64)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(0))
    return e / e.sum(0)


def ends_replaced(x: Any) -> Any:
    y = x.copy()
    y[0] = 0
    y[-1] *= 2
    return y * x


def written_backwards(x: Any) -> Any:
    y = x.copy()
    y[::-1] = x * np.arange(x.shape[0])[:, None]
    return y * x


def rows_written(x: Any) -> Any:
    y = np.zeros((x.shape[0] + 1, 3))
    y[1:] = x**2
    return y


def through_a_view(x: Any) -> Any:
    y = x * 1.0
    z = y.reshape(-1)
    z[0] = 3.0
    return y * x


def scanned(x: Any) -> Any:
    carry, ys = tidu.scan(lambda c, row: (c * 0.5 + row * row, c * row), np.zeros(3), x)
    return ys + carry


def counted(x: Any) -> Any:
    return tidu.fori_loop(0, x.shape[0], lambda i, v: v * 0.5 + x[i] ** 2, np.zeros(3))


def branched(x: Any) -> Any:
    if x.ndim == 2 and x.shape[1] == 3 and x.shape[0] >= 1 and x.shape[0] == x.shape[0] * 1:
        return x * 2
    raise AssertionError


def halves(x: Any) -> Any:
    a, b = np.split(np.concatenate([x, x * 2]), 2)
    return a * b


def mean_over_axes(x: Any) -> Any:
    a, b, c = (np.pad(x[::k, 0], 1) for k in (2, 3, 5))
    return np.mean(a[:, None, None] * b[:, None] * c)


PROGRAMS: Mapping[str, Callable[[Any], Any]] = {
    "mean of squares": lambda x: np.sum(x * x) / x.shape[0],
    "size": lambda x: np.sum(x * x) / x.size,
    "product of the shape": lambda x: np.sum(x * x) / np.prod(x.shape),
    "mean": lambda x: np.mean(x**2, axis=0) / 2,
    "std": lambda x: np.std(x, axis=0),
    "var": lambda x: np.var(x, axis=0, ddof=1),
    "cov": lambda x: np.cov(x, rowvar=False),
    "median": lambda x: np.median(x, axis=0),
    "one over n": lambda x: (1 / x.shape[0]) * np.sum(x**2),
    "root of n": lambda x: np.sum(x**2) / np.sqrt(x.shape[0]) + x.shape[0] ** 0.5 + 2.0 * x.shape[0] + np.int64(2) * x.shape[0],
    "n less than 0": lambda x: (1 - x.shape[0]) * np.sum(x**2) + (x.shape[0] - 4) * x[0, 0],
    "f32 of n": lambda x: np.sum(x.astype(np.float32) ** 2) / (3 * x.shape[0] + 1),
    "zeros and ones": lambda x: x * np.ones((x.shape[0], 3)) + np.zeros(x.shape[0])[:, None],
    "full": lambda x: np.full((x.shape[0], 3), 2.5) * x,
    "arange": lambda x: x * np.arange(x.shape[0])[:, None] + np.arange(1, x.shape[0] + 1)[:, None],
    "every second": lambda x: x[::2] * np.arange(0, x.shape[0], 2)[:, None],
    "linspace": lambda x: x * np.linspace(0, 2, x.shape[0])[:, None] + np.linspace(1, -4, x.shape[0], endpoint=False)[:, None],
    "eye and tri": lambda x: (np.eye(x.shape[0]) + np.tri(x.shape[0])) @ x,
    "tile": lambda x: np.tile(x, (2, 1)) * np.tile(np.arange(3.0), 2 * x.shape[0]).reshape(-1, 3),
    "repeat": lambda x: np.repeat(x**2, 2, axis=0),
    "reshape": lambda x: np.sin(x.reshape(x.shape[0] * 3)).reshape(-1, 3).T.reshape(-1),
    "differences": lambda x: x[2:] - 2 * x[1:-1] + x[:-2],
    "neighbours": lambda x: x[1:] * x[:-1] + np.diff(x, axis=0) ** 2,
    "rows": lambda x: x[0] * x[-1] + x[x.shape[0] - 1],
    "reversed": lambda x: x[::-1] * x,
    "places": lambda x: x[[0, 0, -1]] * x[np.argmax(x[:, 0])],
    "joined": lambda x: np.concatenate([np.stack([x, x**2], axis=1).reshape(-1, 3), x]),
    "pad": lambda x: np.pad(x**2, ((1, 2), (0, 0))),
    "roll": lambda x: np.roll(x, 1, axis=0) * x,
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x) * np.einsum("ij,ij->i", x, x),
    "products": lambda x: np.dot(x, x.T) @ x + np.outer(x[:, 0], x[:, 1]) @ x,
    "diagonals": lambda x: np.diag(x[:, 0]) @ x * np.trace(x @ x.T) + np.triu(x @ x.T) @ x,
    "cumsum": lambda x: np.cumsum(x**2, axis=0),
    "sort": lambda x: np.sort(x, axis=0) * x[np.argsort(x[:, 0])],
    "extremes": lambda x: np.max(x, axis=0) * np.min(x),
    "softmax": softmax,
    "log of a sum": lambda x: np.log(np.sum(np.exp(x))),
    "where": lambda x: np.where(x > 0, x, 0.1 * x**2),
    "broadcast": lambda x: np.broadcast_to(x[0], x.shape) * x,
    "distances": lambda x: np.sqrt(np.sum((x[:, None] - x[None]) ** 2, -1) + 1),
    "meshgrid": lambda x: np.prod(np.meshgrid(x[:, 0], x[:, 1]), axis=0),
    "norm": lambda x: np.linalg.norm(x, axis=1),
    "trapezoid": lambda x: np.trapezoid(x**2, axis=0),
    "windows": lambda x: np.lib.stride_tricks.sliding_window_view(np.concatenate([x, x]), 2, axis=0).sum(-1) ** 2,
    "interp": lambda x: np.interp(x[:, 0], np.array([0.0, 0.5, 1.0]), np.array([0.0, 1.0, 4.0])),
    "fft": lambda x: np.abs(np.fft.rfft(x[:, 0], norm="forward")) ** 2,
    "gradient within": lambda x: tidu.grad(lambda z: np.sum(z**3) / z.shape[0])(x),
    "moved": lambda x: np.moveaxis(x, 0, 1) ** 2 * np.expand_dims(x.T.ravel(), 0).reshape(3, -1),
    "written": ends_replaced,
    "rows written": rows_written,
    "written backwards": written_backwards,
    "through a view": through_a_view,
    "scan": scanned,
    "fori_loop": counted,
    "branch": branched,
    "halves": halves,
    "mean over axes": mean_over_axes,
}

REORDERED = {"places", "rows"}
"""At N = 1 these take one element several times by one node, whose cotangents come in another order."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_function_traced_at_an_open_size_is_the_one_traced_at_its_numbers(name: str, tmp_path: Path) -> None:
    program = PROGRAMS[name]
    opened = _orders(tidu.trace(program, "f64[N,3]"))
    for document in opened:
        tidu.save(document, tmp_path / "f.json")
        assert str(tidu.load(tmp_path / "f.json")) == str(document)
    for n in SIZES:
        for order, (fixed, general) in enumerate(zip(_orders(tidu.trace(program, f"f64[{n},3]")), opened, strict=True)):
            ours, theirs = _values(tidu.specialize(general, size={"N": n})), _values(fixed)
            if n == 1 and order and name in REORDERED:
                np.testing.assert_allclose(ours, theirs, rtol=1e-12)
            else:
                np.testing.assert_array_equal(ours, theirs, err_msg=f"N={n}, order {order}")


def _orders(document: Any) -> list[Any]:
    """The function, its gradient along a cotangent, and the derivative of that along a tangent."""
    first = tidu.materialize(tidu.transpose(tidu.linearize(document, ["x"])))
    return [document, first, tidu.materialize(tidu.linearize(first, ["x"]))]


def _values(document: Any) -> np.ndarray:
    rng = np.random.default_rng(5)
    inputs = {str(i.key): rng.normal(size=i.type.shape).astype(_dtype(i.type)) for i in document.head.inputs}
    return np.concatenate([np.ravel(np.asarray(y)).astype(float) for y in tidu.evaluate(document, inputs).values()])


def _dtype(type_: Any) -> str:
    return {"f64": "float64", "f32": "float32"}[type_.dtype]


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
def test_an_open_axis_is_padded_by_its_own_elements(mode: str) -> None:
    """By slices, where places are known at fixed sizes: cotangents are added in another order."""
    for width in (((2, 1), (0, 4)), ((0, 2), (0, 0)), ((1, 0), (1, 1))):
        opened = _orders(tidu.trace(lambda x, width=width: np.pad(x**2, width, mode=mode) ** 2, "f64[N+2,3]"))
        for n in (1, 2, 7):
            fixed = _orders(tidu.trace(lambda x, width=width: np.pad(x**2, width, mode=mode) ** 2, f"f64[{n + 2},3]"))
            for one, general in zip(fixed, opened, strict=True):
                np.testing.assert_allclose(_values(tidu.specialize(general, size={"N": n})), _values(one), 1e-12)


def test_an_open_axis_is_padded_by_open_sizes() -> None:
    document = tidu.trace(lambda x: np.pad(x, ((x.shape[0] - 1, 2), (0, 0)), mode="reflect"), "f64[N+2,3]")
    assert str(document.head.outputs[0].type) == "f64[2*N+5,3]"
    x = np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(tidu.evaluate(document, {"x": x})["y"], np.pad(x, ((3, 2), (0, 0)), mode="reflect"))
    assert str(tidu.trace(lambda x: np.pad(x, (0, 5), mode="edge"), "f64[N]").head.outputs[0].type) == "f64[N+5]"
    with pytest.raises(BuildError, match=r"by N and 0 needs N\+1 elements, and axis 0 of f64\[N\] has N"):
        tidu.trace(lambda x: np.pad(x, (x.shape[0], 0), mode="reflect"), "f64[N]")


FORMULAS = (
    "sum(x*x)/size(x)",
    "size(x, 0)*x",
    "x.shape[0]*mean(x) + 1/x.size",
    "sqrt(size(x))*sum(x) - size(x)**2",
    "x[1:] - x[:size(x, 0)-1]",
    "linspace(0, 1, size(x, 0))*x[:, 0] + arange(size(x, 0))",
    "eye(size(x, 0)) @ x + zeros((size(x, 0), 3))",
    "reshape(x, (size(x, 0)*3,))**2",
)


def test_formulas_know_sizes_as_functions_do() -> None:
    for text in FORMULAS:
        opened = tidu.formula(text, x="f64[N,3]")
        for n in SIZES:
            fixed = tidu.formula(text, x=f"f64[{n},3]")
            np.testing.assert_array_equal(_values(tidu.specialize(opened, size={"N": n})), _values(fixed), err_msg=f"{text} at {n}")


def looped(x: Any) -> Any:
    total = 0.0
    for row in x:
        total = total + row
    return total


def ranged(x: Any) -> Any:
    return sum(x[k] for k in range(x.shape[0]))


def compared(x: Any) -> Any:
    return x * 2 if x.shape[0] == 3 else x


REFUSED: Mapping[str, tuple[Callable[..., Any], str]] = {
    "len": (lambda x: np.sum(x) / len(x), "write x.shape[0]"),
    "rows": (looped, "a loop over the rows of f64[N,3] has N turns; write tidu.scan(f, init, x)"),
    "range": (ranged, "range() needs a number, and the size N is open; write tidu.scan, or tidu.fori_loop, for a loop over it"),
    "int": (lambda x: x * int(x.shape[0]), "leave int() out"),
    "==": (compared, "cannot decide whether N == 3"),
    "<": (lambda x: x if x.shape[0] < 5 else 2 * x, "cannot decide whether N < 5; write N+4, or a number, in place of N"),
    "place": (lambda x: x[5], "cannot decide whether N > 5; write N+5, or a number, in place of N in the types"),
    "broadcasting": (
        lambda x: x + np.ones(4)[:, None],
        "[N,3] and [4,1] do not broadcast together; write 4 in place of N in the types of the arguments",
    ),
    "reshape": (
        lambda x: x.reshape(-1, 2),
        "f64[N,3] has 3*N elements and does not reshape to [-1,2]; write 2*N, or a number, in place of N",
    ),
    "split": (lambda x: np.split(x, 5), "cannot decide whether the size N%5 is 0; write 5*N, or a number, in place of N"),
    "below 0": (lambda x: np.ones(x.shape[0] - 3), "N-3 may be less than 0; write N+2, or a number, in place of N in the types"),
    "quantile": (lambda x: np.quantile(x, 0.3), "the quantile of the open size 3*N cannot be traced"),
    "squeeze": (lambda x: np.squeeze(x), "drops axes that may have one element; say which, with axis=, or write N+1, or a number"),
    "reflect": (lambda x: np.pad(x, 1, mode="reflect"), "cannot decide whether N >= 2; write N+1, or a number, in place of N"),
    "strided write": (lambda x: _set(x, slice(None, None, 2)), "assignment to each element number 2 of the open size N"),
}


def _set(x: Any, index: Any) -> Any:
    y = x.copy()
    y[index] = 0
    return y


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_a_number_is_refused_in_a_line_that_says_what_to_write(name: str) -> None:
    function, words = REFUSED[name]
    with pytest.raises(BuildError) as raised:
        tidu.trace(function, "f64[N,3]")
    assert words in str(raised.value) and "\n" not in str(raised.value)


def test_two_sizes_are_one_where_the_user_says_so() -> None:
    with pytest.raises(
        BuildError, match=r"\[N\] and \[M\] do not broadcast together; if they are the same, .* one name for N and M"
    ):
        tidu.trace(lambda x, y: x + y, "f64[N]", "f64[M]")
    with pytest.raises(BuildError, match=r"N elements, axis 0 of f64\[M\] has M; if they are the same"):
        tidu.trace(lambda x, y: x @ y, "f64[N]", "f64[M]")


def test_an_inverse_is_of_any_size() -> None:
    document = tidu.trace(lambda x: np.linalg.inv(x), "f64[N,N]")
    for n in (1, 2, 5):
        x = np.random.default_rng(n).standard_normal((n, n)) + 2 * np.eye(n)
        np.testing.assert_allclose(tidu.evaluate(document, {"x": x})["y"], np.linalg.inv(x), 1e-10)


def test_constants_of_open_sizes_are_left_as_they_are() -> None:
    """What is computed of them has no number of bytes that could be too many."""

    def constant(x: Any) -> Any:
        return np.broadcast_to(-np.float64(1.3), (x.shape[0], 2)).sum(1) + x

    def slope(x: Any) -> Any:
        return np.sum((x[:, None] - x[None, :]) ** 2 * -np.float64(2))

    for document in (tidu.trace(constant, "f64[N]"), tidu.grad(tidu.trace(slope, "f64[N]"))):
        simple = tidu.materialize(document, simplify=True)
        for n in (1, 3):
            point = {"x": np.arange(n) / 3}
            for key, value in tidu.evaluate(document, point).items():
                np.testing.assert_allclose(tidu.evaluate(simple, point)[key], value, 1e-14)


def test_arrays_of_places_are_simplified_at_any_size() -> None:
    document = tidu.trace(lambda x: np.arange(x.shape[0])[::-1] / x.shape[0] * np.flip(x) + np.eye(x.shape[0]) @ x, "f64[N]")
    simple = tidu.materialize(tidu.vjp(document), simplify=True)
    for n in (1, 2, 7):
        point = {"x": np.arange(1.0, n + 1), "y@-1": np.ones(n)}
        np.testing.assert_allclose(tidu.evaluate(simple, point)["x@-1"], np.arange(n) / n + 1)


def test_a_loop_of_numbers_reads_sizes() -> None:
    def halvings(x: Any) -> Any:
        return x * tidu.while_loop(lambda c: c[0] < x.shape[0], lambda c: (2 * c[0], c[1] + 1.0), (1, 0.0))[1]

    document = tidu.trace(halvings, "f64[N]")
    assert [float(tidu.evaluate(document, {"x": np.ones(n)})["y"][0]) for n in (1, 2, 5, 8)] == [0, 1, 3, 3]


def test_extremes_of_sizes_are_sizes() -> None:
    document = tidu.trace(lambda x: np.partition(x, 2)[: np.minimum(x.shape[0] - 1, 4)], "f64[N+2]")
    assert [str(o.type) for o in document.head.outputs] == ["f64[min(N+1,4)]"]
    assert [list(tidu.evaluate(document, {"x": np.arange(n)[::-1] * 1.0})["y"]) for n in (3, 6)] == [[0, 1], [0, 1, 2, 3]]


def test_sizes_are_outputs_and_decide_branches_where_bounds_do() -> None:
    document = tidu.trace(lambda x: (x.shape[0], x if x.shape[0] > 4 else 2 * x), "f64[N+4,3]")
    values = tidu.evaluate(document, {"x": np.ones((7, 3))})
    assert [int(values["y.0"]), float(values["y.1"][0, 0])] == [7, 1.0]


def test_sizes_of_arrays_outside_of_a_trace_are_numbers() -> None:
    with pytest.raises(BuildError):
        tidu.trace(lambda x: len(x), "f64[N]")
    assert np.zeros(3).shape[0] == 3 and len(np.zeros((4, 2))) == 4
