"""Loops: a step on NumPy against the same written by hand, and gradients through loops against their forward runs.

    python benchmarks/loops.py --markdown

A pendulum by so many Runge-Kutta steps (scalars), and a recurrent network of so many cells (arrays). Each is traced as a scan;
"by hand" is the same function on NumPy's values, in a loop of Python. Where JAX is installed, jax.grad of lax.scan is compiled and
timed beside it, on the CPU and in f64. Times are the least of several runs of one process, so that ratios can be compared.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from pipeline import rendered

import tidu_cli
from tidu_cli.runtime.evaluate import call
from tidu_cli.runtime.plans.program import compile_graph
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose


def pendulum(n: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """n steps of 0.001 s by the classical Runge-Kutta method; gradients by stiffness and start."""

    def orbit(scan: Any, np: Any, k: Any, x0: Any) -> Any:
        h = 1e-3

        def velocity(x: Any, v: Any) -> tuple[Any, Any]:
            return v, -k * np.sin(x)

        def step(carry: Any, _: Any) -> tuple[Any, None]:
            x, v = carry
            a1, b1 = velocity(x, v)
            a2, b2 = velocity(x + h / 2 * a1, v + h / 2 * b1)
            a3, b3 = velocity(x + h / 2 * a2, v + h / 2 * b2)
            a4, b4 = velocity(x + h * a3, v + h * b3)
            return (x + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4), v + h / 6 * (b1 + 2 * b2 + 2 * b3 + b4)), None

        (x, v), _ = scan(step, (x0, 0.0 * x0), None, length=n)
        return x * v

    return orbit, (np.float64(2.0), np.float64(1.0))


def network(n: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """n cells of 32 numbers, each fed 32; gradients by both matrices."""

    def loss(scan: Any, np: Any, w: Any, u: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> tuple[Any, Any]:
            h = np.tanh(w @ h + u @ x)
            return h, (h * h).sum()

        h, ys = scan(step, xs[0], xs)
        return ys.sum() + h.sum()

    rng = np.random.default_rng(0)
    return loss, (rng.standard_normal((32, 32)) / 8, rng.standard_normal((32, 32)) / 8, rng.standard_normal((n, 32)))


def in_python(step: Any, carry: Any, xs: Any, length: int | None = None) -> tuple[Any, Any]:
    """The loop by hand."""
    ys = []
    for k in range(len(xs) if length is None else length):
        carry, y = step(carry, None if xs is None else xs[k])
        ys.append(y)
    return carry, None if xs is None else np.array(ys)


def least(run: Callable[[], Any], repeat: int) -> float:
    """The least seconds of several runs, after one that is not counted."""
    run()
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def row(name: str, made: Any, n: int, repeat: int) -> list[str]:
    """Seconds of making the gradient and of running it, and the ratios that count."""
    function, values = made(n)
    start = time.perf_counter()
    document = tidu_cli.trace(lambda *args: function(tidu_cli.scan, np, *args), *values, name=name)
    keys = [i.key for i in document.head.inputs]
    reverse = transpose(linearize(document, keys))
    making = time.perf_counter() - start
    graph = materialize(reverse).head
    given = dict(zip(keys, values, strict=True))
    primal, gradient = compile_graph(document.head), compile_graph(graph)
    cotangents = {i.key: np.ones(i.type.shape) for i in graph.inputs if i.key not in given}
    by_hand = least(lambda: function(in_python, np, *values), repeat)
    forward = least(lambda: call(primal, given), repeat)
    back = least(lambda: call(gradient, given | cotangents), repeat)
    theirs = jax_seconds(function, values, repeat)
    figures = [f"{making:.3f}", f"{forward / by_hand:.2f}", f"{1e3 * forward:.1f}", f"{back / forward:.1f}"]
    return [name, f"{n:,}", *figures, *(f"{1e3 * s:.1f}" for s in theirs)]


def jax_seconds(function: Callable[..., Any], values: tuple[Any, ...], repeat: int) -> tuple[float, float]:
    """The seconds of the function and of its gradient by JAX, compiled; NaN without JAX."""
    try:
        import jax
    except ImportError:
        return float("nan"), float("nan")
    jax.config.update("jax_enable_x64", True)

    def loss(*args: Any) -> Any:
        return function(jax.lax.scan, jax.numpy, *args)

    runs = jax.jit(loss), jax.jit(jax.grad(loss, tuple(range(len(values)))))
    return tuple(least(lambda run=run: jax.block_until_ready(run(*values)), repeat) for run in runs)  # type: ignore[misc, return-value]


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description="Measure loops and gradients through them.")
    parser.add_argument("--steps", default="1000,10000", help="numbers of steps, separated by commas")
    parser.add_argument("--repeat", type=int, default=5, help="runs to take the least of")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    chosen = parser.parse_args()
    rows = [["loop", "steps", "trace, linearize, transpose (s)", "forward / by hand", "forward (ms)", "gradient / forward", "JAX forward (ms)", "JAX gradient (ms)"]]  # fmt: skip  # noqa: E501
    for name, made in (("pendulum", pendulum), ("network", network)):
        rows += [row(name, made, int(n), chosen.repeat) for n in chosen.steps.split(",")]
    print(*rendered(rows, markdown=chosen.markdown), sep="\n")


if __name__ == "__main__":
    main()
