"""Fits the logistic regression by Newton-CG, knowing of the model nothing but two graph files.

    ./gradient.sh gradient.json
    ./hessian_vector.sh hessian_vector.json
    python newton_cg.py gradient.json hessian_vector.json > optimum.json

Every number about the model comes from `tidu eval`. Here is only the method: an inexact Newton iteration whose linear systems are
solved by conjugate gradients, globalised by backtracking on the gradient's norm (Eisenstat and Walker, "Globally convergent inexact
Newton methods", 1994), which needs no values of the loss. Prints one line an iteration on stderr, and the optimum as a file of
values on stdout.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

SUFFICIENT = 1e-4
"""The share of the decrease that the model promises which a step must reach."""


@dataclass
class GraphFile:
    """A graph file as a function of some of its inputs; the others come from `data`."""

    graph: Path
    data: Path
    output: str
    calls: int = 0

    def __call__(self, inputs: Mapping[str, Vector | float]) -> Vector:
        """The output for these inputs. Raises CalledProcessError if tidu fails; its message is on stderr."""
        self.calls += 1
        with tempfile.TemporaryDirectory() as scratch:
            point = Path(scratch, "point.npz")
            np.savez(point, **inputs)  # type: ignore[arg-type]
            command = [os.environ.get("TIDU", "tidu"), "eval", str(self.graph), "--output", self.output]
            found = subprocess.run([*command, "--inputs", self.data, "--inputs", point], check=True, stdout=subprocess.PIPE)
        return np.array(json.loads(found.stdout)[self.output])


def newton_cg(
    gradient: Callable[[Vector], Vector], hessian_vector: Callable[[Vector, Vector], Vector], w: Vector, tolerance: float
) -> Vector:
    """The point where the gradient's norm is at most `tolerance`, from `w` on. Raises ArithmeticError if it stops falling."""
    g = gradient(w)
    for iteration in range(100):
        norm = float(np.linalg.norm(g))
        print(f"iteration {iteration}: gradient norm {norm:.3e}", file=sys.stderr)
        if norm <= tolerance:
            return w
        forcing = min(0.1, norm)  # quadratic convergence once the norm is small
        step = conjugate_gradients(lambda v, w=w: hessian_vector(w, v), -g, forcing * norm)  # type: ignore[misc]
        w, g = _backtracked(gradient, w, norm, step, forcing)
    raise ArithmeticError("no convergence in 100 iterations")


def conjugate_gradients(product: Callable[[Vector], Vector], b: Vector, tolerance: float) -> Vector:
    """An x with |b - A x| at most `tolerance`, for a positive definite A given by its products with vectors."""
    x, residual = np.zeros_like(b), b
    direction, squared = residual, residual @ residual
    for _ in range(4 * len(b)):
        if np.sqrt(squared) <= tolerance:
            break
        image = product(direction)
        length = squared / (direction @ image)
        x, residual = x + length * direction, residual - length * image
        squared, before = residual @ residual, squared
        direction = residual + squared / before * direction
    return x


def _backtracked(
    gradient: Callable[[Vector], Vector], w: Vector, norm: float, step: Vector, forcing: float
) -> tuple[Vector, Vector]:
    length = 1.0
    while length > 1e-10:
        g = gradient(w + length * step)
        if np.linalg.norm(g) <= (1 - SUFFICIENT * length * (1 - forcing)) * norm:
            return w + length * step, g
        length /= 2
    raise ArithmeticError("the gradient does not get smaller along the Newton step")


def main() -> None:
    """Read the command line, fit, and print."""
    parser = argparse.ArgumentParser(description="Newton-CG on the graphs that gradient.sh and hessian_vector.sh write.")
    parser.add_argument("gradient", type=Path)
    parser.add_argument("hessian_vector", type=Path)
    parser.add_argument("--data", type=Path, default=Path(__file__).with_name("data.npz"))
    parser.add_argument("--tolerance", type=float, default=1e-9, help="of the gradient's norm")
    chosen = parser.parse_args()

    gradient = GraphFile(chosen.gradient, chosen.data, "w@-1")
    product = GraphFile(chosen.hessian_vector, chosen.data, "w@-1@2")
    with np.load(chosen.data) as data:
        start = np.zeros(len(data["penalty"]))
    w = newton_cg(
        lambda w: gradient({"w": w, "loss@-1": 1.0}),
        lambda w, v: product({"w": w, "w@2": v, "loss@-1": 1.0}),
        start,
        chosen.tolerance,
    )
    print(f"{gradient.calls} gradients, {product.calls} Hessian-vector products", file=sys.stderr)
    print(json.dumps({"w": w.tolist()}))


if __name__ == "__main__":
    main()
