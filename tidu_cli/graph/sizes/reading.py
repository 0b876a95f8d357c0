"""Sizes from text, and the field `sizes` of documents, which says what names in them stand for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

from tidu_cli.errors import TiduError, TransformError, TypeRuleError, TypeTextError
from tidu_cli.graph.sizes.algebra import EXTREMES, NAME, Name, Size, of_part, size_named
from tidu_cli.graph.sizes.names import bounds_in_words, require_admitted, way_out, way_to_be_at_least
from tidu_cli.graph.sizes.open import say_ways_out
from tidu_cli.graph.sizes.polynomials import MAX_TEXT, bounds

MAX_NAMES = 64
"""As many names of sizes as a document may have."""

MOST = 2**62
"""Bounds of names, and numbers in sizes, are below it."""

MAX_BRACKETS = 20
"""How deep brackets may nest in the text of a size."""

_TOKEN = re.compile(rf"{NAME}|[0-9]+|//|[-+*%(),]", re.ASCII)
_NAME = re.compile(NAME, re.ASCII)
_FIELDS = ("min", "max", "multiple_of")

_given: ContextVar[tuple[Mapping[str, int | str], dict[str, TiduError | None]]] = ContextVar("sizes for names", default=({}, {}))
_declared: ContextVar[tuple[Mapping[str, Name], set[str]]] = ContextVar("declared sizes", default=({}, set()))


def declaring(names: Mapping[str, Name]) -> AbstractContextManager[set[str]]:
    """Within it, sizes that are read have names with these bounds, where they are among them. Yields those not read yet."""
    return _reading_with(_declared, names, set(names))


def giving(sizes: Mapping[str, int | str]) -> AbstractContextManager[dict[str, TiduError | None]]:
    """Within it, these sizes, numbers or text, stand for names as they are read. Yields those read, and why one is refused."""
    return _reading_with(_given, sizes, {})


@contextmanager
def _reading_with(variable: ContextVar[Any], by_name: Mapping[str, Any], noted: Any) -> Iterator[Any]:
    token = variable.set((by_name, noted))
    try:
        yield noted
    finally:
        variable.reset(token)


def parse_sizes(text: str) -> list[Any]:
    """Read the sizes of a shape, with commas between them. Raises TypeTextError."""
    sizes, depth = [""], 0
    for part in re.split(r"([(),])", text):
        depth += (part == "(") - (part == ")")
        if part == "," and not depth:
            sizes.append("")
        else:
            sizes[-1] += part
    return [parse_extent(size) for size in sizes]


def size_from_file(value: Any, least: int) -> Any:
    """A size as attrs hold it, or its text. Raises TypeTextError for one that may be less than this, if it is 0 or more."""
    if not isinstance(value, str | Size):
        at_least = f" of at least {least}" if least >= 0 else ""
        raise TypeTextError(f'expected a whole number{at_least}, or the text of a size such as "2*N"')
    size = parse_size(value) if isinstance(value, str) else within_limits(value)
    if least >= 0 and bounds(size)[0] < least:
        raise _too_small(size, least)
    return size


def parse_extent(text: str) -> Any:
    """Read the size of an axis, which is not less than 0. Raises TypeTextError."""
    return size_from_file(text, 0)


def _too_small(size: Any, least: int) -> TypeTextError:
    if isinstance(size, int):
        return TypeTextError(f"the size {size} is less than {least}")
    return TypeTextError(f"the size {size} may be less than {least}", way_to_be_at_least(size, least))


def parse_size(text: str) -> Any:
    """Read a size: an int or a `Size`. Raises TypeTextError for text that is none, or for a size beyond the limits."""
    if len(text) > MAX_TEXT:
        raise TypeTextError(f"the size {text[:40]}... has more than {MAX_TEXT} characters")
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != text or not tokens:
        raise _malformed(text)
    parser = _Parser(text, tokens)
    try:
        size = parser.sum(0)
    except TypeRuleError as error:
        raise TypeTextError(f"the size {text[:60]!r}: {error}") from None
    if parser.tokens:
        raise _malformed(text)
    return within_limits(size)


def within_limits(size: Any) -> Any:
    """The size itself. Raises TypeTextError for one whose text no file may have."""
    try:
        if isinstance(size, Size):
            size.require_text()
    except TypeRuleError as error:
        raise TypeTextError(f"the size {str(size)[:60]!r}: {error}") from None
    return size


def _malformed(text: str) -> TypeTextError:
    return TypeTextError(
        f"the size {text[:60]!r} is not an integer or an expression of names, such as N, 2*N+1, N//2, N%2, max(M,N) or min(M,N)"
    )


class _Parser:
    """Reads a size from the left. Recurses as deep as brackets nest."""

    def __init__(self, text: str, tokens: list[str]) -> None:
        self.text, self.tokens = text, tokens[::-1]

    def take(self, *tokens: str) -> str:
        return self.tokens.pop() if self.tokens and self.tokens[-1] in tokens else ""

    def sum(self, depth: int) -> Any:
        if depth > MAX_BRACKETS:
            raise TypeTextError(f"the size {self.text[:40]!r} nests deeper than {MAX_BRACKETS} brackets")
        size = -self.product(depth) if self.take("-") else self.product(depth)
        while sign := self.take("+", "-"):
            size = size + self.product(depth) if sign == "+" else size - self.product(depth)
        return size

    def product(self, depth: int) -> Any:
        size = self.factor(depth)
        while op := self.take("*", "//", "%"):
            by = self.factor(depth)
            size = size * by if op == "*" else of_part(op, size, by)
        return size

    def factor(self, depth: int) -> Any:
        if self.take("("):
            size = self.sum(depth + 1)
            self.due(")")
            return size
        if function := self.take(*EXTREMES):
            self.due("(")
            size = self.sum(depth + 1)
            while self.take(","):
                size = of_part(function, size, self.sum(depth + 1))
            self.due(")")
            return size
        token = self.tokens.pop() if self.tokens else ""
        if token[:1].isdecimal():
            if len(token) > 19 or int(token) >= MOST:
                raise TypeTextError(f"the size {self.text[:60]!r} has a number of 2**62 or more")
            return int(token)
        if not _NAME.fullmatch(token):
            raise _malformed(self.text)
        (names, unread), (given, met) = _declared.get(), _given.get()
        unread.discard(token)
        name = names.get(token) or Name(token)
        if token in given:
            met[token] = None
            try:
                with giving({}):
                    return size_for(name, given[token])
            except TiduError as error:
                met[token] = error
                raise
        return size_named(name)

    def due(self, token: str) -> None:
        if not self.take(token):
            raise _malformed(self.text)


def names_from_file(sizes: object) -> dict[str, Name]:
    """What names stand for: `{"N": {"min": 2, "max": 64, "multiple_of": 8}}`. Raises TypeTextError."""
    if not isinstance(sizes, dict):
        raise TypeTextError('sizes are an object of names, such as {"N": {"min": 2, "multiple_of": 8}}')
    if len(sizes) > MAX_NAMES:
        raise TypeTextError(f"sizes: {len(sizes)} names; the most are {MAX_NAMES}")
    return {name: name_from_file(name, bounds) for name, bounds in sizes.items()}


def name_from_file(name: str, given: object) -> Name:
    """A name with its bounds. Raises TypeTextError."""
    place = f"sizes: '{name[:60]}'"
    check_name(name)
    if not isinstance(given, dict) or not set(given) <= set(_FIELDS):
        known = ", ".join(_FIELDS)
        raise TypeTextError(f'{place}: its bounds are an object of some of {known}, such as {{"min": 2, "multiple_of": 8}}')
    for field, value in given.items():
        least = 0 if field == "min" else 1
        if type(value) is not int or not least <= value < MOST:
            raise TypeTextError(f"{place}: '{field}' is a whole number of at least {least} and below 2**62")
    read = Name(name, given.get("min", 1), given.get("max"), given.get("multiple_of", 1))
    low, high = read.bounds
    if low > high:
        raise TypeTextError(f"{place}: no size is {bounds_in_words(read)}")
    return read


def size_for(name: Name, given: Any) -> Any:
    """The size, or its text, that was given for a name. Raises TypeTextError, and TransformError for what bounds do not admit."""
    try:
        size = parse_extent(given) if isinstance(given, str) else given
    except TypeTextError as error:
        raise TypeTextError(f"{name.text}={given[:60]}: {error}") from None
    try:
        require_admitted(name, size)
    except TiduError as error:
        raise TransformError(f"{name.text}={size}: {error}") from None
    return size


def check_name(name: object) -> None:
    """Raises TypeTextError for what is not a name of a size."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in EXTREMES or len(name) > MAX_TEXT:
        raise TypeTextError(
            f"sizes: {str(name)[:60]!r} is not a name; names are of letters, digits and _, do not begin with a digit,"
            f" and are not {' or '.join(EXTREMES)}"
        )


say_ways_out(way_out)
