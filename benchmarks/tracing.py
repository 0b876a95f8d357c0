"""Loops of Python that are traced as they run: microseconds a node, beside jax.make_jaxpr of the same function.

    python benchmarks/tracing.py --markdown

Both record the same function, one after the other; what is shown is the least of several runs of each, in one process.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from pipeline import rendered

import tidu_cli


def logistic(n: int, np: Any) -> tuple[Callable[..., Any], tuple[str, ...]]:
    """Operators on numbers."""

    def function(x: Any, a: Any) -> Any:
        for _ in range(n // 4):
            x = x * a + 0.5
            x = x - a / x
        return x

    return function, ("f64[]", "f64[]")


def waves(n: int, np: Any) -> tuple[Callable[..., Any], tuple[str, ...]]:
    """Functions and operators on arrays, and slices."""

    def function(x: Any) -> Any:
        for _ in range(n // 5):
            x = np.sin(x) + 2.0 * x - x[::-1]
        return x

    return function, ("f64[3]",)


def pendulum(n: int, np: Any) -> tuple[Callable[..., Any], tuple[str, ...]]:
    """Elements, and arrays of elements."""

    def function(y: Any, dt: Any) -> Any:
        for _ in range(n // 12):
            angle, speed = y[0], y[1]
            y = np.stack([angle + dt * speed, speed - dt * np.sin(angle)])
        return y

    return function, ("f64[2]", "f64[]")


LOOPS = {"numbers": logistic, "arrays": waves, "elements": pendulum}


def seconds(run: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    """The least seconds of several runs, and what the last one gave."""
    times, result = [], None
    for _ in range(repeat):
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
    return min(times), result


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    try:
        import jax
    except ImportError:
        jax = None  # type: ignore[assignment]
    rows = []
    for name, loop in LOOPS.items():
        for n in given.nodes:
            function, types = loop(n, np)
            taken, document = seconds(lambda: tidu_cli.trace(function, *types), given.repeat)  # noqa: B023  # called at once
            nodes = len(document.head.code)
            row = [name, f"{nodes:,}", f"{taken:.2f}", f"{1e6 * taken / nodes:.1f}"]
            if jax is not None:
                plain, _ = loop(n, jax.numpy)
                shapes = [jax.ShapeDtypeStruct(() if t == "f64[]" else (int(t[4]),), "float32") for t in types]
                theirs, jaxpr = seconds(lambda: jax.make_jaxpr(plain)(*shapes), 1)  # noqa: B023
                row.append(f"{1e6 * theirs / len(jaxpr.eqns):.0f}")
            rows.append(row)
    header = ["loop", "nodes", "seconds", "µs a node", *(["JAX: µs an equation"] if jax is not None else [])]
    print("\n".join(rendered([header, *rows], markdown=given.markdown)))


if __name__ == "__main__":
    main()
