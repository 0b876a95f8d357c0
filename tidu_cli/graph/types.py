"""Types of values: tensors, `dtype[shape]` as JAX prints them (`f64[3,4]`, `c128[]`, `datetime[ms][3]`), and records of these.

How those of records are read from text is in `tidu_cli.graph.text`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Hashable, Iterator
from functools import lru_cache

from tidu_cli.errors import TypeRuleError, TypeTextError, did_you_mean
from tidu_cli.frozen import Frozen
from tidu_cli.frozen import field as stored
from tidu_cli.graph.sizes.open import least

ITEMSIZE = {
    "bool": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u8": 1, "u16": 2, "u32": 4, "u64": 8,
    "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "c64": 8, "c128": 16,
}  # fmt: skip
"""Bytes per element of each dtype of numbers, in the order in which dtypes are listed."""

UNITS = ("D", "h", "m", "s", "ms", "us", "ns")
"""Units of time, as NumPy calls them, from days to nanoseconds: those of fixed length that clocks and calendars count in."""

DATETIME, DURATION = "datetime", "duration"
DATETIMES = frozenset(f"{DATETIME}[{unit}]" for unit in UNITS)
"""Points in time, as integers of 64 bits: how many units after 1970-01-01T00:00 UTC."""
DURATIONS = frozenset(f"{DURATION}[{unit}]" for unit in UNITS)
"""Spans of time, as floats of 64 bits: how many units long."""
TIMES = DATETIMES | DURATIONS

DTYPES = (*ITEMSIZE, *(f"{kind}[{unit}]" for kind in (DATETIME, DURATION) for unit in UNITS))
"""Every dtype, in the order in which they are listed."""

ALL = frozenset(ITEMSIZE)
FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
COMPLEXES = frozenset({"c64", "c128"})
INEXACT = FLOATS | COMPLEXES
SIGNED = frozenset({"i8", "i16", "i32", "i64"})
INTEGERS = SIGNED | {"u8", "u16", "u32", "u64"}
REALS = INTEGERS | FLOATS
NUMERIC = INTEGERS | INEXACT
ANY = ALL | TIMES

_CLASSES = {
    FLOATS: "floats",
    COMPLEXES: "complex numbers",
    INEXACT: "floats and complex numbers",
    INTEGERS: "integers",
    SIGNED: "signed integers",
    REALS: "integers and floats",
    NUMERIC: "numbers",
    REALS | {"bool"}: "integers, floats and bools",
    INTEGERS | {"bool"}: "integers and bools",
    REALS | {"bool"} | TIMES: "integers, floats, bools and times",
    REALS | TIMES: "integers, floats and times",
    NUMERIC | DURATIONS: "numbers and durations",
    NUMERIC | TIMES: "numbers and times",
    ALL: "numbers and bools",
    ANY: "all dtypes",
}

OPEN_SHAPE = (-1,)
"""The shape of a tensor type whose text leaves it out, where that is allowed: that of another type, as of a tangent its primal."""

MAX_BYTES = 2**62
"""Types of more bytes than this are refused: no machine holds them and sizes would overflow elsewhere."""

MAX_RANK = 64
"""As many axes as an array may have, in documents as in NumPy."""
_TEXT = re.compile(r"([a-z0-9]+|(?:datetime|duration)\[[A-Za-z]*\])(\[(?:(?:0|[1-9][0-9]*)(?:,(?:0|[1-9][0-9]*))*)?\])?", re.ASCII)

_OPEN = re.compile(r"([a-z0-9]+|(?:datetime|duration)\[[A-Za-z]*\])\[([^\]]*[A-Za-z_][^\]]*)\]", re.ASCII)


class TensorType(Frozen):
    """A dtype (a name of `ITEMSIZE` or of `TIMES`) and a shape, row-major, whose sizes are ints or open."""

    dtype: str
    shape: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes that the elements take."""
        return self.size * itemsize(self.dtype)

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def inexact(self) -> bool:
        """Whether the dtype is of floats, complex numbers or durations, which are their own tangent types."""
        return self.dtype in INEXACT or self.dtype in DURATIONS

    @property
    def complex(self) -> bool:
        """Whether the dtype is a complex one."""
        return self.dtype in COMPLEXES

    def with_dtype(self, dtype: str) -> TensorType:
        """The type of the same shape with another dtype."""
        return TensorType(dtype, self.shape)

    def with_shape(self, shape: tuple[int, ...]) -> TensorType:
        """The type of the same dtype with another shape."""
        return TensorType(self.dtype, shape)

    def __str__(self) -> str:
        return self.dtype if self.shape == OPEN_SHAPE else f"{self.dtype}[{','.join(map(str, self.shape))}]"


def parse_type(text: str) -> TensorType:
    """Read `dtype[shape]`; a dtype of times may stand alone, for one time. Names of sizes are as `sizes.reading.declaring` says.

    Raises TypeTextError for text of another form, and if the type is impossibly large.
    """
    match = _OPEN.fullmatch(text)
    if match is None or match[1] not in DTYPES:
        return _fixed_type(text)
    from tidu_cli.graph.sizes.reading import parse_sizes  # which documents without open sizes do without

    return _possible(TensorType(match[1], tuple(parse_sizes(match[2]))))


@lru_cache(maxsize=4096)
def _fixed_type(text: str) -> TensorType:
    match = _TEXT.fullmatch(text)
    dtype = match[1] if match else ""
    if match is None or dtype not in (TIMES if "[" in dtype else ITEMSIZE) or (match[2] is None and "[" not in dtype):
        raise TypeTextError(f"unknown type {text[:60]!r}{_hint(text, dtype)}")
    sizes = (match[2] or "[]")[1:-1].split(",")
    if any(len(n) > 19 for n in sizes):  # int() of an endless string of digits is slow, and Python refuses it past 4,300
        raise TypeTextError(f"the type {text[:60]} is larger than any memory")
    return _possible(TensorType(dtype, tuple(map(int, sizes)) if sizes != [""] else ()))


def _possible(parsed: TensorType) -> TensorType:
    try:
        require_possible(parsed)
    except TypeRuleError as error:
        raise TypeTextError(str(error)) from None
    return parsed


def require_possible(type_: Type) -> None:
    """Raises TypeRuleError for arrays of more axes than MAX_RANK, or more bytes than MAX_BYTES, empty axes left out."""
    for _, leaf in leaves(type_):
        if leaf.rank > MAX_RANK:
            raise TypeRuleError(f"an array of {leaf.rank} axes; the most are {MAX_RANK}")
        if math.prod(least(n) or 1 for n in leaf.shape) * itemsize(leaf.dtype) > MAX_BYTES:
            raise TypeRuleError(f"an array of type {_cut(str(leaf))} is larger than any memory")


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}..."


def _hint(text: str, dtype: str) -> str:
    word = dtype.partition("[")[0]
    if word in (DATETIME, DURATION) or text.startswith((DATETIME, DURATION)):
        return f"; write a unit of time ({', '.join(UNITS)}), such as {DATETIME}[ms] or {DURATION}[h][3]"
    if text.partition("[")[0] in ITEMSIZE and text.endswith("]") and " " not in text:
        return "; sizes are whole numbers, or names of letters, digits and _, such as f64[3,N], and f64[] is a number"
    hint = type_hint(text) or (did_you_mean(dtype, list(ITEMSIZE)) if dtype and "[" in text else "")
    return hint or "; write dtype[shape], such as f64[3,4] or f64[]"


_ELSEWHERE = {
    "float": "f64", "double": "f64", "real": "f64", "single": "f32", "half": "f16", "bfloat16": "bf16",
    "int": "i64", "integer": "i64", "long": "i64", "complex": "c128", "boolean": "bool",
}  # fmt: skip
"""What other languages call dtypes; NumPy's, such as float64, have a letter for a word."""


def type_hint(text: str) -> str:
    """A hint `; types are dtype[shape]; did you mean 'f64[2]'?` for other words, such as float64[2], f64(2) or f64; or nothing."""
    match = re.fullmatch(
        r"(?:(?:np|numpy|jnp|torch)\.)?([a-z]+)([0-9]{0,3})(?:\[(.*)\]|\((.*?),?\))?", text[:60].lower().replace(" ", ""), re.ASCII
    )
    if match is None:
        return ""
    word, bits, shape = match[1], match[2], match[3] or match[4] or ""
    letter = {"float": "f", "int": "i", "uint": "u"}.get(word, word)
    dtype = _ELSEWHERE.get(word + bits) or (f"c{bits}" if word == "complex" else letter + bits)
    meant = f"{dtype}[{shape}]"
    known = dtype in ITEMSIZE and meant != text and _TEXT.fullmatch(meant)
    return f"; types are dtype[shape]; did you mean '{meant}'?" if known else ""


Path = tuple[str, ...]
"""Where a tensor is within a type: names of fields, from the outermost record inwards; of a tensor itself, ()."""


class View(Frozen):
    """Properties by which tangents of a record type may be given instead of by its fields. No field is called as a property is.

    `maps` are the linear maps from and to the fields, `tidu_cli.rules.recording.conversion.Maps`: graphs, which are made of types.
    """

    name: str
    properties: tuple[tuple[str, Type], ...]
    maps: Hashable


class RecordType(Frozen):
    """A record: fields in order, each a tensor or a record.

    `name` is that under which a document declares it, and "" for a type that is spelled out; one whose fields are called "0", "1",
    … is a tuple. `tangent` marks the type of tangents of the record type `name`: it has that name, and fields of its own, or the
    properties of one of the `views` that are declared with that type.
    """

    name: str
    fields: tuple[tuple[str, Type], ...]
    tangent: bool = False
    views: tuple[View, ...] = stored(default=(), repr=False)
    nbytes: int = stored(init=False, repr=False, compare=False)
    """The number of bytes that all tensors together take."""
    n_tensors: int = stored(init=False, repr=False, compare=False)
    """Their number, where a record without fields counts as one."""
    depth: int = stored(init=False, repr=False, compare=False)
    """How deep records nest in it, itself included."""

    def __post_init__(self) -> None:
        # Told once from those of the fields: types of types of types stand for many more tensors than are written.
        types = [type_ for _, type_ in self.fields]
        inner = [type_ for type_ in types if isinstance(type_, RecordType)]
        object.__setattr__(self, "nbytes", sum(type_.nbytes for type_ in types))
        object.__setattr__(self, "n_tensors", max(sum(t.n_tensors for t in inner) + len(types) - len(inner), 1))
        object.__setattr__(self, "depth", 1 + max((type_.depth for type_ in inner), default=0))

    @property
    def is_tuple(self) -> bool:
        """Whether fields go by position."""
        return not self.name and all(name == str(k) for k, (name, _) in enumerate(self.fields))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields."""
        return tuple(name for name, _ in self.fields)

    @property
    def size(self) -> int:
        """The number of elements of all tensors together."""
        return sum(type_.size for _, type_ in self.fields)

    @property
    def inexact(self) -> bool:
        """Whether it is its own tangent type."""
        return (self.tangent or not self.name) and all(type_.inexact for _, type_ in self.fields)

    @property
    def view(self) -> View | None:
        """The view whose properties a type of tangents has; None if it has fields of the record."""
        return self.view_with(self.names) if self.tangent else None

    def view_with(self, names: Container[str]) -> View | None:
        """The view that has a property of one of these names, if there is one."""
        return next((view for view in self.views if any(name in names for name, _ in view.properties)), None)

    def tangents(self, fields: tuple[tuple[str, Type], ...]) -> RecordType:
        """The type of tangents of it, or of what its values are tangents of, with these fields."""
        return RecordType(self.name, fields, bool(self.name), self.views)

    def get(self, name: str) -> Type | None:
        """The type of a field; None if there is none of this name."""
        return next((type_ for field, type_ in self.fields if field == name), None)

    def __str__(self) -> str:
        if self.name and not self.tangent:
            return self.name
        if self.is_tuple:
            return f"({', '.join(str(type_) for _, type_ in self.fields)}{',' if len(self.fields) == 1 else ''})"
        return f"{self.name}{{{', '.join(f'{name}: {type_}' for name, type_ in self.fields)}}}"


Type = TensorType | RecordType


def leaves(type_: Type) -> Iterator[tuple[Path, TensorType]]:
    """The tensors of a type and where they are, depth first in the order of fields; of a tensor only itself."""
    if isinstance(type_, TensorType):
        yield (), type_
        return
    for name, field in type_.fields:
        for path, leaf in leaves(field):
            yield (name, *path), leaf


def map_leaves(type_: Type, change: Callable[[TensorType], TensorType]) -> Type:
    """A type whose tensors are changed. A declared record type becomes one that is spelled out: the same, it would lie."""
    if isinstance(type_, TensorType):
        return change(type_)
    fields = tuple((name, map_leaves(field, change)) for name, field in type_.fields)
    return type_ if fields == type_.fields else type_.tangents(fields) if type_.tangent else RecordType("", fields)


def spelled_out(type_: Type) -> Type:
    """A type with the fields of every record in it instead of its name, `{a: {x: f64[]}}`."""
    return type_ if isinstance(type_, TensorType) else RecordType("", tuple((name, spelled_out(t)) for name, t in type_.fields))


def of_batch(type_: Type, size: int) -> Type:
    """The type of so many values of a type together: the batch is the first axis of each array.

    Raises TypeRuleError where that is one axis, or are more elements, than arrays may have.
    """
    batch = map_leaves(type_, lambda t: t.with_shape((size, *t.shape)))
    try:
        require_possible(batch)
    except TypeRuleError as error:
        if any(leaf.rank > MAX_RANK for _, leaf in leaves(batch)):
            raise TypeRuleError(f"a batch of {_cut(str(type_))} would be {error}") from None
        raise TypeRuleError(f"{size:,} values of {_cut(str(type_))} are larger than any memory; take fewer at a time") from None
    return batch


def itemsize(dtype: str) -> int:
    """The bytes that an element of a dtype takes."""
    return 8 if dtype in TIMES else ITEMSIZE[dtype]


def dtype_class(dtypes: frozenset[str]) -> str:
    """How messages and the catalogue name a set of dtypes."""
    return _CLASSES.get(dtypes) or ", ".join(sorted(dtypes))


def storage_dtype(dtype: str) -> str:
    """The dtype of numbers in which values of a dtype are held: i64 of datetimes, f64 of durations, itself of numbers."""
    return "i64" if dtype in DATETIMES else "f64" if dtype in DURATIONS else dtype


def unit_of(dtype: str) -> str:
    """The unit of a dtype of times, such as `ms` of `datetime[ms]`."""
    return dtype.partition("[")[2].removesuffix("]")


def real_dtype(dtype: str) -> str:
    """The dtype of the real part: `f32` for `c64`, `f64` for `c128`, a float itself."""
    return {"c64": "f32", "c128": "f64"}.get(dtype, dtype)


def complex_dtype(dtype: str) -> str:
    """The complex dtype whose parts are `f32` or `f64`. Raises KeyError for others."""
    return {"f32": "c64", "f64": "c128"}[dtype]


def tangent_type(primal: Type) -> Type:
    """The natural type of tangents of a primal type.

    Floats, complex numbers and durations are their own tangent types. Integers have tangents in f64 whatever their width, which
    says nothing of the precision of what they meet; datetimes durations in their unit. Bool keeps its type, and has only the
    tangent zero. A record has a record of the natural tangents of its fields, without those that have only the tangent zero.
    """
    if isinstance(primal, TensorType):
        return tensor_tangent_type(primal)
    if primal.tangent:
        return primal
    fields = tuple((name, tangent_type(field)) for name, field in primal.fields if moves(field))
    return primal.tangents(fields)


def tensor_tangent_type(primal: TensorType) -> TensorType:
    """Likewise, of tensors."""
    if primal.dtype in INTEGERS:
        return primal.with_dtype("f64")
    if primal.dtype in DATETIMES:
        return primal.with_dtype(f"{DURATION}[{unit_of(primal.dtype)}]")
    return primal


def moves(type_: Type) -> bool:
    """Whether values of a type have other tangents than zero: some tensor in it is not of bools."""
    return type_.dtype != "bool" if isinstance(type_, TensorType) else any(moves(field) for _, field in type_.fields)
