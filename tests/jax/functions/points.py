"""The arrays at which the functions are compared, away from kinks and poles."""

from __future__ import annotations

import numpy as np

_rng = np.random.default_rng(20)

X = _rng.uniform(0.2, 0.9, 5)
"""Between 0 and 1."""
Y = _rng.uniform(1.2, 2.9, 5)
"""Above 1."""
S = X * np.array([1, -1, 1, -1, 1])
"""Of both signs, less than 1 in magnitude."""
Z = _rng.normal(size=5) + 1j * _rng.normal(size=5)
"""Complex."""
A = _rng.normal(size=(3, 4))
B = _rng.normal(size=(4, 2))
C = _rng.normal(size=(2, 3, 4))
M = _rng.normal(size=(4, 4)) + 4 * np.eye(4)
"""A matrix that is not near singular."""
P = M @ M.T
"""A positive definite matrix."""
MZ = M + 1j * _rng.normal(size=(4, 4))
PZ = MZ @ MZ.conj().T
V = _rng.normal(size=4)
W = _rng.normal(size=4)
L = _rng.normal(size=12)
"""A longer line."""
I = np.array([2, 0, 3, 1, 2])  # noqa: E741
"""Indices."""
J = np.array([5, 3, 12, 7, 9])
T = np.array([True, False, True, True, False])
IMAGE = _rng.normal(size=(2, 3, 8, 8))
KERNEL = _rng.normal(size=(4, 3, 3, 3))
N = np.array([1.0, np.nan, np.inf, -np.inf, 0.0])
