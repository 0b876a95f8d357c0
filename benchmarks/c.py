"""C that tidu writes, beside C that CasADi writes of the same functions, and beside XLA: by turns in one process.

    python -m benchmarks.c [scalars] [arrays] [--casadi PYTHON] [--nodes 1000 10000] [--flags=-O2]

`scalars` are the gradients of graphs of scalars of `benchmarks.generate` by all inputs. tidu and CasADi differentiate the same
function by themselves; both files are compiled with the same flags. Times are the least of many runs, a node is one of tidu's
gradient, and writing and compiling count processor time. `arrays` are gradients of ADBench's functions, with `jax.jit(jax.grad(f))`
beside them, on one thread. CasADi may be in an environment of its own, whose Python `--casadi` names.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tidu_cli as tidu
from benchmarks.generate import SHAPES
from tidu_cli.formats.write import format_document, write_document

Call = Callable[..., Any]

GENERATE = """
import json, sys, casadi
functions = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "sin": casadi.sin, "cos": casadi.cos,
             "tanh": casadi.tanh, "logistic": lambda x: 1 / (1 + casadi.exp(-x))}
told = json.load(sys.stdin)
x = casadi.SX.sym("x", told["inputs"])
values = [x[k] for k in range(told["inputs"])]
for op, operands in told["nodes"]:
    values.append(functions[op](*[values[k] for k in operands]))
f = casadi.Function("gradient", [x], [casadi.gradient(values[told["output"]], x)])
f.generate("theirs.c")
print(json.dumps([f.sz_w(), f.n_instructions()]))
"""


def compiled(path: Path, flags: Sequence[str], call: str) -> tuple[Any, float]:
    """A library with `repeat(n, a)`, which does a call n times, and the compiler's processor time."""
    library = path.with_suffix(".so")
    with path.open("a") as file:
        file.write(f"\nvoid repeat(long n, void **a) {{ for (long k = 0; k < n; ++k) {call}; }}\n")
    begin = _seconds_of_children()
    subprocess.run(["cc", "-std=c99", *flags, "-shared", "-fPIC", str(path), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library)), _seconds_of_children() - begin


def _seconds_of_children() -> float:
    spent = os.times()
    return spent.children_user + spent.children_system


def address(array: np.ndarray) -> ctypes.c_void_p:
    """The address of an array."""
    return array.ctypes.data_as(ctypes.c_void_p)


def ours(document: Any, values: Sequence[Any], folder: Path, flags: Sequence[str]) -> tuple[Call, float]:
    """A call of the C of a document, which gives its outputs, and how long it took to compile."""
    path = folder / "ours.c"
    write_document(document, str(path), "c")
    header = path.with_suffix(".h").read_text()
    name, n_bytes = (str(re.search(p, header, re.M)[1]) for p in (r"^int (\w+)\(", r"_WORK_BYTES (\d+)L"))  # type: ignore[index]
    n = len(document.head.inputs) + len(document.head.outputs) + 1
    library, seconds = compiled(path, flags, f"{name}({', '.join([f'a[{k}]' for k in range(n)])})")
    work = np.empty(int(n_bytes) // 8 + 1)
    inputs = [np.ascontiguousarray(x, float) for x in values]
    outputs = [np.empty(o.type.shape) for o in document.head.outputs]
    places = (ctypes.c_void_p * n)(*[address(a) for a in (*inputs, *outputs, work)])

    def call(times: int = 1, keep: Any = (inputs, work)) -> list[np.ndarray]:
        library.repeat(times, places)
        return outputs

    return call, seconds


def theirs(document: Any, point: np.ndarray, folder: Path, flags: Sequence[str], python: str) -> tuple[Call, float, int]:
    """Likewise of the C that CasADi writes of the gradient of a graph of scalars; and how many instructions that has."""
    graph = document.head
    told = {
        "inputs": len(graph.inputs),
        "nodes": [[case.op, [int(k) for k in operands]] for case, operands in graph.nodes()],
        "output": int(graph.outputs[0].value),
    }
    done = subprocess.run(
        [python, "-c", GENERATE],
        cwd=folder,
        input=json.dumps(told),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": ""},
    )
    n_work, n_instructions = json.loads(done.stdout)
    library, seconds = compiled(
        folder / "theirs.c", flags, "gradient((const double **)a[0], (double **)a[1], 0, (double *)a[2], 0)"
    )
    work, result = np.empty(max(n_work, 1)), np.empty(len(point))
    arguments, results = (ctypes.c_void_p * 1)(address(point)), (ctypes.c_void_p * 1)(address(result))
    places = (ctypes.c_void_p * 3)(*[ctypes.cast(a, ctypes.c_void_p) for a in (arguments, results, address(work))])

    def call(times: int = 1, keep: Any = (work, arguments, results)) -> list[np.ndarray]:
        library.repeat(times, places)
        return [result]

    return call, seconds, n_instructions


def by_turns(*calls: Call, seconds: float = 2.0, repeats: int = 1) -> tuple[list[float], list[float]]:
    """The least time of each, and the medians of its ratios to all others. In each turn it is called `repeats` times."""
    times: list[list[float]] = [[] for _ in calls]
    end = time.perf_counter() + seconds
    while len(times[0]) < 5 or time.perf_counter() < end:
        for own, call in zip(times, calls, strict=True):
            begin = time.perf_counter()
            call(repeats)
            own.append((time.perf_counter() - begin) / repeats)
    return [min(t) for t in times], [statistics.median(a / b for a, b in zip(times[0], t, strict=True)) for t in times[1:]]


def scalars(shape: str, n: int, flags: Sequence[str], python: str) -> list[str]:
    """A row of figures."""
    document = SHAPES[shape](n)
    keys = [i.key for i in document.head.inputs]
    gradient = tidu.grad(document, keys)
    size = gradient.head.n_nodes
    point = np.random.default_rng(0).uniform(-1, 1, len(keys))
    values = [dict(zip(keys, point, strict=True)).get(i.key, 1.0) for i in gradient.head.inputs]
    writing = min(_seconds(lambda: format_document(gradient, "c")) for _ in range(3))
    with tempfile.TemporaryDirectory() as name:
        own, compiling = ours(gradient, values, Path(name), flags)
        other, their_compiling, _ = theirs(document, point, Path(name), flags, python)
        np.testing.assert_allclose(np.ravel(own()), other()[0], rtol=1e-9, atol=1e-12)
        (a, b), (ratio,) = by_turns(own, other, repeats=1 + 30_000 // size)
    return [
        shape, f"{size:,}", f"{a / size * 1e6:.4f}", f"{b / size * 1e6:.4f}", f"{ratio:.2f}", f"{writing / size * 1e6:.1f}",
        f"{compiling / size * 1e6:.0f}", f"{their_compiling / size * 1e6:.0f}",
    ]  # fmt: skip


def _seconds(call: Call) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def arrays(name: str, flags: Sequence[str]) -> list[str]:
    """A row of figures."""
    import jax

    from benchmarks import xla

    problem = xla.PROBLEMS[name]()
    document = tidu.trace(problem.numpy, *problem.args)
    gradient = tidu.grad(document, [i.key for i in document.head.inputs][: problem.n_wrt])
    given = dict(zip([i.key for i in document.head.inputs], problem.args, strict=True))
    other = jax.jit(jax.grad(problem.function, tuple(range(problem.n_wrt))))
    with tempfile.TemporaryDirectory() as folder:
        own, compiling = ours(gradient, [given.get(i.key, 1.0) for i in gradient.head.inputs], Path(folder), flags)
        for x, y in zip(own(), other(*problem.args), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)
        (a, b), _ = by_turns(own, lambda times: jax.block_until_ready(other(*problem.args)), seconds=10)
    return [problem.name, f"{a * 1e3:.3f}", f"{b * 1e3:.3f}", f"{a / b:.2f}", f"{compiling:.2f}"]


def table(head: Sequence[str], rows: list[list[str]]) -> None:
    """Print a table of Markdown."""
    print("| " + " | ".join(head) + " |")
    print("|---|" + "---:|" * (len(head) - 1))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description="C of tidu beside that of others.")
    parser.add_argument("work", nargs="*", default=["scalars", "arrays"])
    parser.add_argument("--casadi", default=sys.executable, help="the Python that has CasADi")
    parser.add_argument("--nodes", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--names", nargs="+", default=["gmm-small", "gmm", "lstm-loop"])
    parser.add_argument("--flags", default="-O2")
    told = parser.parse_args()
    flags = told.flags.split()
    if "scalars" in told.work:
        head = "gradient of", "nodes", "µs a node", "CasADi's", "ours / theirs", "to write: µs a node", "to compile", "CasADi's"
        table(head, [scalars(shape, n, flags, told.casadi) for n in told.nodes for shape in SHAPES])
    if "arrays" in told.work:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        os.environ["JAX_ENABLE_X64"] = "1"
        table(
            ("gradient of", "C: ms", "jax.jit: ms", "ours / theirs", "to compile: s"), [arrays(name, flags) for name in told.names]
        )


if __name__ == "__main__":
    main()
