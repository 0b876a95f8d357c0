"""How long running programs takes: scalar programs in groups and one by one, batches, start-up with and without a program file.

    python benchmarks/execution.py --markdown

CPU time, the least of several runs. The scalar graphs are those of `benchmarks/generate.py`, and their gradients by all inputs.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tidu_cli as tidu
from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.graph import CaseTable, Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType
from tidu_cli.primitives.builtin import BUILTIN
from tidu_cli.runtime.batches import evaluate_batch
from tidu_cli.runtime.groups import GroupedProgram
from tidu_cli.runtime.program import compile_graph, grouped_program, plain_program
from tidu_cli.transforms.vectorize import vectorized

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
    codes = [cases.intern(BUILTIN.case(op, BUILTIN[op].attrs(), None, [F64, F64])) for op in ("add", "sub", "mul")]
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


def commands(sizes: list[int]) -> Rows:
    """`tidu eval` of a document and of the program that was compiled of it: CPU seconds of the process."""
    yield [
        "gradient of",
        "document: MB",
        "program: MB",
        "tidu eval of the document: s",
        "tidu compile: s",
        "tidu eval of the program: s",
    ]
    for n in sizes:
        for shape in SHAPES:
            with tempfile.TemporaryDirectory() as folder:
                document, program, inputs = (Path(folder) / name for name in ("document.msgpack", "program", "inputs.npz"))
                made = tidu.grad(SHAPES[shape](n), "x0")
                tidu.save(made, document)
                np.savez(inputs, **{str(k): v for k, v in point(SHAPES[shape](n).head).items()})
                compiling = seconds("compile", document, "-o", program)
                of_document, of_program = (seconds("eval", file, "--inputs", inputs) for file in (document, program))
                sizes_mb = [f"{file.stat().st_size / 1e6:.1f}" for file in (document, program)]
            yield [f"{shape}, {n:,}", *sizes_mb, f"{of_document:.2f}", f"{compiling:.2f}", f"{of_program:.2f}"]


def seconds(*command: object) -> float:
    """The least CPU time of three runs of a command of tidu."""
    best = float("inf")
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([Path(sys.executable).with_name("tidu"), *map(str, command)], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


PARTS: dict[str, Callable[[bool], Rows]] = {
    "scalars": lambda quick: scalars([10_000] if quick else [10_000, 100_000, 1_000_000]),
    "crossover": lambda quick: crossover([1, 8] if quick else [1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 64]),
    "batches": lambda quick: batches([1, 64] if quick else [1, 4, 16, 64, 256, 1024, 4096]),
    "commands": lambda quick: commands([10_000] if quick else [10_000, 100_000]),
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
