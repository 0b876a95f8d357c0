"""einsum: subscripts are read, and operands multiplied pair by pair."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

from tidu_cli.build.arrays.array import Array
from tidu_cli.build.arrays.operands import Operand, lifted_as_arrays
from tidu_cli.build.errors import UntraceableError
from tidu_cli.build.numpy.linear_algebra.products import diagonal
from tidu_cli.build.numpy.primitives import product


def einsum(subscripts: str, *operands: Operand, optimize: Any = False, out: object = None, **options: Any) -> Array:
    """With subscripts as text: pair by pair, from the left."""
    if not isinstance(subscripts, str):
        raise UntraceableError("np.einsum is traced with subscripts as text, such as np.einsum('ij,j->i', a, x)")
    if not operands:
        raise ValueError("einsum takes at least one operand")
    arrays = lifted_as_arrays(*operands)
    terms, result = _subscripts(subscripts, arrays)
    sizes: dict[str, int] = {}
    for term, x in zip(terms, arrays, strict=True):
        for label, n in zip(term, x.shape, strict=True):
            if sizes.get(label, 1) != 1 and n not in (1, sizes[label]):
                raise ValueError(f"einsum: {label!r} has {sizes[label]} and {n} elements")
            sizes[label] = max(n, sizes.get(label, 1)) if n else 0
    current, labels = _single(arrays[0], terms[0], _needed(terms[1:], result), sizes)
    for k in range(1, len(arrays)):
        later = _needed(terms[k + 1 :], result)
        other, others = _single(arrays[k], terms[k], later | set(labels), sizes)
        current, labels = _pair(current, labels, other, others, later)
        current, labels = _single(current, labels, later, sizes)
    return current.permuted([labels.index(c) for c in result])


def _needed(terms: Sequence[str], result: str) -> set[str]:
    return set(result).union(*terms)


def _subscripts(text: str, arrays: Sequence[Array]) -> tuple[list[str], str]:
    """The labels of each operand and of the result; an ellipsis becomes labels of its own."""
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(arrays):
        raise ValueError(f"einsum '{text}' has {len(terms)} operands, got {len(arrays)}")
    spare = [c for c in string.ascii_uppercase + string.ascii_lowercase if c not in text]
    widths = [x.ndim - len(t.replace("...", "")) for t, x in zip(terms, arrays, strict=True)]
    if any(w < 0 or (w and "..." not in t) for w, t in zip(widths, terms, strict=True)):
        raise ValueError(f"einsum '{text}' does not fit {', '.join(str(x.type) for x in arrays)}")
    width = max([w for w, t in zip(widths, terms, strict=True) if "..." in t], default=0)
    if width > len(spare):
        raise ValueError("einsum: too many axes")
    dots = "".join(spare[:width])
    terms = [t.replace("...", dots[width - w :], 1) for t, w in zip(terms, widths, strict=True)]
    if not arrow:
        once = [c for c in sorted(set("".join(terms)) - set(dots)) if "".join(terms).count(c) == 1]
        right = "..." * bool(dots) + "".join(once)
    result = right.replace("...", dots, 1)
    every = set("".join(terms))
    letters = all(c.isascii() and c.isalpha() for c in every)
    if not letters or not set(result) <= every or len(set(result)) < len(result):
        raise ValueError(f"einsum: malformed subscripts '{text}'")
    return terms, result


def _single(x: Array, labels: str, needed: set[str], sizes: dict[str, int]) -> tuple[Array, str]:
    """Diagonals of labels that repeat; sums over labels that nobody else needs; axes of size 1 that stand for more go."""
    while len(set(labels)) < len(labels):
        label = next(c for c in labels if labels.count(c) > 1)
        first, second = [k for k, c in enumerate(labels) if c == label][:2]
        x = diagonal(x, 0, first, second)
        labels = "".join(c for k, c in enumerate(labels) if k not in (first, second)) + label
    gone = tuple(k for k, c in enumerate(labels) if c not in needed or (x.shape[k] == 1 and sizes[c] != 1))
    if gone:
        x = x.any(axis=gone) if x.type.dtype == "bool" else x.emit("reduce_sum", axes=gone)
        labels = "".join(c for k, c in enumerate(labels) if k not in gone)
    return x, labels


def _pair(x: Array, left: str, y: Array, right: str, later: set[str]) -> tuple[Array, str]:
    shared = [c for c in left if c in right]
    contract, batch = [c for c in shared if c not in later], [c for c in shared if c in later]
    axes = (([left.index(c) for c in labels], [right.index(c) for c in labels]) for labels in (contract, batch))
    found = product(x, y, *axes)
    labels = "".join(batch) + "".join(c for c in left if c not in shared) + "".join(c for c in right if c not in shared)
    return found, labels
