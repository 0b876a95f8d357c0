"""Type patterns: what the inputs and outputs of custom operations are declared as.

`f64[3]` is one type. A name in place of a size, `f64[n,m]`, is any size, the same wherever the name stands; `...` are any axes, the
same in every pattern of the op; `T` in place of the dtype is any dtype, and the same. Record types stand for themselves: they have
no variables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tidu_cli.errors import TypeRuleError, TypeTextError, did_you_mean
from tidu_cli.frozen import Frozen
from tidu_cli.graph.keys import Key
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.types import DATETIME, DURATION, ITEMSIZE, MAX_RANK, TIMES, RecordType, TensorType, Type, leaves, parse_type

_TEXT = re.compile(r"([A-Za-z0-9]+|(?:datetime|duration)\[[A-Za-z]*\])\[([^\[\]]*)\]")
_SIZE = re.compile(r"0|[1-9][0-9]{0,18}")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
ANY_DTYPE = "T"
ANY_AXES = "..."


class TensorPattern(Frozen):
    """A dtype or `T`, and sizes: numbers, names, or once `...`."""

    dtype: str
    sizes: tuple[int | str, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.sizes))}]"


Pattern = TensorPattern | RecordType

Variables = dict[str, object]
"""What variables stand for: sizes by name, the axes of `...`, and the dtype of `T`."""


def variables_of(pattern: Pattern) -> list[str]:
    """The variables in a pattern."""
    if isinstance(pattern, RecordType):
        return []
    return [n for n in pattern.sizes if isinstance(n, str)] + [ANY_DTYPE] * (pattern.dtype == ANY_DTYPE)


def instance(pattern: Pattern, variables: Variables) -> Type:
    """The type that a pattern is where its variables stand for these."""
    if isinstance(pattern, RecordType):
        return pattern
    shape: list[int] = []
    for n in pattern.sizes:
        size = variables[n] if isinstance(n, str) else n
        shape += size if isinstance(size, tuple) else [size]  # type: ignore[list-item]
    dtype = variables[ANY_DTYPE] if pattern.dtype == ANY_DTYPE else pattern.dtype
    assert isinstance(dtype, str)
    return TensorType(dtype, tuple(shape))


def parse_pattern(text: str, records: Mapping[str, RecordType]) -> Pattern:
    """Read a pattern; `records` are record types by name. Raises TypeTextError for text of another form."""
    match = None if text in TIMES else _TEXT.fullmatch(text)
    if match is None or match[1] in (DATETIME, DURATION):  # a time alone, or one without a unit
        return _type_as_pattern(text, records)
    dtype, inside = match[1], match[2].strip(" ")
    if dtype != ANY_DTYPE and dtype not in ITEMSIZE and dtype not in TIMES:
        raise TypeTextError(f"unknown type {text[:60]!r}{did_you_mean(dtype, [*ITEMSIZE, ANY_DTYPE])}")
    texts = [n.strip(" ") for n in inside.split(",")] if inside else []
    sizes = tuple(int(n) if _SIZE.fullmatch(n) else n for n in texts)
    for n in sizes:
        if isinstance(n, str) and n != ANY_AXES and not _NAME.fullmatch(n):
            raise TypeTextError(f"unknown type {text[:60]!r}: a size is a number, a name of small letters, or '...' for any axes")
    if len(sizes) > MAX_RANK:
        raise TypeTextError(f"unknown type {text[:60]!r}: the most sizes are {MAX_RANK}")
    if sizes.count(ANY_AXES) > 1:
        raise TypeTextError(f"unknown type {text[:60]!r}: '...' may stand once")
    pattern = TensorPattern(dtype, sizes)
    if not variables_of(pattern):
        parse_type(str(pattern))
    return pattern


def _type_as_pattern(text: str, records: Mapping[str, RecordType]) -> Pattern:
    if not records and not text.startswith(("{", "(", DATETIME, DURATION)):
        raise TypeTextError(f"unknown type {text[:60]!r}; write dtype[shape], such as f64[3], f64[n,m], f64[...] or T[...]")
    from tidu_cli.graph.text import parse_value_type

    type_ = parse_value_type(text, records)
    if any(isinstance(n, OpenSize) for _, leaf in leaves(type_) for n in leaf.shape):
        raise TypeTextError(f"unknown type {text[:60]!r}: sizes of a record's fields are numbers here")
    return TensorPattern(type_.dtype, type_.shape) if isinstance(type_, TensorType) else type_


def match_all(patterns: Mapping[Key, Pattern], types: Sequence[Type]) -> Variables:
    """What the variables stand for where these inputs have these types. Raises TypeRuleError naming the input."""
    variables: Variables = {}
    for (key, pattern), type_ in zip(patterns.items(), types, strict=True):
        if not _matches(pattern, type_, variables):
            known = [f"{k} is {_shown(v)}" for k, v in variables.items() if k in variables_of(pattern)]
            where = f", where {' and '.join(known)}" if known else ""
            raise TypeRuleError(f"input '{key.name}' is {type_}, which does not fit {pattern}{where}")
    return variables


def completed(
    patterns: Sequence[Pattern], types: Sequence[Type | None], further: Sequence[tuple[Pattern, Type]]
) -> list[Type | None]:
    """Types that fit patterns, of which some are None: those too, if the others, and `further` ones, tell the variables."""
    variables: Variables = {}
    for pattern, type_ in [*zip(patterns, types, strict=True), *further]:
        if type_ is not None:
            _matches(pattern, type_, variables)  # what does not fit is complained of where types are checked
    return [
        instance(pattern, variables) if type_ is None and variables.keys() >= set(variables_of(pattern)) else type_
        for pattern, type_ in zip(patterns, types, strict=True)
    ]


def fits(pattern: Pattern, type_: Type, variables: Variables) -> bool:
    """Whether a type fits a pattern, given what variables stand for; others may stand for anything."""
    return _matches(pattern, type_, dict(variables))


def _matches(pattern: Pattern, type_: Type, variables: Variables) -> bool:
    if isinstance(pattern, RecordType) or isinstance(type_, RecordType):
        return pattern == type_
    dtype = variables.setdefault(ANY_DTYPE, type_.dtype) if pattern.dtype == ANY_DTYPE else pattern.dtype
    if dtype != type_.dtype:
        return False
    sizes, shape = pattern.sizes, type_.shape
    if ANY_AXES in sizes:
        at = sizes.index(ANY_AXES)
        n = len(shape) - (len(sizes) - 1)
        if n < 0 or variables.setdefault(ANY_AXES, shape[at : at + n]) != shape[at : at + n]:
            return False
        sizes, shape = sizes[:at] + sizes[at + 1 :], shape[:at] + shape[at + n :]
    return len(sizes) == len(shape) and all(
        n == size if isinstance(n, int) else variables.setdefault(n, size) == size for n, size in zip(sizes, shape, strict=True)
    )


def _shown(value: object) -> str:
    return f"[{','.join(map(str, value))}]" if isinstance(value, tuple) else str(value)
