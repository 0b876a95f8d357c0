"""Inputs as one vector, as optimizers take them: the numbers of arrays one after the other, of a complex number its two parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, product
from typing import TYPE_CHECKING, Any

from tidu_cli.errors import ArgumentError, EvaluationError, Remedy, TransformError, UnknownNameError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.select import covered, listed
from tidu_cli.graph.types import COMPLEXES, FLOATS, RecordType, TensorType, Type, leaves
from tidu_cli.lax.arrays.dtypes import numpy_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Unknowns:
    """Inputs of floats, complex numbers and records of these, and the vector of f64 that they are together."""

    def __init__(self, document: Document, keys: Sequence[Key]) -> None:
        """Raises TransformError for other inputs, and where there is no number to choose."""
        self.declared = frozenset(document.inputs)
        self.types = {key: document.inputs[key].type for key in keys}
        for key, type_ in self.types.items():
            for _, leaf in leaves(type_):
                if leaf.dtype not in FLOATS | COMPLEXES:
                    raise TransformError(
                        f"input '{key}' is {type_}, and an optimizer moves floats alone; give it a value and leave it out"
                    )
        self.sizes = {key: sum(_width(leaf) for _, leaf in leaves(type_)) for key, type_ in self.types.items()}
        self.size = sum(self.sizes.values())
        if not self.size:
            raise TransformError(f"the unknowns, {listed(list(map(str, keys)))}, have no elements")

    def values(self, x: NDArray[Any]) -> dict[Key, Any]:
        """The values of the inputs at a vector, in their own dtypes, as programs take them."""
        import numpy as np

        values, start = {}, 0
        with np.errstate(all="ignore"):  # a number may be too large for f32
            for key, type_ in self.types.items():
                values[key], start = _value(type_, x, start)
        return values

    def names(self) -> list[str]:
        """What each number of the vector is called: a, w[0,1], p.x; of a complex number z.re and z.im."""
        return [name for key, type_ in self.types.items() for name in _names(str(key), type_)]

    def limits(self, bounds: Mapping[Key, Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The lower and the upper bound of each number. Raises UnknownNameError, EvaluationError for bounds that are none."""
        import numpy as np

        lower, upper = np.full(self.size, -np.inf), np.full(self.size, np.inf)
        texts = {str(key): key for key in self.types}
        starts = dict(zip(self.types, accumulate(self.sizes.values(), initial=0), strict=False))
        for key, pair in bounds.items():
            keys = [key] if key in self.types else [texts[text] for text in covered(str(key), texts)]
            if not keys:
                way = Remedy("wrt", str(key))
                raise UnknownNameError(f"bounds of '{key}', which is not among the unknowns ({listed(list(texts))}); add ", way)
            for unknown in keys:
                part = slice(starts[unknown], starts[unknown] + self.sizes[unknown])
                lower[part], upper[part] = _sides(unknown, self.types[unknown], pair)
        if (wrong := np.flatnonzero(~(lower < upper))).size:
            k = int(wrong[0])
            what = f"bounds of {self.names()[k]}: the lower one, {lower[k]:g}, is not less than the upper one, {upper[k]:g}"
            raise EvaluationError(f"{what}; to hold an input still, leave it out of ", Remedy("wrt", python="wrt"))
        return lower, upper


def flat(value: Any) -> NDArray[Any]:
    """The numbers of a value, that of a record a tuple, as a vector of f64."""
    import numpy as np

    if isinstance(value, tuple):
        return np.concatenate([flat(part) for part in value]) if value else np.zeros(0)
    array = np.asarray(value)
    if array.dtype.kind == "c":
        return np.ascontiguousarray(array, np.complex128).ravel().view(np.float64)
    return array.astype(np.float64).ravel()


def _width(leaf: TensorType) -> int:
    return 2 * leaf.size if leaf.dtype in COMPLEXES else leaf.size


def _value(type_: Type, x: NDArray[Any], start: int) -> tuple[Any, int]:
    """A value whose numbers begin here, and where the next one's begin."""
    import numpy as np

    if isinstance(type_, RecordType):
        fields = []
        for _, field in type_.fields:
            value, start = _value(field, x, start)
            fields.append(value)
        return tuple(fields), start
    end = start + _width(type_)
    numbers = np.array(x[start:end])
    if type_.dtype in COMPLEXES:
        numbers = numbers.view(np.complex128)
    return numbers.astype(numpy_dtype(np, type_.dtype), copy=False).reshape(type_.shape), end


def _names(name: str, type_: Type) -> Iterator[str]:
    for path, leaf in leaves(type_):
        at = ".".join((name, *path))
        for index in product(*map(range, leaf.shape)):
            element = f"{at}[{','.join(map(str, index))}]" if index else at
            yield from (f"{element}.re", f"{element}.im") if leaf.dtype in COMPLEXES else (element,)


def _sides(key: Key, type_: Type, pair: Any) -> Iterator[NDArray[Any]]:
    """The lower and the upper bounds of an input's numbers: a number for all, or an array of its shape; None for no bound."""
    import numpy as np

    if any(leaf.dtype in COMPLEXES for _, leaf in leaves(type_)):
        raise EvaluationError(f"bounds of '{key}': complex numbers have no order")
    for side, none in zip(pair, (-np.inf, np.inf), strict=True):
        try:
            array = np.asarray(none if side is None else side, np.float64)
        except (TypeError, ValueError):
            raise ArgumentError(f"bounds of '{key}' are numbers, or arrays of its shape, such as 0, or None for no bound") from None
        if array.ndim and (isinstance(type_, RecordType) or array.shape != type_.shape):
            raise EvaluationError(
                f"bounds of '{key}', {type_}, are of shape {list(array.shape)}; give a number, or an array of its shape"
            )
        yield array.ravel()
