"""Weak scaling: the gradient of a Gaussian mixture summed over 10^6 points, by a cluster of two processes and without one.

    python benchmarks/cluster.py [--dimensions 10] [--components 5] [--points 1000000] [--chunk 100]

Beside the cluster two processes do half of the points each, on their own; efficiency is their time over the cluster's. Both read
the points from files, and were warmed up before. They run by turns, and each time is the least of several; on a busy machine the
median of the ratios turn by turn says more. The points come in
blocks of 1,000, which are the items, and the likelihood is that of samples/adbench/gmm.py. Then the tasks a second that the
scheduler takes, with chunks of one small item.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

import tidu_cli as tidu
from benchmarks.adbench import sample
from tidu_cli.adapters.dask.scheduler import connected

BLOCK = 1000
PROCESSES = 2
WRT = ("alphas", "means", "icf")


def gradient(d: int, k: int) -> Any:
    """The gradient of the log-likelihood of a block of points, without the prior, which is that of no points."""
    objective = sample("gmm").objective

    def likelihood(alphas: Any, means: Any, icf: Any, x: Any) -> Any:
        return objective(alphas, means, icf, x) - objective(alphas, means, icf, x[:0])

    shapes = {"alphas": f"f64[{k}]", "means": f"f64[{k},{d}]", "icf": f"f64[{k},{d * (d + 1) // 2}]", "x": f"f64[{BLOCK},{d}]"}
    return tidu.grad(tidu.trace(likelihood, **shapes), WRT)


def at(d: int, k: int) -> dict[str, Any]:
    """Where it is taken."""
    rng = np.random.default_rng(0)
    return {"alphas": rng.normal(size=k), "means": rng.normal(size=(k, d)), "icf": rng.normal(size=(k, d * (d + 1) // 2)) * 0.1}


def alone(pipe: Connection, d: int, k: int, chunk: int) -> None:
    """A process without a cluster: for each file that comes it sends the sum over its points."""
    program = tidu.compile(gradient(d, k), engine="numpy")
    while path := pipe.recv():
        pipe.send(program.map({**at(d, k), "x": path}, {"x": 0}, reduce="sum", chunk=chunk))


def seconds(function: Callable[[], Any]) -> tuple[float, Any]:
    """How long a call takes, and what it gives."""
    begin = time.perf_counter()
    result = function()
    return time.perf_counter() - begin, result


def scaling(client: Any, folder: Path, d: int, k: int, n: int, chunk: int, turns: int) -> None:
    """Print the times and the efficiency."""
    x = np.random.default_rng(1).normal(size=(n // BLOCK, BLOCK, d))
    np.save(folder / "x.npy", x)
    halves = [folder / f"half{h}.npy" for h in range(PROCESSES)]
    for h, half in enumerate(halves):
        np.save(half, x[h * len(x) // PROCESSES : (h + 1) * len(x) // PROCESSES])
    program = tidu.compile(gradient(d, k), engine="numpy")
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for _ in halves:
        ours, theirs = context.Pipe()
        processes.append(context.Process(target=alone, args=(theirs, d, k, chunk), daemon=True))
        processes[-1].start()
        pipes.append(ours)

    def without() -> list[Any]:
        for pipe, half in zip(pipes, halves, strict=True):
            pipe.send(half)
        return [pipe.recv() for pipe in pipes]

    def with_cluster() -> Any:
        return program.map({**at(d, k), "x": folder / "x.npy"}, {"x": 0}, client, reduce="sum", chunk=chunk)

    parts, sums = without(), with_cluster()
    for key, value in sums.items():
        np.testing.assert_allclose(value, sum(part[key] for part in parts), rtol=1e-9)
    times: list[list[float]] = [[], []]
    for _ in range(turns):
        for taken, run in zip(times, (without, with_cluster), strict=True):
            taken.append(seconds(run)[0])
    for pipe, process in zip(pipes, processes, strict=True):
        pipe.send(None)
        process.join()
    apart, together = map(min, times)
    each = sorted(a / b for a, b in zip(*times, strict=True))
    print(
        f"GMM d={d} K={k}, {n:,} points in {-(-n // BLOCK // chunk)} chunks of {chunk * BLOCK:,}: {PROCESSES} processes "
        f"{apart:.3f} s, cluster {together:.3f} s, efficiency {apart / together:.2f}, by turns {each[len(each) // 2]:.2f}"
    )


def tasks(client: Any, n: int) -> None:
    """Print how many small tasks a second go through."""
    program = tidu.compile(tidu.trace(lambda x: {"y": x + 1}, x="f64[]"), engine="numpy")
    x = np.arange(float(n))
    for reduction in (None, "sum"):
        taken = min(seconds(lambda r=reduction: program.map({"x": x}, {"x": 0}, client, chunk=1, reduce=r))[0] for _ in range(3))
        print(f"{n:,} chunks of one number, {'summed' if reduction else 'all brought home'}: {n / taken:,.0f} a second")


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dimensions", type=int, default=10, metavar="D")
    parser.add_argument("--components", type=int, default=5, metavar="K")
    parser.add_argument("--points", type=int, default=10**6, metavar="N")
    parser.add_argument("--chunk", type=int, default=100, metavar="N", help="blocks of 1,000 points to a chunk [default: 100]")
    parser.add_argument("--turns", type=int, default=15, metavar="N")
    o = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # of the processes that are started
    with tempfile.TemporaryDirectory() as folder, connected(f"local:{PROCESSES}") as client:
        scaling(client, Path(folder), o.dimensions, o.components, o.points, o.chunk, o.turns)
        tasks(client, 2000)


if __name__ == "__main__":
    main()
