"""Linear primitives, exactly: on small whole numbers arithmetic does not round, so that laws hold with equality."""

from __future__ import annotations

import itertools

import numpy as np

from tests.graphs.templates import apply, inner, jvp, make_case, transpose, type_of


def whole_numbers(shape, seed=0):
    """Small whole numbers, on which all arithmetic is exact."""
    return np.random.default_rng([seed, *shape]).integers(-9, 10, shape).astype(float)


def value(op, *operands, **attrs):
    return apply(make_case(op, attrs, map(type_of, operands)), operands)


def check_linear(op, operands, attrs, mask):
    """Tangents are the node's own image of the active operands, zeros elsewhere; the transpose is the exact adjoint."""
    primal = make_case(op, attrs, map(type_of, operands))
    given = [whole_numbers(x.shape, 7 + k) if a else None for k, (x, a) in enumerate(zip(operands, mask, strict=True))]
    zeros = [x if x.dtype.kind in "iu" else np.zeros_like(x) for x in operands]
    expected = apply(primal, [z if t is None else t for t, z in zip(given, zeros, strict=True)])
    for tangent, image in zip(jvp(primal, operands, given), expected, strict=True):
        assert (tangent is None and not np.any(image)) or np.array_equal(tangent, image)
    linear = make_case(op, attrs, map(type_of, operands), mask)
    at = [t if a else z for t, z, a in zip(given, zeros, mask, strict=True)]
    for live in itertools.product([True, False], repeat=len(expected)):
        if any(live):
            cotangents = [
                whole_numbers(y.shape, 90 + k) if on else None for k, (y, on) in enumerate(zip(expected, live, strict=True))
            ]
            pulled = transpose(linear, at, cotangents)
            assert all(a or p is None for p, a in zip(pulled, mask, strict=True))
            assert sum(inner(t, p) for t, p in zip(given, pulled, strict=True) if p is not None) == sum(
                inner(y, c) for y, c in zip(expected, cotangents, strict=True) if c is not None
            )


def masks(n_active, n_others=0):
    for mask in itertools.product([True, False], repeat=n_active):
        if any(mask):
            yield (*mask, *([False] * n_others))
