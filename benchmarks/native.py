"""Gradients of large graphs of scalars on the native engine, on CasADi's virtual machine of SX and on NumPy, by turns.

    python benchmarks/native.py [--nodes 1000 1000000] [--items 0]

tidu and CasADi differentiate the same function by themselves. Times are the best of several runs; a node is one of tidu's gradient.
With `--items` they are evaluated at so many points, on all cores but where it says so.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import casadi
import numpy as np

import tidu_cli as tidu
from benchmarks.generate import SHAPES
from tidu_cli.adapters.native.engine import program
from tidu_cli.graph.graph import Document
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.runtime.batches import Runs, evaluate_batch
from tidu_cli.runtime.choosing import Choice
from tidu_cli.runtime.plans.program import compile_graph
from tidu_cli.transforms.batch import vectorized

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "sin": casadi.sin,
    "cos": casadi.cos,
    "tanh": casadi.tanh,
    "logistic": lambda x: 1 / (1 + casadi.exp(-x)),
}


def casadi_gradient(document: Document) -> Any:
    """The gradient as a function of CasADi's, of a vector of the inputs."""
    graph = document.head
    x = casadi.SX.sym("x", len(graph.inputs))
    values = [x[k] for k in range(len(graph.inputs))]
    for case, operands in graph.nodes():
        values.append(FUNCTIONS[case.op](*[values[k] for k in operands]))
    (output,) = graph.outputs
    assert output.value is not None
    return casadi.Function("gradient", [x], [casadi.gradient(values[output.value], x)])


def by_turns(*functions: Callable[[], Any], turns: int = 7) -> list[float]:
    """The best time of each."""
    best = [float("inf")] * len(functions)
    for _ in range(turns):
        for k, function in enumerate(functions):
            begin = time.perf_counter()
            function()
            best[k] = min(best[k], time.perf_counter() - begin)
    return best


def compare(shape: str, n: int) -> None:
    """One line of figures: a run at one point."""
    document = SHAPES[shape](n)
    keys = [i.key for i in document.head.inputs]
    graph = tidu.grad(document, keys).head
    begin = time.perf_counter()
    native = program(graph, BUILTIN, None, None)
    planning = time.perf_counter() - begin
    plain = compile_graph(graph)
    other = casadi_gradient(document)
    point = np.random.default_rng(0).uniform(-1, 1, len(keys))
    inputs = {i.key: np.asarray(1.0) for i in graph.inputs} | dict(zip(keys, map(np.asarray, point), strict=True))
    buffers, evaluate = other.buffer()
    result = np.zeros(len(keys))
    buffers.set_arg(0, memoryview(point))
    buffers.set_res(0, memoryview(result))
    times = by_turns(lambda: native.run(inputs), evaluate, lambda: plain.run(inputs))
    np.testing.assert_allclose([float(v) for v in native.run(inputs)], result, rtol=1e-6, atol=1e-9)
    each = [f"{t / graph.n_nodes * 1e9:.1f}" for t in times]
    print(
        f"{shape} {n:,}: {graph.n_nodes:,} nodes, {other.n_instructions():,} instructions of CasADi's;"
        f" native {each[0]}, CasADi {each[1]}, NumPy {each[2]} ns a node; planned in {planning:.2f} s"
    )


def compare_batches(shape: str, n: int, items: int) -> None:
    """One line of figures: runs at many points."""
    document = SHAPES[shape](n)
    keys = [i.key for i in document.head.inputs]
    graph = tidu.grad(document, keys).head
    points = np.random.default_rng(0).uniform(-1, 1, (len(keys), items))
    inputs = {i.key: np.asarray(1.0) for i in graph.inputs} | dict(zip(keys, points, strict=True))

    def evaluated(engine: str) -> Callable[[], Any]:
        runs: Runs = {}
        choice, axes = Choice(engine, "as asked for"), dict.fromkeys(keys, 0)
        return lambda: evaluate_batch(graph, inputs, axes, vectorized, engine=choice, runs=runs)[0]

    native, other = evaluated("native"), casadi_gradient(document)
    one, all_cores = other.map(items, "serial"), other.map(items, "thread", os.cpu_count() or 1)
    given = casadi.DM(points)
    times = by_turns(native, evaluated("numpy"), lambda: all_cores(given), lambda: one(given))
    np.testing.assert_allclose(list(native().values()), np.array(one(given)), rtol=1e-6, atol=1e-9)
    each = [f"{t / graph.n_nodes / items * 1e9:.2f}" for t in times]
    print(
        f"{shape} {n:,}: {graph.n_nodes:,} nodes, {items:,} items;"
        f" native {each[0]}, NumPy on one core {each[1]}, CasADi {each[2]}, on one core {each[3]} ns a node and item"
    )


def main() -> None:
    """Compare each shape at each size."""
    parser = argparse.ArgumentParser(description="The native engine beside CasADi.")
    parser.add_argument("--nodes", type=int, nargs="+", default=[10**3, 10**4, 10**5, 10**6])
    parser.add_argument("--items", type=int, default=0, help="how many points at once")
    given = parser.parse_args()
    for n in given.nodes:
        for shape in SHAPES:
            if given.items:
                compare_batches(shape, n, given.items)
            else:
                compare(shape, n)


if __name__ == "__main__":
    main()
