"""The tensors that values consist of, each by its name: what npz, npy, csv and the table hold, which know no records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tidu_cli.errors import DocumentError
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import RecordType, TensorType, Type, unit_of
from tidu_cli.lax.arrays.structural import numpy_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Member(NamedTuple):
    """A tensor: its name, `p.x` of a field, an array of the numbers that hold it, and its type where that is known."""

    name: str
    array: NDArray[Any]
    type: TensorType | None


def members(values: Mapping[Key, Any], types: Mapping[Key, Type], format: str) -> list[Member]:
    """The tensors of values of these types. Raises DocumentError where two of them had one name."""
    found = [member for key, value in values.items() for member in _members(str(key), value, types.get(key))]
    names: set[str] = set()
    for member in found:
        if member.name in names:
            short = member.name if len(member.name) <= 60 else f"{member.name[:57]}..."
            raise DocumentError(f"two values would be called '{short}' in {format}; write JSON or msgpack")
        names.add(member.name)
    return found


def _members(name: str, value: Any, type_: Type | None) -> Iterator[Member]:
    if not isinstance(type_, RecordType):
        yield Member(name, stored(value, type_), type_)
        return
    for field, part, field_type in fields(value, type_):
        yield from _members(f"{name}.{field}", part, field_type)


def field_of(text: str, records: Mapping[str, Key]) -> tuple[str, list[str]]:
    """The record that a member `p.x` is of, the one of the longest name, and the way to the field in it; "" for none."""
    owner, path = text, list[str]()
    while "." in owner:
        owner, _, step = owner.rpartition(".")
        path.insert(0, step)
        if owner in records:
            return owner, path
    return "", []


def fields(value: Any, type_: RecordType) -> Iterator[tuple[str, Any, Type]]:
    """The fields of a record: a name, what the value has there, None for zero, and its type."""
    for k, (name, field_type) in enumerate(type_.fields):
        yield name, None if value is None else value[name] if isinstance(value, Mapping) else value[k], field_type


def stored(value: Any, type_: TensorType | None) -> NDArray[Any]:
    """A tensor as an array of the numbers that hold it."""
    import numpy as np

    if value is None:
        assert type_ is not None
        return np.zeros(type_.shape, numpy_dtype(np, type_.dtype))
    array: NDArray[Any] = np.asarray(value)
    if array.dtype.kind == "M" and type_ is not None:
        return array.astype(f"M8[{unit_of(type_.dtype)}]").view(np.int64)
    return array
