"""Trials of documents: the points and sizes at which they are tried, and their values there, compared with those of another system.

Points are random inputs at which outputs are finite, and random tangents.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tidu_cli.errors import StepsError, TiduError
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.graph import Case, CaseTable, Document, Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.open_sizes import open_names
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import DATETIMES, INTEGERS, ITEMSIZE, Path, RecordType, TensorType, Type, leaves, unit_of
from tidu_cli.lax.arrays.dtypes import numpy_dtype
from tidu_cli.lax.records.records import zeros
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.limits import limited_steps
from tidu_cli.rules.contract import Example, Primitive
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.evaluate import evaluate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidu_cli.graph.sizes.algebra import Name

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


def at_sizes(document: Document, given: Mapping[Key, Any]) -> Iterator[tuple[str, Document]]:
    """A document of the sizes that some inputs have, and of others twice: the least that each may be, and then different ones.

    With each comes how reports name it: " at N=3, T=4", or nothing where no size is open. Raises TransformError, EvaluationError.
    """
    names = open_names(document)
    if not names:
        yield "", document
        return
    from tidu_cli.runtime.sizing import sizes_given, specialized

    known = sizes_given(list(document.inputs.values()), given)
    free = sorted(set(names) - set(known))
    for trial in (0, 1) if free else (0,):
        sizes = {**known, **{name: _number(names[name], trial * (k + 2)) for k, name in enumerate(free)}}
        told = ", ".join(f"{name}={sizes[name]}" for name in sorted(sizes))
        yield f" at {told}", specialized(document, sizes, vocabulary(document.cases))


def _number(name: Name, after: int) -> int:
    """A number that a name may stand for: the one that comes this far after the least, or the greatest."""
    low, high = name.bounds
    return int(min(max(low, 1) + after if high >= 1 else low, high)) * name.multiple


VERIFIED = "verified: the file runs exactly what its document says"
"""What is said of a file of another system that claims to be a document: written again, the document gives this file."""

TOLERANCE = {"f64": 1e-10, "f32": 1e-4, "f16": 1e-2, "bf16": 1e-1}
"""Relative to the greatest value of an output; other dtypes must be equal."""


class Agreement(Frozen, slots=False):
    """How far an output is from that of another runtime: the relative error, infinite where shape or type differ."""

    output: Key
    error: float
    tolerance: float
    text: str = ""

    @property
    def ok(self) -> bool:
        """Whether both are the same, as far as rounding goes."""
        return self.error <= self.tolerance


def against_graph(graphs: Sequence[Graph], inputs: Sequence[Key], runs: Graph, seed: int) -> list[Agreement]:
    """Compare the outputs of graphs, one after the other, with those of one that has the inputs of these keys in their order.

    Both were made by other ways, so that digits may differ. Raises TiduError where they are not of the same arrays, and where loops
    run more steps than `limits` allow, by default `DRAWN_STEPS`.
    """
    import numpy as np

    ports = [o for graph in graphs for o in graph.outputs]
    if len(inputs) != len(runs.inputs) or len(ports) != len(runs.outputs):
        raise TiduError("the module has other arguments or results than the document")
    declared = {i.key: i.type for graph in graphs for i in graph.inputs}
    pairs = [*((declared.get(k, i.type), i.type) for k, i in zip(inputs, runs.inputs, strict=True))]
    if any(a != b for a, b in (*pairs, *((o.type, r.type) for o, r in zip(ports, runs.outputs, strict=True)))):
        raise TiduError("the types of arguments or results are others than the document's")
    rng = np.random.default_rng(seed)
    drawn = [draw(rng, t, (0.1, 0.9)) for _, t in pairs if isinstance(t, TensorType)]
    given = dict(zip(inputs, drawn, strict=True))
    with limited_steps(None, drawn=True):
        ours = [y for graph in graphs for y in evaluate(graph, {i.key: given[i.key] for i in graph.inputs}).values()]
        theirs = evaluate(runs, dict(zip((i.key for i in runs.inputs), drawn, strict=True))).values()
    agreements = [agreement(o.key, o.type, np.asarray(a), b) for o, a, b in zip(ports, ours, theirs, strict=True)]
    return [replace(a, tolerance=a.tolerance**0.5) for a in agreements]


def agreement(key: Key, type_: Any, ours: NDArray[Any], theirs: Any) -> Agreement:
    """How far an output of this type is from what another runtime gives."""
    import numpy as np

    assert isinstance(type_, TensorType)
    tolerance = TOLERANCE.get(type_.dtype, 0.0)
    other = np.asarray(theirs)
    if other.shape != ours.shape:
        return Agreement(key, np.inf, tolerance, f"has the shape {list(ours.shape)}, and {list(other.shape)} there")
    if type_.dtype in INTEGERS or type_.dtype == "bool":
        differing = int(np.count_nonzero(ours != other))
        text = f"differs in {differing} of {ours.size} elements"
        return Agreement(key, float(differing), tolerance, text)
    a, b = (np.asarray(x, np.float64) for x in (ours, other))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    scale = float(np.max(np.abs(b), where=np.isfinite(b), initial=0.0))
    with np.errstate(invalid="ignore"):
        error = np.max(np.where(same, 0.0, np.abs(a - b)), initial=0.0)
    relative = float(error / scale) if scale else float(error)
    return Agreement(key, np.inf if np.isnan(relative) else relative, tolerance, f"has relative error {relative:.0e}")
