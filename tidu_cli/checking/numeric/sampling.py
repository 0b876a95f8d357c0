"""Where points come from: random inputs at which outputs are finite, and random tangents."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tidu_cli.errors import StepsError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Case, CaseTable, Document, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import DATETIMES, INTEGERS, ITEMSIZE, Path, RecordType, TensorType, Type, leaves, unit_of
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.records.records import zeros
from tidu_cli.rules.contract import Example, Primitive
from tidu_cli.rules.vocabulary import PrimitiveSet

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Examples of primitives, as cases and as one-node documents.


T = TypeVar("T")

DTYPES = (*ITEMSIZE, "datetime[ms]", "duration[h]")
"""The dtypes that examples are tried in: of times one each, since rules tell units apart only in conversions."""

_GENERIC = re.compile(r"\bT\b")


def example_cases(primitives: PrimitiveSet, primitive: Primitive) -> Iterator[tuple[Example, Case]]:
    """Every example of a primitive in every dtype that it takes, as a primary case."""
    for example in primitive.catalogue.examples:
        given = example.attrs() if callable(example.attrs) else example.attrs
        texts = [*example.operands, *(value for value in given.values() if isinstance(value, str))]
        generic = any(map(_GENERIC.search, texts))
        for dtype in [d for d in DTYPES if d in primitive.domain.dtypes] if generic else ["f64"]:
            attrs = {name: _GENERIC.sub(dtype, value) if isinstance(value, str) else value for name, value in given.items()}
            types = [parse_value_type(_GENERIC.sub(dtype, type_), primitives.records) for type_ in example.operands]
            yield example, primitives.case(primitive.name, primitives.parse_attrs(primitive.name, attrs), None, types)


def one_node_document(
    case: Case, primitives: PrimitiveSet | None = None, inputs: Sequence[Key] = (), outputs: Sequence[Key] = ()
) -> Document:
    """A document of one graph, named like the op, of one node. Inputs are x0, x1, ..., outputs y0, y1, ..., or have these keys."""
    cases = CaseTable(primitives)
    types = [t for t in case.operands if t is not None]
    assert len(types) == len(case.operands)
    input_keys = inputs or [Key(f"x{k}") for k in range(len(types))]
    output_keys = outputs or [Key(f"y{k}") for k in range(len(case.results))]
    builder = GraphBuilder(cases, list(map(Input, input_keys, types)))
    first = builder.append(cases.intern(case), range(len(types)))
    ends = [Output(key, first + k, t) for k, (key, t) in enumerate(zip(output_keys, case.results, strict=True))]
    return Document((builder.build(case.op, ends),), cases)


def of_operand(given: Sequence[T], k: int) -> T:
    """What an example gives for operand k: one thing for each of its operands, or one for all."""
    return given[min(k, len(given) - 1)]


def with_diagonal(x: Any, added: float) -> Any:
    """Matrices with a number added to their diagonals, in their own dtype; arrays as they are where it is 0."""
    import numpy as np

    return np.asarray(x + added * np.eye(*x.shape[-2:]), x.dtype) if added else x


# Values array by array: those of records are told apart by where they are, so that checks can move and compare each.


class Leaf(NamedTuple):
    """An array of an input or output: itself, or the one at `path` in a record. As text `x`, `p.x`, `p.a.0`."""

    key: Key
    path: Path = ()

    def __str__(self) -> str:
        return ".".join([str(self.key), *self.path])


Arrays = dict[Leaf, "NDArray[Any]"]
"""Arrays, of times the numbers that hold them, by place."""


def leaf_types(key: Key, type_: Type) -> dict[Leaf, TensorType]:
    """The arrays of a value of this type, which is called `key`."""
    return {Leaf(key, path): leaf for path, leaf in leaves(type_)}


def together(arrays: Mapping[Leaf, NDArray[Any]], key: Key, type_: Type, path: Path = ()) -> Any:
    """The value of this type that the arrays make up, as evaluation has it: an array, or a tuple of values.

    Arrays that are not there are zeros.
    """
    if isinstance(type_, RecordType):
        return tuple(together(arrays, key, field, (*path, name)) for name, field in type_.fields)
    import numpy as np

    array = arrays.get(Leaf(key, path))
    return zeros(np, type_) if array is None else array


def apart(ports: Sequence[Input | Output], values: Iterable[Any]) -> Arrays:
    """The arrays of values: the inverse of `together`, also where fields are structurally zero (None)."""
    arrays: Arrays = {}
    for port, value in zip(ports, values, strict=True):
        _take_apart(arrays, port.key, (), port.type, value)
    return arrays


def _take_apart(arrays: Arrays, key: Key, path: Path, type_: Type, value: Any) -> None:
    if isinstance(type_, RecordType):
        for k, (name, field) in enumerate(type_.fields):
            _take_apart(arrays, key, (*path, name), field, None if value is None else value[k])
        return
    import numpy as np

    arrays[Leaf(key, path)] = np.asarray(zeros(np, type_) if value is None else value)


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
