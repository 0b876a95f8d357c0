"""Where points come from: random inputs at which outputs are finite, and random tangents."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidu_cli.checking.numeric.arrays import Arrays, Leaf, apart, leaf_types
from tidu_cli.checking.numeric.examples import with_diagonal
from tidu_cli.errors import StepsError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Input
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import DATETIMES, INTEGERS, TensorType, unit_of
from tidu_cli.lax.arrays.structural import numpy_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

Intervals = Mapping[Key, tuple[float, float]]

_INTERVALS = ((-2.0, 2.0), (0.5, 2.0), (0.1, 0.9))
"""Where inputs are drawn from by default: the first interval in which all outputs are finite."""


class Drawing(Frozen, slots=False):
    """Where points come from: the inputs given, and intervals for the others."""

    inputs: Sequence[Input]
    given: Mapping[Key, Any]
    intervals: Intervals
    diagonals: Mapping[Key, float]
    seed: int

    def finite_point(self, f: Callable[[Arrays], Arrays], rng: Any) -> Arrays | None:
        """A point at which the outputs of f are finite; None where none has been found.

        Raises StepsError if the last one tried has loops that run on.
        """
        import numpy as np

        ran_on: StepsError | None = None
        for interval in _INTERVALS:
            x: Arrays = {}
            for i in self.inputs:
                if i.key in self.given:
                    x |= apart([i], [self.given[i.key]])
                    continue
                within, added = self.intervals.get(i.key, interval), self.diagonals.get(i.key, 0.0)
                x |= {p: with_diagonal(draw(rng, t, within), added) for p, t in leaf_types(i.key, i.type).items()}
            drawn = [i for i in self.inputs if i.key not in self.given]
            _tell_apart([x[p] for i in drawn for p, t in leaf_types(i.key, i.type).items() if t.dtype in DATETIMES])
            try:
                if all(np.isfinite(y).all() for y in f(x).values()):
                    return x
                ran_on = None
            except StepsError as error:
                ran_on = error
        if ran_on is not None:
            raise ran_on
        return None


def _tell_apart(datetimes: Sequence[NDArray[Any]]) -> None:
    """Make all of these different, in their order: where two are equal, a comparison has a kink."""
    import numpy as np

    n, start = sum(a.size for a in datetimes), 0
    for array in datetimes:
        array *= n
        array += np.arange(start, start + array.size).reshape(array.shape)
        start += array.size


def shown(x: Arrays, inputs: Sequence[Input]) -> dict[Leaf, NDArray[Any]]:
    """A point for people: datetimes as NumPy's, which print as dates."""
    types = {p: t for i in inputs for p, t in leaf_types(i.key, i.type).items()}
    return {p: a.view(f"datetime64[{unit_of(types[p].dtype)}]") if types[p].dtype in DATETIMES else a for p, a in x.items()}


def draw_all(rng: Any, types: Mapping[Leaf, TensorType]) -> Arrays:
    """Random tangents of these types."""
    return {place: draw(rng, type_, (-1.0, 1.0)) for place, type_ in types.items()}


def draw(rng: Any, type_: TensorType, interval: tuple[float, float]) -> NDArray[Any]:
    """A random array, of whose numbers the parts are drawn from an interval."""
    import numpy as np

    low, high = interval
    dtype = numpy_dtype(np, type_.dtype)
    if type_.dtype == "bool":
        return np.asarray(rng.integers(0, 2, type_.shape), dtype)
    if type_.dtype in DATETIMES:
        return np.asarray(np.floor(10 * rng.uniform(low, high, type_.shape)), dtype)
    if type_.dtype in INTEGERS:
        least = max(0, math.ceil(low))
        return np.asarray(rng.integers(least, max(least + 1, int(high)), type_.shape), dtype)
    drawn = rng.uniform(low, high, type_.shape)
    return np.asarray(drawn + 1j * rng.uniform(low, high, type_.shape) if type_.complex else drawn).astype(dtype)
