"""Makes data.json: a path of the model in kalman.py, observed with noise, and a theta to start from."""

import json
import sys
from pathlib import Path

import numpy as np
from kalman import model


def make_data(n=50, strength=0.8, noise=0.3, seed=4):
    """`y` [n,2], and `theta` [2]."""
    random = np.random.default_rng(seed)
    motion, push, seen = model()
    state, places = random.normal(size=4), []
    for _ in range(n):
        places.append(seen @ state + noise * random.normal(size=2))
        state = motion @ state + strength * np.linalg.cholesky(push) @ random.normal(size=4)
    return {"y": np.round(places, 3).tolist(), "theta": [0.0, -1.0]}


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("data.json")
    target.write_text(json.dumps(make_data()) + "\n")
