"""How long the gradients of small graphs take, in a process that has seen such graphs before: microseconds a node.

    python benchmarks/small.py --markdown

Rules are recorded when the first graph comes; a later one of the same cases takes the templates that there are. Times are CPU
time, the least of several runs on graphs of different seeds. With NumPy imported, graphs of some 256 nodes go by whole columns.
"""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module

from generate import SHAPES
from pipeline import rendered

from tidu_cli.graph.graph import Document
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

STAGES = {
    "linearize": lambda document: linearize(document, [i.key for i in document.head.inputs]),
    "transpose": transpose,
    "materialize": materialize,
}


def gradient_seconds(document: Document) -> list[float]:
    """The CPU seconds of each stage."""
    seconds = []
    for stage in STAGES.values():
        start = time.process_time()
        document = stage(document)
        seconds.append(time.process_time() - start)
    return seconds


def row(shape: str, n: int, repeat: int) -> list[str]:
    """The least µs a node of each stage, their sum, and that of the first graph that the process has seen of this shape."""
    runs = [gradient_seconds(SHAPES[shape](n, seed)) for seed in range(repeat)]
    least = [min(times) for times in zip(*runs, strict=True)]
    numpy = "yes" if "numpy" in sys.modules else "no"
    return [shape, f"{n:,}", numpy, *(f"{1e6 * s / n:.1f}" for s in (*least, sum(least), sum(runs[0])))]


def main() -> None:
    """Measure, first without NumPy and then with it, and print the table."""
    parser = argparse.ArgumentParser(description="Measure gradients of small graphs.")
    parser.add_argument("--sizes", default="100,1000,10000", help="numbers of nodes, separated by commas")
    parser.add_argument("--repeat", type=int, default=30, help="graphs to take the least of")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    chosen = parser.parse_args()
    sizes = [int(size) for size in chosen.sizes.split(",")]
    rows = [["shape", "nodes", "NumPy", *STAGES, "in all", "the first"]]
    for import_numpy in (False, True):
        if import_numpy:
            import_module("numpy")
        rows += [row(shape, n, chosen.repeat) for shape in SHAPES for n in sizes if import_numpy or n < 10_000]
    print("\n".join(rendered(rows, markdown=chosen.markdown)))


if __name__ == "__main__":
    main()
