"""How long running programs takes: scalar programs in groups and one by one, arrays, batches.

    python benchmarks/execution.py --markdown

CPU time, the least of several runs. The scalar graphs are those of `benchmarks/generate.py`, and their gradients by all inputs.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tidu_cli as tidu
from tidu_cli.graph.graph import CaseTable, Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.runtime.batches import evaluate_batch
from tidu_cli.runtime.plans.groups import GroupedProgram
from tidu_cli.runtime.plans.interpreter import Program
from tidu_cli.runtime.plans.program import compile_graph, grouped_program, plain_program
from tidu_cli.transforms.batch import vectorized

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.generate import SHAPES

Rows = Iterator[list[str]]
F64 = TensorType("f64")


def least(call: Callable[[], Any], times: int = 5) -> float:
    """Seconds of CPU time of the quickest call."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


def gradient(shape: str, n: int) -> Graph:
    """The gradient of a generated graph by all its inputs."""
    document = SHAPES[shape](n)
    return tidu.grad(document, [i.key for i in document.head.inputs]).head


def point(graph: Graph, items: int | None = None) -> dict[Key, Any]:
    """Inputs within ±1."""
    rng = np.random.default_rng(0)
    return {i.key: np.array(rng.uniform(-1, 1, items)) for i in graph.inputs}


def scalars(sizes: list[int]) -> Rows:
    """Compile and run, per node of the graph that is differentiated and per node of the gradient."""
    yield [
        "gradient of",
        "nodes of it",
        "plan",
        "compile: µs",
        "first run: µs",
        "run: µs",
        "run, per node of it: µs",
        "one by one: µs",
    ]
    for n in sizes:
        for shape in SHAPES:
            graph = gradient(shape, n)
            compiling = least(lambda graph=graph: compile_graph(graph), 3)
            program, plain, at = compile_graph(graph), plain_program(graph), point(graph)
            plan = f"{len(program.code):,} groups" if isinstance(program, GroupedProgram) else "one by one"
            first = least(lambda program=program, at=at: program.run(at), 1)
            running, alone = (least(lambda p=p, at=at: p.run(at)) for p in (program, plain))
            times = [f"{1e6 * t / n:.2f}" for t in (compiling, first, running)]
            yield [
                f"{shape}, {n:,}",
                f"{graph.n_nodes:,}",
                plan,
                *times,
                f"{1e6 * running / graph.n_nodes:.3f}",
                f"{1e6 * alone / n:.2f}",
            ]


def layered(n: int, width: int) -> Graph:
    """Layers of as many sums, differences and products: the groups have about `width` nodes."""
    cases = CaseTable()
    builder = GraphBuilder(cases, [Input(Key(f"x{k}"), F64) for k in range(3 * width)])
    draw, last = random.Random(0), list(range(3 * width))
    codes = [cases.intern(BUILTIN.case(op, BUILTIN[op].domain.attrs(), None, [F64, F64])) for op in ("add", "sub", "mul")]
    for _ in range(n // (3 * width)):
        last = [builder.append(code, [draw.choice(last), draw.choice(last)]) for code in codes for _ in range(width)]
    return builder.build("layers", [Output(Key(f"y{k}"), value, F64) for k, value in enumerate(last)])


def crossover(sizes: list[int]) -> Rows:
    """Groups against one by one, by the size of groups."""
    yield ["steps in a group", "in groups: µs a node", "one by one: µs a node"]
    for width in sizes:
        graph = layered(30_000, width)
        groups, plain, at = grouped_program(graph), plain_program(graph), point(graph)
        assert groups is not None
        times = [least(lambda p=p, at=at: p.run(at)) / p.n_steps for p in (groups, plain)]
        yield [f"{groups.n_steps / len(groups.code):.1f}", *(f"{1e6 * t:.3f}" for t in times)]


OPS = {"add": ("add", 2), "mul": ("multiply", 2), "sin": ("sin", 1), "sub": ("subtract", 2), "tanh": ("tanh", 1)}
"""What NumPy calls them, and of how many operands."""


def arrays(n: int, size: int) -> tuple[Program, Callable[..., Any]]:
    """A program of up to n nodes of small vectors, a tenth of them products with a matrix; and the same NumPy calls, one a line."""
    vector, matrix = TensorType("f64", (size,)), TensorType("f64", (size, size))
    cases = CaseTable()
    builder = GraphBuilder(cases, [Input(Key("m"), matrix), *(Input(Key(f"x{k}"), vector) for k in range(4))])
    numbers = {"dimension_numbers": [[[1], [0]], [[], []]]}
    product = cases.intern(BUILTIN.case("dot_general", BUILTIN.parse_attrs("dot_general", numbers), None, [matrix, vector]))
    codes = {
        op: cases.intern(BUILTIN.case(op, BUILTIN[op].domain.attrs(), None, [vector] * arity)) for op, (_, arity) in OPS.items()
    }
    draw, values, lines, known = random.Random(0), [1, 2, 3, 4], [], set[tuple[int, ...]]()
    for k in range(n):
        recent = values[-6:]
        if k % 10 == 9:
            name, code, reads = "matmul", product, [0, draw.choice(recent)]
        else:
            op = draw.choice(list(OPS))
            name, arity = OPS[op]
            code, reads = codes[op], [draw.choice(recent) for _ in range(arity)]
        if (code, *reads) in known:  # what is equal runs once, and would by hand, too
            continue
        known.add((code, *reads))
        values.append(builder.append(code, reads))
        lines.append(f"    v{values[-1]} = {name}({', '.join(f'v{v}' for v in reads)})")
    last = values[-6:]
    graph = builder.build("arrays", [Output(Key(f"y{v}"), v, vector) for v in last])
    program = plain_program(graph)
    computed = [lines[node] for node in sorted(program.node)]  # without those that nothing needs
    source = ["def by_hand(v0, v1, v2, v3, v4):", *computed, f"    return {', '.join(f'v{v}' for v in last)}"]
    scope: dict[str, Any] = {name: getattr(np, name) for name in ("matmul", *(name for name, _ in OPS.values()))}
    exec("\n".join(source), scope)
    return program, scope["by_hand"]


def overhead(sizes: list[int]) -> Rows:
    """Array programs against the same NumPy calls written by hand."""
    yield ["vectors of 8: nodes", "run: µs a node", "by hand: µs a node", "over it: µs a node"]
    for n in sizes:
        program, by_hand = arrays(n, 8)
        rng = np.random.default_rng(0)
        at = {i.key: rng.uniform(-1, 1, i.type.shape) for i in program.graph.inputs if isinstance(i.type, TensorType)}
        given = list(at.values())
        for ours, theirs in zip(program.run(at), by_hand(*given), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
        best = [float("inf")] * 2
        for _ in range(20):  # by turns
            calls = (lambda program=program, at=at: program.run(at)), (lambda by_hand=by_hand, given=given: by_hand(*given))
            best = [min(b, least(call, 3)) for b, call in zip(best, calls, strict=True)]
        run, hand = (1e6 * t / program.n_steps for t in best)
        yield [f"{program.n_steps:,}", f"{run:.2f}", f"{hand:.2f}", f"{run - hand:.2f}"]


def batches(sizes: list[int]) -> Rows:
    """Time per item by the size of the batch."""
    problems: dict[str, tuple[Graph, Callable[[int], dict[Key, Any]]]] = {}
    for shape in SHAPES:
        graph = gradient(shape, 10_000)
        problems[f"gradient of {shape}, 10,000"] = graph, lambda items, graph=graph: point(graph, items)
    loss = tidu.trace(lambda w, v, x: np.sum(np.tanh(np.tanh(x @ w) @ v)), w="f64[32,32]", v="f64[32,8]", x="f64[32]")
    network = tidu.grad(loss, ["x"]).head
    rng = np.random.default_rng(0)
    weights = {Key("w"): rng.normal(size=(32, 32)), Key("v"): rng.normal(size=(32, 8))}
    problems["gradient of a network, by x[32]"] = network, lambda items: {**weights, Key("x"): rng.normal(size=(items, 32))}
    yield ["µs per item, with compiling", *map(str, sizes)]
    for name, (graph, make) in problems.items():
        row = [name]
        for size in sizes:
            at = make(size)
            axes = {k: 0 for k in at if k not in weights}
            row.append(
                f"{1e6 * least(lambda graph=graph, at=at, axes=axes: evaluate_batch(graph, at, axes, vectorized), 2) / size:,.0f}"
            )
        yield row


PARTS: dict[str, Callable[[bool], Rows]] = {
    "scalars": lambda quick: scalars([10_000] if quick else [10_000, 100_000, 1_000_000]),
    "crossover": lambda quick: crossover([1, 8] if quick else [1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 64]),
    "overhead": lambda quick: overhead([500] if quick else [500, 5000]),
    "batches": lambda quick: batches([1, 64] if quick else [1, 4, 16, 64, 256, 1024, 4096]),
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="|".join(PARTS), help="which tables [default: all]")
    parser.add_argument("--markdown", action="store_true", help="as tables of Markdown")
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    options = parser.parse_args()
    for part in options.parts or PARTS:
        for number, row in enumerate(PARTS[part](options.quick)):
            print("| " + " | ".join(row) + " |" if options.markdown else "  ".join(f"{cell:>14}" for cell in row), flush=True)
            if options.markdown and not number:
                print("|---|" + "---:|" * (len(row) - 1))
        print()


if __name__ == "__main__":
    main()
