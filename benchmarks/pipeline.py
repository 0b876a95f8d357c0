"""How long each stage takes, and how much memory, as graphs grow.

    python benchmarks/pipeline.py --markdown

Each size and shape is measured in a fresh process that runs the stages of `tidu` one after the other on the gradient of a graph
from `generate.py`. Times are CPU seconds, which on an idle machine are those of the clock: no stage uses a second core. Times and
peaks are medians over several such processes. The peak of a stage is the greatest resident size of the process while it ran,
interpreter and inputs included.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidu_cli.graph.graph import Graph

HERE = Path(__file__).parent
PEAK_RESET = Path("/proc/self/clear_refs")
STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class Stage:
    """What one stage took: seconds, the peak in bytes, and the nodes of the document or graph that it made (0: none)."""

    name: str
    seconds: float
    peak: int
    nodes: int


class Stopwatch:
    """Measures stages one after the other."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []

    def __call__(self, name: str, work: Callable[[], Any], nodes: Callable[[Any], int] = lambda made: 0) -> Any:
        """Do the work, note what it took, and give its result."""
        gc.collect()
        reset_peak()
        start = time.process_time()
        made = work()
        seconds = time.process_time() - start
        self.stages.append(Stage(name, seconds, peak(), nodes(made)))
        return made


def reset_peak() -> None:
    """Let `peak` start anew. Only Linux can: elsewhere peaks are those since the process began."""
    if PEAK_RESET.exists():
        PEAK_RESET.write_text("5")


def peak() -> int:
    """The peak resident size of this process in bytes."""
    if STATUS.exists():
        fields = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
        return int(fields["VmHWM"].split()[0]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def measure(folder: Path) -> list[Stage]:
    """Run every stage on the graph in `graph.json` and `graph.msgpack` of a folder, in this process."""
    from tidu_cli.api import load, save
    from tidu_cli.graph.graph import Document
    from tidu_cli.transforms.linearize import linearize
    from tidu_cli.transforms.linking.resolve import resolve
    from tidu_cli.transforms.materialize import materialize
    from tidu_cli.transforms.transpose import transpose

    def nodes(document: Document) -> int:
        return sum(graph.n_nodes for graph in document.graphs)

    clock = Stopwatch()
    clock("load, JSON", lambda: load(folder / "graph.json"), nodes)
    document = clock("load, msgpack", lambda: load(folder / "graph.msgpack"), nodes)
    document = clock("resolve", lambda: resolve([document]), nodes)
    wrt = [i.key for i in document.head.inputs]
    document = clock("linearize", lambda: linearize(document, wrt), nodes)
    document = clock("transpose", lambda: transpose(document), nodes)
    document = clock("materialize", lambda: materialize(document), nodes)
    clock("write, msgpack", lambda: save(document, folder / "gradient.msgpack"))
    clock("write, JSON", lambda: save(document, folder / "gradient.json"))
    _evaluate(document.head, clock)
    return clock.stages


def _evaluate(gradient: Graph, clock: Stopwatch) -> None:
    import numpy as np

    from tidu_cli.runtime.plans.program import compile_graph

    program = clock("compile", lambda: compile_graph(gradient), lambda made: made.n_steps)
    values = np.random.default_rng(0).uniform(-1, 1, len(gradient.inputs))
    given = {i.key: np.asarray(x) for i, x in zip(gradient.inputs, values, strict=True)}
    derivatives = clock("eval", lambda: program.run(given))
    if not np.isfinite(derivatives).all():
        raise ArithmeticError(f"graph '{gradient.name}': the gradient is not finite")


def measured_apart(folder: Path) -> list[Stage]:
    """As `measure`, in a fresh process."""
    done = subprocess.run([sys.executable, __file__, "--child", folder], check=True, stdout=subprocess.PIPE)
    return [Stage(**stage) for stage in json.loads(done.stdout)]


def measured(shape: str, n: int, repeat: int) -> list[Stage]:
    """The medians over some processes for a graph of this shape and size."""
    runs = []
    with tempfile.TemporaryDirectory() as scratch:
        for suffix in ("json", "msgpack"):
            subprocess.run([sys.executable, HERE / "generate.py", shape, str(n), Path(scratch, f"graph.{suffix}")], check=True)
        for k in range(repeat):
            print(f"{shape}, {n} nodes, run {k + 1} of {repeat}", file=sys.stderr)
            runs.append(measured_apart(Path(scratch)))
    return medians(runs)


def medians(runs: Sequence[Sequence[Stage]]) -> list[Stage]:
    """Stage by stage, the median time and peak of several runs."""
    return [
        Stage(
            stages[0].name,
            statistics.median(s.seconds for s in stages),
            round(statistics.median(s.peak for s in stages)),
            stages[0].nodes,
        )
        for stages in zip(*runs, strict=True)
    ]


def stage_table(sizes: Sequence[int], columns: Sequence[Sequence[Stage]]) -> list[list[str]]:
    """A row a stage: for each size µs per node of the graph that is differentiated, and peak MB; then nodes made per node."""
    header = ["stage"]
    for n in sizes:
        header += [f"{n:,}: µs", "MB"]
    rows = [[*header, "nodes made"]]
    for stages in zip(*columns, strict=True):
        row = [stages[0].name]
        for n, stage in zip(sizes, stages, strict=True):
            row += [f"{1e6 * stage.seconds / n:.2f}", f"{stage.peak / 1e6:.0f}"]
        rows.append([*row, f"{stages[-1].nodes / sizes[-1]:.2f}" if stages[-1].nodes else ""])
    return rows


def rendered(rows: Sequence[Sequence[str]], *, markdown: bool) -> Iterator[str]:
    """A table as lines of text: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        yield f"| {' | '.join(cells)} |" if markdown else "  ".join(cells).rstrip()
        if number == 0 and markdown:
            yield "|" + "|".join(["---", *["---:"] * (len(widths) - 1)]) + "|"


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description="Measure the stages of tidu.")
    parser.add_argument("--sizes", default="10000,100000,1000000", help="numbers of nodes, separated by commas")
    parser.add_argument("--shapes", default="dag,chain", help="dag, chain, or both")
    parser.add_argument("--repeat", type=int, default=3, help="processes to take the median of")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        print(json.dumps([vars(stage) for stage in measure(chosen.child)]))
        return

    sizes = [int(size) for size in chosen.sizes.split(",") if size]
    for shape in chosen.shapes.split(",") if sizes else []:
        columns = [measured(shape, n, chosen.repeat) for n in sizes]
        print("\n".join([f"{shape}:", "", *rendered(stage_table(sizes, columns), markdown=chosen.markdown), ""]))


if __name__ == "__main__":
    main()
