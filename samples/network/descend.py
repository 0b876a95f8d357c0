"""Gradient descent on a loss of which nothing is known but a graph file: `python descend.py GRADIENT.json -o TRAINED.npz`.

Every number about the model comes from `tidu eval`: the graph gives the loss as y, and the cotangent key@-1 of each parameter.
Prints the loss before each step on stderr.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).parent
Params = Mapping[str, NDArray[np.float64]]


def loss_and_gradient(graph: Path, data: Path, params: Params) -> tuple[float, Params]:
    """The loss, and its gradient by each parameter. Raises CalledProcessError if tidu fails; its message is on stderr."""
    with tempfile.TemporaryDirectory() as scratch:
        point, found = Path(scratch, "point.npz"), Path(scratch, "found.npz")
        np.savez(point, **params)  # type: ignore[arg-type]
        command = [os.environ.get("TIDU", "tidu"), "eval", str(graph), "--inputs", str(data), "--inputs", str(point)]
        subprocess.run([*command, "-o", str(found)], check=True)
        with np.load(found) as values:
            return float(values["y"]), {key: values[f"{key}@-1"] for key in params}


def main() -> None:
    """Read the command line, descend, and write the parameters."""
    parser = argparse.ArgumentParser(description="Gradient descent by a graph that gives y and its gradient.")
    parser.add_argument("graph", type=Path)
    parser.add_argument("-o", dest="out", type=Path, required=True, help="where to write the parameters")
    parser.add_argument("--data", type=Path, default=FOLDER / "data.npz")
    parser.add_argument("--start", type=Path, default=FOLDER / "params.npz")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rate", type=float, default=0.5, help="how far a step goes, in gradients")
    chosen = parser.parse_args()

    with np.load(chosen.start) as start:
        params: Params = dict(start)
    for step in range(chosen.steps):
        loss, gradient = loss_and_gradient(chosen.graph, chosen.data, params)
        print(f"step {step}: loss {loss:.6f}", file=sys.stderr)
        params = {key: value - chosen.rate * gradient[key] for key, value in params.items()}
    np.savez(chosen.out, **params)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
