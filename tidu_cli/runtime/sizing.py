"""Open sizes as the inputs of an evaluation have them: what is given has shapes, and these say what names stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from tidu_cli.errors import EvaluationError
from tidu_cli.graph.graph import Document, Graph, Input
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.open_sizes import has_open_size, names_in, open_names
from tidu_cli.graph.types import RecordType, Type
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.specializing import specialized, specialized_graph

Numbers = Mapping[str, int]

T = TypeVar("T")


def as_given(graph: Graph, given: Mapping[Key, Any], batch: Mapping[Key, int] | None = None) -> Graph:
    """A graph without references, of the sizes that these inputs have; itself where no size is open.

    `batch` is the axis of inputs that have one more than declared. Raises EvaluationError where inputs disagree on a size, or say
    nothing of it; TransformError where the graph does not take it.
    """
    names = names_in(graph)
    if not names:
        return graph
    from tidu_cli.graph.sizes.values import require_known
    from tidu_cli.runtime.evaluate import require_given
    from tidu_cli.runtime.plans.program import needed_inputs

    needed = needed_inputs(graph)
    require_given([i for i in graph.inputs if i.key in needed], given)
    numbers = sizes_given(graph.inputs, given, batch)
    if not names.keys() <= numbers.keys():
        for i in graph.inputs:
            _require_rank(i, given, batch)
    require_known(names, numbers)
    return specialized_graph(graph, {name: numbers[name] for name in names}, vocabulary(graph.cases))


def document_as_given(document: Document, given: Mapping[Key, Any]) -> Document:
    """Likewise, of a document; sizes of which inputs say nothing stay open."""
    names = open_names(document)
    if not names:
        return document
    numbers = sizes_given(list(document.inputs.values()), given)
    known = {name: numbers[name] for name in names if name in numbers}
    return specialized(document, known, vocabulary(document.cases))


def document_of_sizes(document: Document, given: Mapping[Key, Any]) -> Document:
    """Likewise; raises EvaluationError where a size stays open, with the inputs that are missing."""
    document = document_as_given(document, given)
    if names := open_names(document):
        from tidu_cli.graph.sizes.values import require_known
        from tidu_cli.runtime.evaluate import require_given

        declared = [i for i in document.inputs.values() if has_open_size(i.type)]
        require_given(declared, given)
        for i in declared:
            _require_rank(i, given, None)
        require_known(names, {})
    return document


def _require_rank(declared: Input, given: Mapping[Key, Any], batch: Mapping[Key, int] | None) -> None:
    """Raises EvaluationError for an array of another number of axes than is declared, which says nothing of sizes."""
    axis = (batch or {}).get(declared.key)
    for due, shape in _shapes(declared.type, given[declared.key], axis) if declared.key in given else ():
        if len(due) != len(shape):
            where = "" if axis is None else " in each row of the batch; the batch is one more axis"
            raise EvaluationError(f"input {declared.key}: expected {declared.type}, got an array of shape {list(shape)}{where}")


class Plans(Generic[T]):
    """What is made of a graph with open sizes, for the sizes that inputs have: that of the last few sizes is kept."""

    MOST = 16

    def __init__(self, graph: Graph, make: Callable[[Graph], T]) -> None:
        self._graph, self._make = graph, make
        self._kept: dict[tuple[tuple[str, int], ...], T] = {}

    @property
    def last(self) -> T | None:
        """What was asked for last; None before."""
        return next(reversed(self._kept.values()), None)

    def of(self, given: Mapping[Key, Any], batch: Mapping[Key, int] | None = None) -> T:
        """What is made of the graph with the sizes of these inputs. Raises as `as_given`."""
        sizes = tuple(sorted(sizes_given(self._graph.inputs, given, batch).items()))
        made = self._kept.pop(sizes, None)
        if made is None:
            made = self._make(as_given(self._graph, given, batch))
        self._kept[sizes] = made  # as the last one
        if len(self._kept) > self.MOST:
            del self._kept[next(iter(self._kept))]
        return made


def sizes_given(inputs: Sequence[Input], given: Mapping[Key, Any], batch: Mapping[Key, int] | None = None) -> Numbers:
    """What names stand for, by the shapes of inputs. Raises EvaluationError where two disagree."""
    from tidu_cli.graph.sizes.values import numbers_of

    pairs = [
        (f"input {i.key}", *leaf)
        for i in inputs
        if i.key in given and has_open_size(i.type)
        for leaf in _shapes(i.type, given[i.key], None if batch is None else batch.get(i.key))
    ]
    return numbers_of(pairs, {})


def _shapes(type_: Type, value: Any, axis: int | None) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """Declared shapes and those that a value has."""
    if isinstance(type_, RecordType):
        fields = dict(zip(type_.names, value, strict=False)) if isinstance(value, tuple | list) else value
        for name, field in type_.fields:
            if isinstance(fields, Mapping) and fields.get(name) is not None:
                yield from _shapes(field, fields[name], axis)
        return
    shape = shape_of(value)
    if axis is not None and -len(shape) <= axis < len(shape):
        shape = shape[: axis % len(shape)] + shape[axis % len(shape) + 1 :]
    yield type_.shape, shape


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of what a user gave for an array: of nested lists as far as they go."""
    if isinstance(value, Literal):
        return value.type.shape
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return shape
    sizes: list[int] = []
    while isinstance(value, list | tuple):
        sizes.append(len(value))
        value = value[0] if value else None
    return tuple(sizes)
