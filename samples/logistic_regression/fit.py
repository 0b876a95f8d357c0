"""Fits the logistic regression with SciPy's BFGS, from nothing but the graph file of its loss's gradient.

    tidu grad loss.json --wrt w -o gradient.json
    python fit.py gradient.json

Prints how well the model separates the two kinds of tumours, and stops with an error if the gradient at the fit is not 0.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import tidu

GRADIENT_NORM = 1e-3
"""At the fit, of a loss of some 40."""


def main(gradient_file: str) -> None:
    """Fit, print, and check."""
    with np.load(Path(__file__).with_name("data.npz")) as arrays:
        data = dict(arrays)
    loss = tidu.compile(tidu.load(Path(__file__).with_name("loss.json")))
    gradient = tidu.compile(tidu.load(gradient_file))
    fit = minimize(
        lambda w: float(loss(w=w, **data)["loss"]),
        np.zeros(data["X"].shape[1]),
        jac=lambda w: gradient(w=w, **data)["w@-1"],
        method="BFGS",
        options={"gtol": GRADIENT_NORM / 10},
    )
    right = np.count_nonzero((data["X"] @ fit.x > 0) == (data["t"] > 0))
    norm = float(np.linalg.norm(gradient(w=fit.x, **data)["w@-1"]))
    print(f"{fit.nit} steps, loss {fit.fun:.4f}, gradient norm {norm:.0e}: {right} of {len(data['t'])} classified correctly")
    if norm > GRADIENT_NORM:
        sys.exit("fit: error: the gradient at the fit is not 0")


if __name__ == "__main__":
    main(sys.argv[1])
