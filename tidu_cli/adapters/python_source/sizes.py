"""Open sizes in NumPy source: numbers that the first lines read from the shapes of inputs, and expressions of these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tidu_cli.adapters.python_source.text import PRODUCT, SUM, Names, identifier, size_text, sized, tuple_text
from tidu_cli.adapters.written_only import UnwrittenError
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.open_sizes import has_open_size, names_in
from tidu_cli.graph.sizes.algebra import Name, Size, names_of, size_named, way_to_fix
from tidu_cli.graph.sizes.bounds import bounds
from tidu_cli.rules.specializing import specialized_graph
from tidu_cli.rules.vocabulary import PrimitiveSet


def named(graph: Graph, primitives: PrimitiveSet, taken: Sequence[str]) -> tuple[Graph, dict[str, Name]]:
    """The graph with sizes that have names of Python, and these; raises UnwrittenError for one that no input says."""
    names, own = names_in(graph), Names({*taken, *(identifier(str(i.key)) for i in graph.inputs)})
    changed = {text: replace(name, text=own.new(identifier(text))) for text, name in sorted(names.items())}
    known = {name for i in graph.inputs for n in getattr(i.type, "shape", ()) for name in names_of(n)}
    for text, name in names.items():
        if name not in known:
            raise UnwrittenError(f"no input says what the size {text} is; give it a number first: ", way_to_fix(text))
    others = {text: size_named(name) for text, name in changed.items() if text != name.text}
    return (specialized_graph(graph, others, primitives) if others else graph), {n.text: n for n in changed.values()}


def read(graph: Graph, parameters: Sequence[str], names: Mapping[str, Name]) -> Iterator[str | tuple[str, str]]:
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
