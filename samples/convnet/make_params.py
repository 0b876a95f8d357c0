"""Makes `params.npz`, random weights: `python make_params.py`. The digits are those of `../network`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FEATURES = (8, 16)
"""Of the two layers."""


def make_params() -> dict[str, NDArray[np.float64]]:
    """Weights of mean 0 and variance 2 over the number of inputs of a feature, rounded to four digits, and biases of 0."""
    random = np.random.default_rng(0)
    first, second = FEATURES
    shapes = {"1": (first, 1, 3, 3), "2": (second, first, 3, 3)}
    found = {}
    for k, shape in shapes.items():
        found[f"params.w{k}"] = (random.normal(size=shape) * (2 / np.prod(shape[1:])) ** 0.5).round(4)
        found[f"params.b{k}"] = np.zeros(shape[0])
    found["params.w3"] = (random.normal(size=(4 * second, 10)) / (4 * second) ** 0.5).round(4)
    found["params.b3"] = np.zeros(10)
    return found


if __name__ == "__main__":
    np.savez_compressed(Path(__file__).parent / "params.npz", **make_params())  # type: ignore[arg-type]
