"""Makes `data.npz` from scikit-learn's copy of the Wisconsin breast cancer data: `python make_data.py`.

Needs scikit-learn; the graphs and `newton_cg.py` do not.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer

STRENGTH = 1.0
"""How strongly weights are drawn to zero: what scikit-learn calls 1/C."""


def make() -> dict[str, NDArray[np.float64]]:
    """The arrays that `loss.json` reads: X (569 × 31, intercept first), t (-1 or +1) and penalty (0 for the intercept)."""
    features, benign = load_breast_cancer(return_X_y=True)
    standardised = (features - features.mean(axis=0)) / features.std(axis=0)
    intercept = np.ones((len(features), 1))
    penalty = np.full(1 + features.shape[1], STRENGTH)
    penalty[0] = 0.0
    return {"X": np.hstack([intercept, standardised]), "t": np.where(benign == 1, 1.0, -1.0), "penalty": penalty}


if __name__ == "__main__":
    np.savez_compressed(Path(__file__).with_name("data.npz"), **make())  # type: ignore[arg-type]
