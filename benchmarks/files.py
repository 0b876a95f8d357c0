"""What files cost a pipeline: reading and writing documents of each stage, the peak memory of commands, and a pipe of six of them.

    python benchmarks/files.py --markdown

The documents are those that the stages of a gradient of a graph from `generate.py` hand on, so that they hold several graphs which
refer to one another. Times of reading and writing are CPU microseconds per node of the document. The peak of a command is the
greatest resident size of its process, interpreter and packages included, compared to the larger of the packed files that it reads
and writes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pipeline import HERE, Stage, Stopwatch, rendered

TIDU = str(Path(sys.executable).with_name("tidu"))
FORMATS = ("msgpack", "json")
WIDTH = 64  # inputs of a DAG


def stages(shape: str) -> dict[str, list[str]]:
    """The commands of a gradient, by the names of the documents that they write."""
    wrt = [word for k in range(WIDTH if shape == "dag" else 1) for word in ("--wrt", f"x{k}")]
    return {
        "resolved": ["resolve"],
        "linearized": ["linearize", *wrt],
        "transposed": ["transpose"],
        "gradient": ["materialize"],
    }


def prepare(shape: str, n: int, folder: Path) -> list[str]:
    """Write the documents of all stages to a folder, in both formats. Gives their names."""
    before = "primal"
    subprocess.run([sys.executable, HERE / "generate.py", shape, str(n), folder / "primal.msgpack"], check=True)
    for name, command in stages(shape).items():
        subprocess.run([TIDU, *command, folder / f"{before}.msgpack", "-o", folder / f"{name}.msgpack"], check=True)
        before = name
    names = ["primal", *stages(shape)]
    for name in names:
        subprocess.run([TIDU, "convert", folder / f"{name}.msgpack", "-o", folder / f"{name}.json"], check=True)
    return names


def measure(path: Path) -> list[Stage]:
    """Read a document and write it in its format, in this process."""
    from tidu_cli.api import load, save

    clock = Stopwatch()
    document = clock("read", lambda: load(path), lambda made: sum(g.n_nodes for g in made.graphs))
    clock("write", lambda: save(document, path.with_stem("written")))
    return clock.stages


def measured_apart(path: Path, repeat: int) -> tuple[int, float, float]:
    """The nodes of a document, and the median seconds of reading and writing it, each time in a fresh process."""
    runs = []
    for _ in range(repeat):
        done = subprocess.run([sys.executable, __file__, "--child", path], check=True, stdout=subprocess.PIPE)
        runs.append([Stage(**stage) for stage in json.loads(done.stdout)])
    reading, writing = (statistics.median(run[k].seconds for run in runs) for k in range(2))
    return runs[0][0].nodes, reading, writing


def cost_table(names: list[str], folder: Path, repeat: int) -> list[list[str]]:
    """A row a document: nodes, bytes per node, and microseconds per node to read and to write."""
    rows = [["document", "nodes", *(f"{f}: {what}" for f in FORMATS for what in ("bytes", "read", "write", "both"))]]
    for name in names:
        row = [name]
        for format_ in FORMATS:
            path = folder / f"{name}.{format_}"
            n, reading, writing = measured_apart(path, repeat)
            times = (f"{1e6 * seconds / n:.2f}" for seconds in (reading, writing, reading + writing))
            row += [*([f"{n:,}"] if len(row) == 1 else []), f"{path.stat().st_size / n:.1f}", *times]
        rows.append(row)
    return rows


def peak_table(shape: str, folder: Path) -> list[list[str]]:
    """A row a command: its seconds by the clock, its peak, and how many times the packed file that is."""
    rows = [["command", "s", "MB", "packed MB", "times the file"]]
    before = "primal"
    for name, command in {**stages(shape), "values": ["eval", *given(shape)]}.items():
        source, out = folder / f"{before}.msgpack", folder / f"{name}.msgpack"
        start = time.perf_counter()
        process = subprocess.Popen([TIDU, *command, source, "-o", out])
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        if status:
            raise SystemExit(f"tidu {command[0]} failed")
        peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        size = max(source.stat().st_size, out.stat().st_size)
        rows.append([f"tidu {command[0]}", f"{seconds:.1f}", f"{peak / 1e6:.0f}", f"{size / 1e6:.1f}", f"{peak / size:.1f}"])
        before = name
    return rows


def given(shape: str) -> list[str]:
    """The options that give values to the inputs of the gradient."""
    at = [f"x{k}=0.5" for k in range(WIDTH if shape == "dag" else 1)]
    return [word for value in (*at, "y@-1=1") for word in ("--set", value)]


def pipe_seconds(shape: str, folder: Path) -> float:
    """The seconds by the clock of six stages that a shell pipe joins, from the primal graph to values of the gradient."""
    wrt = " ".join(stages(shape)["linearized"][1:])
    steps = [
        "resolve primal.msgpack",
        f"linearize {wrt}",
        "transpose",
        "materialize",
        "convert --format msgpack",
        f"eval {' '.join(given(shape))}",
    ]
    line = " | ".join(f"{TIDU} {step}" for step in steps)
    start = time.perf_counter()
    subprocess.run(["sh", "-c", f"{line} > values.json"], check=True, cwd=folder)
    return time.perf_counter() - start


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description="Measure what files cost a pipeline.")
    parser.add_argument("--nodes", type=int, default=1_000_000, help="of the graph that is differentiated")
    parser.add_argument("--shapes", default="dag,chain", help="dag, chain, or both")
    parser.add_argument("--repeat", type=int, default=3, help="processes to take the median of")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        print(json.dumps([vars(stage) for stage in measure(chosen.child)]))
        return
    for shape in chosen.shapes.split(","):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            names = prepare(shape, chosen.nodes, folder)
            costs, peaks = cost_table(names, folder, chosen.repeat), peak_table(shape, folder)
            print(f"{shape}, {chosen.nodes:,} nodes:\n")
            for table in (costs, peaks):
                print("\n".join(rendered(table, markdown=chosen.markdown)), end="\n\n")
            print(f"a pipe of six stages: {pipe_seconds(shape, folder):.1f} s\n", flush=True)


if __name__ == "__main__":
    main()
