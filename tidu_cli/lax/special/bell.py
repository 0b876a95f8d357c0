"""Derivatives of exponentials, by Bell polynomials: of arrays in kernels, and of terms in rules."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any


def bell(m: int, n: int, exponent: Callable[[int, int], Any]) -> Any:
    """The derivative of exp h(x, y), m times by x and n times by y, divided by exp h; `exponent` gives that of h itself.

    Complete Bell polynomials, by Leibniz' rule for the derivative of (∂h) exp h. Of no derivative it is 1.0.
    """
    known: dict[tuple[int, int], Any] = {(0, 0): 1.0}
    for i in range(m + 1):
        for j in range(n + 1):
            if (i, j) == (0, 0):
                continue
            by_x = i > 0
            terms = []
            for k in range(i if by_x else 1):
                for l in range(j + 1 if by_x else j):  # noqa: E741
                    times = math.comb(i - 1, k) * math.comb(j, l) if by_x else math.comb(j - 1, l)
                    step = (k + 1, l) if by_x else (k, l + 1)
                    factor, rest = exponent(*step), known[i - step[0], j - step[1]]
                    term = factor if rest is known[0, 0] else factor * rest
                    terms.append(term if times == 1 else term * float(times))
            total = terms[0]
            for term in terms[1:]:
                total = total + term
            known[i, j] = total
    return known[m, n]
