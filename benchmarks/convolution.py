"""Convolutions, and the gradient of a network of them, against the same by hand in NumPy and against SciPy.

    OPENBLAS_NUM_THREADS=1 python benchmarks/convolution.py

Both are measured in one run and in turns; times are the least of several, and so are ratios of them. By hand means as it is written
in courses: windows as columns (im2col), one product of matrices, columns kept from the forward pass for the backward one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import signal

import tidu_cli as tidu
from tidu_cli.adapters.numpy.numpy.signal import conv_general_dilated, reduce_window_max
from tidu_cli.graph.keys import parse_key
from tidu_cli.runtime.plans.program import compile_graph

Arrays = dict[str, Any]
Row = list[str]


def least(calls: Sequence[Callable[[], Any]], times: int = 15) -> list[float]:
    """Seconds of the quickest run of each, which take turns."""
    best = [float("inf")] * len(calls)
    for _ in range(times):
        for k, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[k] = min(best[k], time.perf_counter() - start)
    return best


def program(document: Any) -> Callable[[Arrays], list[Any]]:
    """The function of inputs by key that the head of a document is."""
    compiled = compile_graph(tidu.materialize(document).head)
    return lambda values: compiled.run({i.key: values[str(i.key)] for i in compiled.inputs})


def columns(x: Any, n: int, stride: int) -> Any:
    """Windows of n × n as rows: [images × places, features × n × n]."""
    windows = sliding_window_view(x, (n, n), (2, 3))[:, :, ::stride, ::stride]
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(-1, x.shape[1] * n * n)


def convolution_by_hand(x: Any, w: Any, stride: int) -> tuple[Any, Any]:
    """The convolution, and the columns."""
    cols = columns(x, w.shape[2], stride)
    size = (x.shape[2] - w.shape[2]) // stride + 1
    return (cols @ w.reshape(len(w), -1).T).reshape(len(x), size, size, -1).transpose(0, 3, 1, 2), cols


CONVOLUTIONS = [  # images, features, size, output features, window, stride
    (64, 1, 28, 8, 3, 1),
    (64, 8, 28, 16, 3, 1),
    (64, 16, 28, 8, 3, 2),
    (64, 32, 14, 64, 3, 1),
    (8, 3, 128, 16, 5, 1),
    (1, 1, 512, 1, 9, 1),
]


def convolutions() -> Iterator[Row]:
    """One convolution, against columns made by hand; of one image against scipy.signal.correlate2d, too."""
    yield ["images, features, size → features, window, stride", "tidu: ms", "by hand: ms", "ratio", "SciPy: ms"]
    random = np.random.default_rng(0)
    for images, features, size, n_out, n, stride in CONVOLUTIONS:
        x, w = random.normal(size=(images, features, size, size)), random.normal(size=(n_out, features, n, n))
        run = program(tidu.trace(lambda x, w, stride=stride: conv_general_dilated(x, w, (stride, stride), "VALID"), x=x, w=w))
        at = {"x": x, "w": w}
        np.testing.assert_allclose(run(at)[0], convolution_by_hand(x, w, stride)[0], 1e-10, 1e-10)
        calls = [lambda run=run, at=at: run(at), lambda x=x, w=w, s=stride: convolution_by_hand(x, w, s)]
        if images == features == n_out == 1:
            calls.append(lambda x=x, w=w: signal.correlate2d(x[0, 0], w[0, 0], "valid"))
        times = least(calls)
        what = f"{images}, {features}, {size} → {n_out}, {n}, {stride}"
        yield [what, *(f"{1e3 * t:.2f}" for t in times[:2]), f"{times[0] / times[1]:.2f}", *(f"{1e3 * t:.2f}" for t in times[2:])]


def lines() -> Iterator[Row]:
    """Long lines of one feature, against SciPy's direct method."""
    yield ["samples, window", "tidu: ms", "scipy.signal.correlate: ms", "ratio"]
    random = np.random.default_rng(0)
    for n, m in ((1_000, 50), (20_000, 500), (1_000_000, 5)):
        x, w = random.normal(size=n), random.normal(size=m)
        run = program(tidu.trace(lambda x, w: np.correlate(x, w, "valid"), x=x, w=w))
        times = least([lambda run=run, x=x, w=w: run({"x": x, "w": w}), lambda x=x, w=w: signal.correlate(x, w, "valid", "direct")])
        yield [f"{n:,}, {m}", *(f"{1e3 * t:.3f}" for t in times), f"{times[0] / times[1]:.2f}"]


def loss(params: Arrays, images: Any, labels: Any) -> Any:
    """Two convolutions of 3 × 3, rectified, each with a maximum over 2 × 2, and a layer of scores: softmax cross-entropy."""
    hidden = images
    for k in ("1", "2"):
        hidden = conv_general_dilated(hidden, params[f"w{k}"], (1, 1), "VALID") + params[f"b{k}"][:, None, None]
        hidden = reduce_window_max(np.maximum(hidden, 0), (1, 1, 2, 2), (1, 1, 2, 2))
    scores = hidden.reshape(len(images), -1) @ params["w3"] + params["b3"]
    top = np.max(scores, axis=1, keepdims=True)
    log_total = np.log(np.sum(np.exp(scores - top), axis=1)) + top[:, 0]
    return np.mean(log_total - scores[np.arange(len(images)), labels])


def pooled(x: Any) -> tuple[Any, Any]:
    """The maximum over each 2 × 2, and which of the four it is."""
    n, c, h, w = x.shape
    fours = (
        x[:, :, : h // 2 * 2, : w // 2 * 2]
        .reshape(n, c, h // 2, 2, w // 2, 2)
        .transpose(0, 1, 2, 4, 3, 5)
        .reshape(n, c, h // 2, w // 2, 4)
    )
    which = fours.argmax(-1)
    return np.take_along_axis(fours, which[..., None], -1)[..., 0], which


def unpooled(g: Any, which: Any, shape: tuple[int, ...]) -> Any:
    """The adjoint."""
    n, c, h, w = g.shape
    fours = np.zeros((*g.shape, 4))
    np.put_along_axis(fours, which[..., None], g[..., None], -1)
    values = np.zeros(shape)
    values[:, :, : 2 * h, : 2 * w] = fours.reshape(n, c, h, w, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, 2 * h, 2 * w)
    return values


def gradient_by_hand(p: Arrays, images: Any, labels: Any) -> Arrays:
    """The gradient of `loss`, as one writes it with back-propagation in mind."""
    x, kept = images, []
    for k in ("1", "2"):
        y, cols = convolution_by_hand(x, p[f"w{k}"], 1)
        y = y + p[f"b{k}"][:, None, None]
        small, which = pooled(np.maximum(y, 0))
        kept.append((x.shape, cols, y, which))
        x = small
    flat = x.reshape(len(images), -1)
    scores = flat @ p["w3"] + p["b3"]
    g = np.exp(scores - scores.max(1, keepdims=True))
    g /= g.sum(1, keepdims=True)
    g[np.arange(len(images)), labels] -= 1
    g /= len(images)
    gradient = {"w3": flat.T @ g, "b3": g.sum(0)}
    g = (g @ p["w3"].T).reshape(x.shape)
    for k, (shape, cols, y, which) in zip("21", reversed(kept), strict=True):
        g = unpooled(g, which, y.shape) * (y > 0)
        rows, w = g.transpose(0, 2, 3, 1).reshape(-1, g.shape[1]), p[f"w{k}"]
        gradient |= {f"b{k}": g.sum((0, 2, 3)), f"w{k}": (rows.T @ cols).reshape(w.shape)}
        if k == "2":
            # Each column back to where it was taken from, place by place of the window.
            back = (rows @ w.reshape(len(w), -1)).reshape(shape[0], *g.shape[2:], shape[1], 3, 3)
            before = np.zeros(shape)
            for i in range(3):
                for j in range(3):
                    before[:, :, i : i + g.shape[2], j : j + g.shape[3]] += back[..., i, j].transpose(0, 3, 1, 2)
            g = before
    return gradient


def networks() -> Iterator[Row]:
    """The gradient by all parameters, of 64 images."""
    yield ["images, features", "tidu: ms", "by hand: ms", "ratio"]
    random = np.random.default_rng(0)
    for size, first, second in ((28, 8, 16), (8, 8, 16), (28, 16, 32)):
        left = ((size - 2) // 2 - 2) // 2
        shapes = {
            "w1": (first, 1, 3, 3),
            "b1": (first,),
            "w2": (second, first, 3, 3),
            "b2": (second,),
            "w3": (second * left**2, 10),
            "b3": (10,),
        }
        params = {k: random.normal(size=shape) / 3 for k, shape in shapes.items()}
        images, labels = random.normal(size=(64, 1, size, size)), random.integers(0, 10, 64)
        document = tidu.trace(loss, params=params, images=images, labels=labels, output="y")
        gradient = tidu.materialize(tidu.grad(document, [f"params.{k}" for k in params]))
        compiled = compile_graph(gradient.head)
        at = {parse_key(f"params.{k}"): v for k, v in params.items()}
        at |= {parse_key("images"): images, parse_key("labels"): labels, parse_key("y@-1"): np.array(1.0)}
        given = {i.key: at[i.key] for i in compiled.inputs}
        expected = gradient_by_hand(params, images, labels)
        for output, value in zip(compiled.outputs, compiled.run(given), strict=True):
            np.testing.assert_allclose(value, expected[str(output.key).removeprefix("params.").removesuffix("@-1")], 1e-9, 1e-10)
        times = least([lambda c=compiled, g=given: c.run(g), lambda a=(params, images, labels): gradient_by_hand(*a)], 20)
        what = f"64 of {size} × {size}, {first} and {second} features"
        yield [what, *(f"{1e3 * t:.2f}" for t in times), f"{times[0] / times[1]:.2f}"]


def main() -> None:
    """Print the tables."""
    for table in (convolutions, lines, networks):
        rows = list(table())
        print(f"\n{(table.__doc__ or '').strip()}\n")
        for k, row in enumerate(rows):
            row += [""] * (len(rows[0]) - len(row))
            print("| " + " | ".join(row) + " |")
            if not k:
                print("|---|" + "---:|" * (len(row) - 1))


if __name__ == "__main__":
    main()
