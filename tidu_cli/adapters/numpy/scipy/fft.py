"""What `scipy.fft` has: NumPy's transforms, with options about memory and threads that graphs have no use for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import Operand
from tidu_cli.adapters.numpy.numpy import signal


def _of(name: str, transform: Callable[..., Array]) -> Callable[..., Array]:
    several = name[-1] in "2n"
    every = (-2, -1) if name[-1] == "2" else None if several else -1

    def applied(
        x: Operand, lengths: Any = None, axes: Any = every, norm: Any = None, overwrite_x: bool = False, workers: Any = None,
        **options: Any,
    ) -> Array:  # fmt: skip
        names = ("s", "axes") if several else ("n", "axis")
        options.pop("plan", None)
        given = {names[0]: lengths, names[1]: axes} | options
        if several:  # SciPy takes an integer for one of them
            given = {k: (v,) if isinstance(v, int | np.integer) else v for k, v in given.items()}
        return transform(x, **given, norm=norm)

    return applied


COMPOSED: Mapping[str, Callable[..., Array]] = {k.removeprefix("fft."): _of(k, f) for k, f in signal.FUNCTIONS.items()}
"""By SciPy's names, which are NumPy's."""
