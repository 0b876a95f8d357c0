"""Pieces of Python: expressions with their precedence, safe names, lines as black leaves them, and open sizes.

Open sizes are numbers that the first lines read from the shapes of inputs, and expressions of these.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tidu_cli.adapters.source_code import UnwrittenError
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.keys import Key
from tidu_cli.graph.open_sizes import has_open_size, names_in
from tidu_cli.graph.sizes.algebra import Name, Size, names_of, size_named, way_to_fix
from tidu_cli.graph.sizes.polynomials import bounds
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.sizing import specialized_graph

_NAMES = re.compile(r"[\w, ]+")

WIDTH = 88
"""The longest line that black makes."""

COMPARED, OR, XOR, AND, SHIFT, SUM, PRODUCT, SIGN, POWER, ATOM = range(10)
"""Levels of expressions: those of a level bind tighter than those before it."""


class Text(NamedTuple):
    """An expression. `shape` is that of its value in NumPy, which broadcasts to that of the type; a number is one of Python."""

    code: str
    level: int
    shape: tuple[int, ...]
    is_number: bool = False

    def within(self, level: int) -> str:
        """As an operand of an operator of a level."""
        return self.code if self.level >= level else f"({self.code})"


def call(code: str, shape: Sequence[int]) -> Text:
    """A call, or another atom, with a value of a shape."""
    return Text(code, ATOM, tuple(shape))


_LONGEST = 24
_TAKEN = {*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "np", "special"}
_OURS = re.compile(r"[vdk]\d+|C\d+|(body|condition|branch)(_\d+)?")
"""The names of values, derivatives, counters, functions and constants."""


def identifier(text: str, tangent: str = "t", cotangent: str = "ct") -> str:
    """A name that resembles a text, which may be anything: letters of ASCII, digits, and no name with another meaning.

    >>> [identifier(text) for text in ("loss", "x@-1", "x@-1@2", "layers.0.w", "class", "é", "")]
    ['loss', 'x_ct', 'x_ct_t2', 'layers_0_w', 'class_', 'value', 'value']
    """
    plain = re.sub(r"@(-?)(\d+)", lambda m: f"_{cotangent if m[1] else tangent}{m[2] if m[2] != '1' else ''}", text[:200])
    plain = re.sub(r"[^A-Za-z0-9]+", "_", plain).strip("_")
    plain = plain[:_LONGEST].rstrip("_") or "value"
    if not plain[0].isalpha():
        plain = f"x{plain}"
    return f"{plain}_" if plain in _TAKEN or _OURS.fullmatch(plain) else plain


_BINARY = re.compile(r"(?<=[\w)])(//|[-+*%])")
"""The operators in the text of a size but for signs."""

_SUMS = re.compile(r"(?<=[\w)]) [-+] |^-")
_ALONE = re.compile(r"\w+|(?:max|min)\([^()]*\)")


def size_text(size: Any) -> str:
    """A size as an expression: an integer, or one of the names of open sizes."""
    return str(size) if isinstance(size, int) else _BINARY.sub(r" \1 ", str(size)).replace(",", ", ")


def sized(size: Any, level: int) -> str:
    """A size as an operand of an operator of a level."""
    text = size_text(size)
    if level <= SUM or _ALONE.fullmatch(text) or (level <= PRODUCT and not _SUMS.search(text)):
        return text
    return f"({text})"


def broadcast(*shapes: Sequence[Any]) -> tuple[Any, ...]:
    """The shape that these broadcast to, as types have it that they do."""
    rank = max(map(len, shapes), default=0)
    aligned = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return tuple([next((n for n in sizes if n != 1), 1) for sizes in zip(*aligned, strict=True)])


def slice_text(begin: Any, end: Any, step: Any = 1) -> str:
    """A slice in an index; an end that is None is that of the axis."""
    first, last = "" if begin == 0 else size_text(begin), "" if end is None else size_text(end)
    more = f":{size_text(step)}" if step != 1 else ""
    if all(part.lstrip("-").replace("_", "a").isalnum() for part in (first, last, more[1:]) if part):
        return f"{first}:{last}{more}"
    text = f"{first} :{f' {last}' if last else ''}".lstrip()  # as black has it where a bound is an expression
    return f"{text}{f' {more[0]} {more[1:]}' if last else f'{more[0]} {more[1:]}'}" if more else text


class Names:
    """The names in a function: each means one thing."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)
        self._next: dict[str, int] = {}

    def new(self, base: str) -> str:
        """A name that begins like this one."""
        name, n = base, self._next.get(base, 1)
        while name in self.taken:
            n += 1
            name = f"{base}_{n}"
        self._next[base] = n
        self.taken.add(name)
        return name

    def numbered(self, letter: str) -> str:
        """The next of names such as v1, v2, …"""
        n = self._next[letter] = self._next.get(letter, 0) + 1
        return f"{letter}{n}"

    def of_keys(self, keys: Iterable[Key]) -> list[str]:
        """Names for keys."""
        return [self.new(identifier(str(key))) for key in keys]


def quoted(text: str) -> str:
    """A text as a string of Python, in printable ASCII: nothing in it ends it."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(c: str) -> str:
    n = ord(c)
    if 32 <= n < 127 and c not in '"\\':
        return c
    return "\\\\" if c == "\\" else f"\\x{n:02x}" if n < 256 else f"\\u{n:04x}" if n < 65536 else f"\\U{n:08x}"


def shape_text(shape: Sequence[int]) -> str:
    """A shape as an argument: an integer, or a tuple."""
    return size_text(shape[0]) if len(shape) == 1 else tuple_text(map(size_text, shape))


def tuple_text(parts: Iterable[str]) -> str:
    """A tuple."""
    items = list(parts)
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def laid_out(line: str, indent: int) -> list[str]:
    """A statement in lines: in one if it fits, else what is in its last brackets with a line for each part."""
    pad = " " * indent
    if len(line) + indent <= WIDTH:
        return [pad + line]
    targets, _, value = line.partition(" = ")
    if value and "," in targets and _NAMES.fullmatch(targets) and len(line.partition("(")[0]) + indent >= WIDTH:
        first, *rest = laid_out(f"____{value}", indent)  # as many letters as stand before it
        names = [f"{pad}    {name}," for name in targets.split(", ")]
        return [f"{pad}(", *names, f"{pad}) = {first[indent + 4 :]}", *rest]
    body = line.rstrip(":,")
    begin = _opening(body)
    parts = [] if begin is None else _parts(body[begin + 1 : -1])
    if begin is None or not parts:
        return [pad + line]
    inner = [text for part in parts for text in laid_out(f"{part},", indent + 4)]
    return [pad + body[: begin + 1], *inner, pad + body[-1] + line[len(body) :]]


def _brackets(text: str) -> Iterable[tuple[int, str, int]]:
    """Brackets and commas that are not within strings: their places, and how deep in brackets they stand."""
    depth, in_string, skipped = 0, False, False
    for k, c in enumerate(text):
        if skipped:
            skipped = False
        elif in_string:
            skipped, in_string = c == "\\", c != '"'
        elif c == '"':
            in_string = True
        elif c in "([{":
            yield k, c, depth
            depth += 1
        elif c in ")]}":
            depth -= 1
            yield k, c, depth
        elif c == ",":
            yield k, c, depth


def _opening(text: str) -> int | None:
    """Where the bracket opens that closes at the end of a text, None if none does."""
    if text[-1:] not in (")", "]", "}"):
        return None
    return [k for k, c, depth in _brackets(text) if not depth and c in "([{"][-1]


def _parts(text: str) -> list[str]:
    cuts = [k for k, c, depth in _brackets(text) if c == "," and not depth]
    ends = [*cuts, len(text)]
    return [part for begin, end in zip([0, *(k + 1 for k in cuts)], ends, strict=True) if (part := text[begin:end].strip())]


def named_sizes(graph: Graph, primitives: PrimitiveSet, taken: Sequence[str]) -> tuple[Graph, dict[str, Name]]:
    """The graph with sizes that have names of Python, and these; raises UnwrittenError for one that no input says."""
    names, own = names_in(graph), Names({*taken, *(identifier(str(i.key)) for i in graph.inputs)})
    changed = {text: replace(name, text=own.new(identifier(text))) for text, name in sorted(names.items())}
    known = {name for i in graph.inputs for n in getattr(i.type, "shape", ()) for name in names_of(n)}
    for text, name in names.items():
        if name not in known:
            raise UnwrittenError(f"no input says what the size {text} is; give it a number first: ", way_to_fix(text))
    others = {text: size_named(name) for text, name in changed.items() if text != name.text}
    return (specialized_graph(graph, others, primitives) if others else graph), {n.text: n for n in changed.values()}


def read_sizes(graph: Graph, parameters: Sequence[str], names: Mapping[str, Name]) -> Iterator[str | tuple[str, str]]:
    """Statements that read sizes from the shapes of inputs, and pairs of a condition and what to raise where it holds.

    Raises UnwrittenError for a size that they do not say.
    """
    known: set[str] = set()
    pending = [
        (p, k, n, i.type.shape)  # type: ignore[union-attr]
        for p, i in zip(parameters, graph.inputs, strict=True)
        for k, n in enumerate(i.type.shape if has_open_size(i.type) else ())  # type: ignore[union-attr]
        if isinstance(n, Size)
    ]
    checked: dict[str, tuple[Any, ...]] = {}
    while pending:
        later = []
        for parameter, axis, size, shape in pending:
            unknown = {name.text for name in names_of(size)} - known
            name = next(iter(unknown), "")
            solution = _solution(size, name, f"{parameter}.shape[{axis}]") if len(unknown) == 1 else None
            if solution is not None:
                known.add(name)
                yield f"{name} = {solution[0]}"
                yield from _bounds(parameter, names[name])
            elif unknown:
                later.append((parameter, axis, size, shape))
            if not unknown or (solution is not None and not solution[1]):
                checked[parameter] = shape
        if len(later) == len(pending):
            name = sorted({name.text for _, _, size, _ in later for name in names_of(size)} - known)[0]
            raise UnwrittenError(f"no input says what the size {name} is; give it a number first: ", way_to_fix(name))
        pending = later
    for parameter in parameters:
        if parameter in checked:
            shape_ = tuple_text(map(size_text, checked[parameter]))
            told = f"{parameter} has shape {{{parameter}.shape}}, expected {shape_} = {{{shape_}}}"
            yield f"{parameter}.shape != {shape_}", told


def _solution(size: Size, name: str, code: str) -> tuple[str, bool] | None:
    """The expression of a name where a size, with names that are known but for this, is what a code gives; whether it is exact.

    None where the size has the name within a quotient, or more than once.
    """
    own = [(monomial, c) for monomial, c in size.terms if any(n.text == name for a, _ in monomial for n in _names(a))]
    if len(own) != 1:
        return None
    ((monomial, count),) = own
    atoms = [(atom, power) for atom, power in monomial if isinstance(atom, Name) and atom.text == name]
    if len(atoms) != 1 or atoms[0][1] != 1 or any(name == n.text for a, _ in monomial if a != atoms[0][0] for n in _names(a)):
        return None
    atom = atoms[0][0]
    rest = size - Size(tuple(own))
    factor = Size(((others, count),)) if (others := tuple(p for p in monomial if p[0] != atom)) else count
    if isinstance(factor, Size) and bounds(factor)[0] <= 0:
        return None
    level = PRODUCT
    if rest != 0:
        negative = count < 0
        code, level = (f"{sized(rest, SUM)} - {code}" if negative else _minus(code, rest)), SUM
        factor = -factor if negative else factor
    elif count < 0:
        return None
    if not isinstance(factor, int) or factor % atom.multiple:
        times, divisor = atom.multiple, factor
    else:
        times, divisor = 1, factor // atom.multiple
    if divisor == times:
        return code, True
    if times != 1:
        code, level = f"{f'({code})' if level < PRODUCT else code} * {times}", PRODUCT
    return f"{f'({code})' if level < PRODUCT else code} // {sized(divisor, PRODUCT + 1)}", False


def _minus(code: str, rest: Any) -> str:
    """A code less a size."""
    if isinstance(rest, int):
        return f"{code} - {rest}" if rest > 0 else f"{code} + {-rest}"
    return f"{code} - {sized(rest, SUM + 1)}"


def _names(atom: Any) -> Iterator[Name]:
    yield from (atom,) if isinstance(atom, Name) else (*names_of(atom.a), *names_of(atom.b))


def _bounds(parameter: str, name: Name) -> Iterator[tuple[str, str]]:
    n = name.text
    told = f"{parameter}: {n} is {{{n}}}, and it is"
    if name.least > 0:
        yield f"{n} < {name.least}", f"{told} at least {name.least}"
    if name.most is not None:
        yield f"{n} > {name.most}", f"{told} at most {name.most}"
    if name.multiple > 1:
        yield f"{n} % {name.multiple} != 0", f"{told} a multiple of {name.multiple}"
