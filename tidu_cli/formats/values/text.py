"""Values as text: csv for spreadsheets and other programs, and a table for people."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from tidu_cli.errors import DocumentError, printable
from tidu_cli.formats.values.members import Member, members
from tidu_cli.graph.keys import Key
from tidu_cli.graph.text.instants import NOT_A_TIME, instant_to_text
from tidu_cli.graph.types import DATETIMES, TensorType, Type, unit_of
from tidu_cli.lax.arrays.structural import dtype_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DIGITS = 6
"""The significant digits of floats in the table."""

_WHOLE = 200
"""Arrays of more elements are folded in it."""

_WIDTH = 100
"""The characters of an array's line."""


def csv_text(values: Mapping[Key, Any], types: Mapping[Key, Type]) -> str:
    """One column for each number or vector, headed by its key, and for each column of a matrix, headed by `A[:,0]`, say.

    Shorter columns end in empty cells. Floats have the digits that tell them from others of their dtype; complex numbers are
    written as Python does, 1+2j, datetimes in ISO 8601. Raises DocumentError for arrays of more than two axes.
    """
    columns = [column for member in members(values, types, "csv") for column in _columns(member)]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([name for name, _ in columns])
    writer.writerows(zip_longest(*(cells for _, cells in columns), fillvalue=""))
    return out.getvalue()


def _columns(member: Member) -> Iterator[tuple[str, list[str]]]:
    name, array, type_ = printable(member.name), member.array, member.type
    if array.ndim > 2:
        raise DocumentError(f"csv has rows and columns, and {name} is {_type(member)}; write json, npz or npy")
    if array.ndim < 2:
        yield name, cells(array.ravel(), type_)
    else:
        yield from ((f"{name}[:,{k}]", cells(array[:, k], type_)) for k in range(array.shape[1]))


def cells(array: NDArray[Any], type_: TensorType | None) -> list[str]:
    """The elements of a vector as text."""
    if type_ is not None and type_.dtype in DATETIMES:
        unit = unit_of(type_.dtype)
        return ["NaT" if x == NOT_A_TIME else instant_to_text(x, unit) or str(x) for x in array.tolist()]
    if array.dtype.kind == "b":
        return ["true" if x else "false" for x in array.tolist()]
    return [str(x).strip("()") for x in array]  # NumPy's scalars: the shortest text that is this number in their dtype


def table_text(values: Mapping[Key, Any], types: Mapping[Key, Type]) -> str:
    """A line for each number, and a few for each array: name, type and elements, to six digits. Long arrays are folded."""
    rows = [(printable(m.name), _type(m), _elements(m)) for m in members(values, types, "a table")]
    first, second = (max((len(row[k]) for row in rows), default=0) for k in (0, 1))
    lines = []
    for name, type_, text in rows:
        head = f"{name:{first}}  {type_:{second}}  "
        lines.append(head + text.replace("\n", f"\n{'':{len(head)}}"))
    return "".join(f"{line}\n" for line in lines)


def _type(member: Member) -> str:
    return str(member.type or TensorType(dtype_name(member.array.dtype), member.array.shape))


def _elements(member: Member) -> str:
    import numpy as np

    array = member.array
    if array.size > _WHOLE:
        plain = array.astype(np.float32) if array.dtype.name == "bfloat16" else array
        return np.array2string(plain, max_line_width=_WIDTH, precision=_DIGITS, threshold=_WHOLE, edgeitems=3)
    found = [_element(x) for x in array.ravel().tolist()] if array.dtype.kind in "fcV" else cells(array.ravel(), member.type)
    width = max(map(len, found), default=0)
    padded = np.array([text.rjust(width) for text in found], object).reshape(array.shape)
    return found[0] if not array.ndim else np.array2string(padded, max_line_width=_WIDTH, formatter={"object": str})


def _element(x: complex) -> str:
    return f"{x:.{_DIGITS}g}"
