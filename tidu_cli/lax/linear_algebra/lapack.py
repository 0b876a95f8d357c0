"""Calling LAPACK: of matrices for which it fails the results are NaN, and no other matrix of a batch suffers for it.

It is not called for matrices with infinities or NaN: it may iterate for ever on them, or complain on standard output.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.rules.contract import Kernel, Types


def of_batches(np: Any, function: Callable[..., Any], operands: Types, results: Types) -> Kernel:
    """A kernel of a function of batches of matrices, which gives a tuple of results, and raises where LAPACK fails."""
    by_one = of_each(np, function, operands, results)

    def run(*arrays: Any) -> Any:
        if not all(np.isfinite(x).all() for x in arrays):
            return by_one(*arrays)
        try:
            return _typed(np, function(*arrays), results)
        except (np.linalg.LinAlgError, ValueError):
            return by_one(*arrays)  # some have failed; NumPy does not say which

    return run


def of_each(np: Any, function: Callable[..., Any], operands: Types, results: Types) -> Kernel:
    """A kernel of a function of single matrices, which gives a tuple of results, and raises where LAPACK fails.

    Iterations that do not converge are such failures.
    """
    batch = operands[0].shape[:-2]
    nothing = [np.nan if t.inexact else 0 for t in results]

    def run(*arrays: Any) -> Any:
        found = [np.empty(t.shape, numpy_dtype(np, t.dtype)) for t in results]
        for k in np.ndindex(*batch):
            matrices = [x[k] for x in arrays]
            try:
                parts = function(*matrices) if all(np.isfinite(x).all() for x in matrices) else nothing
            except (np.linalg.LinAlgError, ValueError):
                parts = nothing
            for whole, one in zip(found, parts, strict=True):
                whole[k] = one
        return _typed(np, found, results)

    return run


def _typed(np: Any, found: Any, results: Types) -> Any:
    arrays = [np.asarray(x, numpy_dtype(np, t.dtype)) for x, t in zip(found, results, strict=True)]
    return arrays if len(results) > 1 else arrays[0]
