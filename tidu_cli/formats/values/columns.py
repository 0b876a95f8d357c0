"""Values read of csv as `text.csv_text` writes them: a column for each number or vector, and for each column of a matrix."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping

from tidu_cli.errors import DocumentError
from tidu_cli.formats.values.text import field_of, parent
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import RecordType, Type

_OF_MATRIX = re.compile(r"(.+)\[:,(\d{1,9})\]", re.S)

_TIME = re.compile(r"\d{4}-\d\d|NaT$")

_WORDS = {"true": True, "false": False}


def read_csv(data: bytes, source: str, declared: Mapping[Key, Type]) -> dict[str, object]:
    """The columns by their headings. One of a single cell is a number, unless a vector is declared. Raises DocumentError."""
    try:
        rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))
    except (csv.Error, UnicodeDecodeError) as error:
        raise DocumentError(f"{source}: malformed csv: {error}") from None
    names, rows = (rows[0] if rows else []), rows[1:]
    if not all(names) or len(set(names)) < len(names):
        raise DocumentError(f"{source}: malformed csv: the first row has a name for each column, and no name twice")
    for k, row in enumerate(rows):
        if len(row) > len(names):
            raise DocumentError(f"{source}: malformed csv: row {k + 2} has {len(row)} cells, and there are {len(names)} columns")
    columns = {name: _column(name, [row[k] if k < len(row) else "" for row in rows], source) for k, name in enumerate(names)}
    types = {str(key): type_ for key, type_ in declared.items()}
    records = {str(key): key for key, type_ in declared.items() if isinstance(type_, RecordType)}
    values: dict[str, object] = {}
    for name, cells in columns.items():
        if (matrix := _OF_MATRIX.fullmatch(name)) and name not in types:
            name, n = matrix[1], int(matrix[2])
            parts = [columns.get(f"{name}[:,{k}]") for k in range(n + 1)]
            if None in parts or len({len(part or ()) for part in parts}) > 1:
                raise DocumentError(f"{source}: {name}: its columns are {name}[:,0], {name}[:,1], ..., of one length")
            value: object = [list(row) for row in zip(*[part or () for part in parts], strict=True)]
        else:
            value = cells[0] if len(cells) == 1 and not getattr(_type_of(name, types, records), "rank", 0) else cells
        owner, path = ("", []) if name in types else field_of(name, records)
        *way, last = [owner, *path] if owner else [name]
        if (place := parent(values, way)) is None:
            raise DocumentError(f"{source}: the key {name} occurs twice")
        place[last] = value
    return values


def _type_of(name: str, types: Mapping[str, Type], records: Mapping[str, Key]) -> Type | None:
    if name in types:
        return types[name]
    owner, path = field_of(name, records)
    type_ = types.get(owner)
    for step in path:
        type_ = type_.get(step) if isinstance(type_, RecordType) else None
    return type_


def _column(name: str, cells: list[str], source: str) -> list[object]:
    """The cells of a column up to the last that is not empty."""
    while cells and not cells[-1].strip():
        cells.pop()
    return [_cell(cell.strip(), f"{source}: {name}, row {k + 2}") for k, cell in enumerate(cells)]


def _cell(text: str, where: str) -> object:
    if text in _WORDS:
        return _WORDS[text]
    if _TIME.match(text):
        return text
    for read in (int, float, complex):
        try:
            number = read(text)
        except ValueError:
            continue
        if isinstance(number, complex):
            return {"re": _plain(number.real), "im": _plain(number.imag)}
        return _plain(number)
    raise DocumentError(f"{where}: {f'{text[:40]!r} is not a number' if text else 'the cell is empty, and later ones are not'}")


def _plain(number: float) -> object:
    """A number as JSON has it."""
    if isinstance(number, int) or math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
