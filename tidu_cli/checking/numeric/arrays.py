"""Values array by array: those of records are told apart by where they are, so that checks can move and compare each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tidu_cli.graph.graph import Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import Path, RecordType, TensorType, Type, leaves
from tidu_cli.lax.records.records import zeros

if TYPE_CHECKING:
    from numpy.typing import NDArray


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

    found = arrays.get(Leaf(key, path))
    return zeros(np, type_) if found is None else found


def apart(ports: Sequence[Input | Output], values: Iterable[Any]) -> Arrays:
    """The arrays of values: the inverse of `together`, also where fields are structurally zero (None)."""
    found: Arrays = {}
    for port, value in zip(ports, values, strict=True):
        _take_apart(found, port.key, (), port.type, value)
    return found


def _take_apart(found: Arrays, key: Key, path: Path, type_: Type, value: Any) -> None:
    if isinstance(type_, RecordType):
        for k, (name, field) in enumerate(type_.fields):
            _take_apart(found, key, (*path, name), field, None if value is None else value[k])
        return
    import numpy as np

    found[Leaf(key, path)] = np.asarray(zeros(np, type_) if value is None else value)
