"""Weights that an exporter made of parameters by folding constants: patterns of the parameters' names miss them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np

from tidu_cli.errors import Remedy, counted
from tidu_cli.graph.select import listed

_GENERATED = re.compile(r"val_\d+|onnx::\w+_\d+")
"""The names that torch's exporters make up."""

_COMPARED = 16
"""With as many a weight is compared, of those that may have the same numbers."""

_RANK = 4
"""Up to this many axes transposes are recognised."""


def folded(weights: Mapping[str, Any]) -> list[str]:
    """A note that names the weights that folding made, as far as names and values show it; none if none is seen."""
    made = dict.fromkeys((name for name in weights if _GENERATED.fullmatch(name)), "")
    for name, origin, how in _made_of(weights):
        made.setdefault(name, "")
        made[name] = made[name] or f" ({how} of {origin})"
    if not made:
        return []
    names = listed([f"{name}{how}" for name, how in made.items()])
    return [
        f"the exporter made {counted(len(made), 'weight')} of parameters: {names}; to differentiate by these, name them with "
        f"{Remedy('wrt', python='wrt')}, or export the model without folding constants"
    ]


def _made_of(weights: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The names of a weight and of another one of which it is a transpose, and what else it may be; each pair once."""
    for group in _alike(weights):
        # Of two, the one whose name was made up was made of the other, or else the later one.
        for k, name in enumerate(group := sorted(group, key=lambda name: _GENERATED.fullmatch(name) is not None)):
            for origin in group[: min(k, _COMPARED)]:
                if how := _relation(weights[name], weights[origin]):
                    yield name, origin, how
                    break


def _alike(weights: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    """Names of weights that may have the same numbers: the sums of their bits are equal, in whatever order these are."""
    by_size = defaultdict[int, list[str]](list)
    for name, x in weights.items():
        by_size[x.size].append(name)
    for size, names in by_size.items():
        if size < 2 or len(names) == 1:
            continue
        narrowest = min((weights[name].dtype for name in names), key=lambda dtype: dtype.itemsize)
        by_sum = defaultdict[int, list[str]](list)
        for name in names:
            x = _narrowed(weights[name], narrowest)
            if not np.all(x == x.flat[0]):  # as biases are before training
                by_sum[int(np.sum(x.view(f"u{x.itemsize}"), dtype=np.uint64))].append(name)
        yield from (names for names in by_sum.values() if len(names) > 1)


def _narrowed(x: Any, dtype: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(x, dtype=dtype)


def _relation(x: Any, origin: Any) -> str:
    """What x is of the other array: a copy, cast, transpose or reshape; empty if it is none of these."""
    narrower = min(x.dtype, origin.dtype, key=lambda dtype: dtype.itemsize)
    y, z = _narrowed(x, narrower), _narrowed(origin, narrower)
    if x.shape == origin.shape and np.array_equal(y, z):
        return "a copy" if x.dtype == origin.dtype else "a cast"
    for axes in permutations(range(z.ndim)) if 2 <= z.ndim <= _RANK else ():
        if y.shape == tuple(z.shape[a] for a in axes) and np.array_equal(y, z.transpose(axes)):
            return "a transpose"
    return "a reshape" if np.array_equal(y.ravel(), z.ravel()) else ""


def left_in_nodes(sizes: Mapping[str, int], has_weights: bool) -> str:
    """What is said of constants of nodes, which are no weights: how many floats each has."""
    cut = Remedy("cut", "NAME", python="cut=NAME")
    none = "" if has_weights else "it has no initializers of floats, and so no weights; "
    if not sizes:
        return f"{none}{cut} makes an input of a constant, say"
    are = "is a constant" if len(sizes) == 1 else "are constants"
    told = f"{counted(len(sizes), 'tensor')} of floats, {counted(sum(sizes.values()), 'number')} in all, {are} of nodes"
    return f"{none}{told}: {listed([*sizes])}; {cut} makes an input of one"
