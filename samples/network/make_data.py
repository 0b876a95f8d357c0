"""Makes `data.npz` from scikit-learn's copy of the digits, and `params.npz`, random weights: `python make_data.py`.

Needs scikit-learn; the network and `descend.py` do not.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

HIDDEN = 32
"""Units of the hidden layer."""


def make_data() -> dict[str, NDArray[np.generic]]:
    """images (u8, 1797 × 64, grey levels 0 to 16) and labels (i64, 1797)."""
    images, labels = load_digits(return_X_y=True)
    return {"images": images.astype(np.uint8), "labels": labels.astype(np.int64)}


def make_params() -> dict[str, NDArray[np.float64]]:
    """Weights of mean 0 and variance 1 over the number of inputs of a layer, rounded to four digits, and biases of 0."""
    random = np.random.default_rng(0)
    return {
        "params.w1": (random.normal(size=(64, HIDDEN)) / 8).round(4),
        "params.b1": np.zeros(HIDDEN),
        "params.w2": (random.normal(size=(HIDDEN, 10)) / HIDDEN**0.5).round(4),
        "params.b2": np.zeros(10),
    }


if __name__ == "__main__":
    folder = Path(__file__).parent
    np.savez_compressed(folder / "data.npz", **make_data())  # type: ignore[arg-type]
    np.savez_compressed(folder / "params.npz", **make_params())  # type: ignore[arg-type]
