"""Makes `data.json`: 32 noisy observations of a smooth curve, and hyperparameters to start from. `python make_data.py`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

N = 32


def make_data() -> dict[str, list[float]]:
    """Places x in [0, 6], values y = sin 2x + x/3 - 1 with noise of standard deviation 0.2, and theta = (0, 0, -1)."""
    random = np.random.default_rng(0)
    x = np.sort(random.uniform(0, 6, N)).round(3)
    y = (np.sin(2 * x) + x / 3 - 1 + 0.2 * random.normal(size=N)).round(4)
    return {"theta": [0.0, 0.0, -1.0], "x": x.tolist(), "y": y.tolist()}


if __name__ == "__main__":
    (Path(__file__).parent / "data.json").write_text(json.dumps(make_data()) + "\n")
