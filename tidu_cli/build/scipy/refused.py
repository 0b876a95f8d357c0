"""What SciPy has and graphs have not, and what to write instead: error messages and the documentation read it here."""

from __future__ import annotations

from collections.abc import Mapping

MODULES: Mapping[str, str] = {
    "scipy.cluster": "it chooses by values; make its result an input",
    "scipy.constants": "it takes numbers; call it with constants",
    "scipy.differentiate": "leave it out: linearize and grad give derivatives of what is built",
    "scipy.fft": "write np.fft; for cosines and sines multiply by the constant matrix that it makes of np.eye(n)",
    "scipy.integrate": "the steps depend on values; write a loop of a fixed number of steps, such as Runge-Kutta's, or a sum over "
    "fixed nodes: np.sum(w * f(t)) with constant t and w, such as those of np.polynomial.legendre.leggauss",
    "scipy.interpolate": "write np.interp, or the sum of constant basis functions",
    "scipy.linalg": "write what np.linalg has of it, or make its result an input",
    "scipy.ndimage": "write np.convolve, or sums of shifted slices",
    "scipy.optimize": "the steps depend on values; write a fixed number of steps, such as Newton's, or make the solution an input",
    "scipy.signal": "write scipy.signal.convolve, correlate or lfilter",
    "scipy.sparse": "graphs have dense arrays only; write np.matmul",
    "scipy.spatial": "write the distances: np.sum((x[:, None] - y[None]) ** 2, -1)",
    "scipy.special": "write the formula, of functions that can",
    "scipy.stats": "write the formula, with np.mean, np.var, and functions of scipy.special",
}
"""What to write instead of a function, by its module."""


def refusal(name: str) -> str:
    """Why a function of that name cannot be traced, and what to write instead."""
    instead = MODULES.get(".".join(name.split(".")[:2]), "write it with functions of NumPy")
    return f"{name} cannot be traced; {instead} (docs/build.md lists what can)"
