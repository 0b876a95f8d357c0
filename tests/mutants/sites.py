"""Where faults go: expressions of the sources, what stands for each, and a seeded choice among them.

A fault keeps lines where they are: `((MUTATED) if mutant_on(K) else (ORIGINAL))` stands for ORIGINAL.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOMS = ("rules", "transforms", "readers", "engines", "writers")
KINDS = ("sign", "operand", "bound", "mask", "term", "axis", "n_results")

_FOLDERS = dict.fromkeys(("rules", "lax", "control_flow"), "rules") | dict.fromkeys(("custom", "transforms"), "transforms")
_FOLDERS |= {"runtime": "engines"}
_AXES = {"axis", "axes", "dim", "dims", "dimension", "dimensions"}
_SWAPPED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)
_PAIRS = ((ast.Add, ast.Sub), (ast.And, ast.Or), (ast.BitAnd, ast.BitOr), (ast.Lt, ast.LtE), (ast.Gt, ast.GtE))
_OTHER = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])}
_SHOWN = re.compile(r"__repr__|__str__|describe|message|complain|_said|_text|_shown")
"""Functions that write for people: their words are no arithmetic."""
_LIMIT = re.compile(r"_?[A-Z][A-Z0-9_]+$")
"""Constants such as _MAX_NODES: from which size on another way to the same result is taken."""


@dataclass(frozen=True)
class Mutant:
    """A fault: the bytes from `start` to `end` of a file, of a certain kind, and what stands for them."""

    path: str
    line: int
    start: int
    end: int
    kind: str
    original: str
    mutated: str

    def overlaps(self, other: Mutant) -> bool:
        """Whether both change the same bytes of a file."""
        return self.path == other.path and self.start < other.end and other.start < self.end

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.kind}: {' '.join(self.original.split())} -> {self.mutated}"


def chosen(root: Path, n: int, seed: int) -> list[Mutant]:
    """A seeded choice of n mutants of a tree, as many in each room, and in a room of each kind, as there are."""
    draw = random.Random(seed)
    mutants: list[Mutant] = []
    by_room: dict[str, list[Path]] = {room: [] for room in ROOMS}
    for path in sorted((root / "tidu_cli").rglob("*.py")):
        if room := room_of(path.relative_to(root / "tidu_cli")):
            by_room[room].append(path)
    for number in range(n):
        room, first = ROOMS[number % len(ROOMS)], number // len(ROOMS)
        paths = draw.sample(by_room[room], len(by_room[room]))
        kinds = [KINDS[(first + k) % len(KINDS)] for k in range(len(KINDS))]
        candidates = (_of_kind(root, path, kind, mutants, draw) for kind in kinds for path in paths)
        mutants.append(next(mutant for mutant in candidates if mutant is not None))
    return mutants


def _of_kind(root: Path, path: Path, kind: str, taken: Sequence[Mutant], draw: random.Random) -> Mutant | None:
    able = [m for m in mutants_of_file(root, path) if m.kind == kind and not any(map(m.overlaps, taken))]
    return draw.choice(able) if able else None


def room_of(path: Path) -> str | None:
    """The room of a module of tidu_cli; None for those in which no faults are put."""
    if path.parts[0] == "formats":
        return "writers" if "writ" in str(path) else "readers"
    return _FOLDERS.get(path.parts[0])


@cache
def mutants_of_file(root: Path, path: Path) -> list[Mutant]:
    """All mutants of a file."""
    return list(mutants_of(path.read_text(), str(path.relative_to(root))))


def mutants_of(source: str, path: str = "") -> Iterator[Mutant]:
    """All mutants of a source."""
    lines = source.encode().splitlines(keepends=True)
    starts = [sum(map(len, lines[:n])) for n in range(len(lines))]
    tree = ast.parse(source)
    of_tables = [
        n.value.body
        for n in ast.walk(tree)
        if isinstance(n, ast.keyword) and isinstance(n.value, ast.Lambda) and n.arg == "n_results"
    ]
    faults = [("n_results", body, _plus(body)) for body in of_tables]
    for kind, place, mutated in [*faults, *(fault for node in _evaluated(tree, False) for fault in _faults(node))]:
        if any(isinstance(n, ast.Yield | ast.YieldFrom | ast.Await | ast.NamedExpr | ast.JoinedStr) for n in ast.walk(place)):
            continue  # what stands twice may not assign; the places in f-strings are not known before Python 3.12
        assert place.end_lineno is not None and place.end_col_offset is not None
        start, end = starts[place.lineno - 1] + place.col_offset, starts[place.end_lineno - 1] + place.end_col_offset
        yield Mutant(path, place.lineno, start, end, kind, source.encode()[start:end].decode(), ast.unparse(mutated))


def rewritten(source: str, mutants: dict[int, Mutant]) -> str:
    """A source with these mutants, by their numbers, behind switches."""
    data = source.encode()
    for number, m in sorted(mutants.items(), key=lambda item: -item[1].start):
        switch = f"(({m.mutated}) if mutant_on({number}) else ({m.original}))"
        data = data[: m.start] + switch.encode() + data[m.end :]
    ast.parse(data)
    return data.decode()


def _evaluated(node: ast.AST, inside: bool) -> Iterator[ast.expr]:
    """The expressions that calls of a module's functions evaluate, but for those that only make a message."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr) or (isinstance(node, ast.FunctionDef) and _SHOWN.search(node.name)):
        return
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("Error", "Warning", "Finding", "warn")):
        return
    if inside and isinstance(node, ast.expr):
        yield node
    if isinstance(node, ast.FunctionDef):  # not its decorators, defaults and annotations
        children: Sequence[ast.AST] = node.body
    elif isinstance(node, ast.Lambda):
        children = [node.body]
    elif isinstance(node, ast.AnnAssign):
        children = [node.value] if node.value else []
    else:
        children = list(ast.iter_child_nodes(node))
    for child in children:
        yield from _evaluated(child, inside or isinstance(node, ast.FunctionDef | ast.Lambda))


def _faults(node: ast.expr) -> Iterator[tuple[str, ast.expr, ast.expr]]:
    """The faults at an expression: their kind, the expression that is replaced, and by what."""
    match node:
        case ast.BinOp() if not any(isinstance(side, ast.List | ast.Tuple) or _is_text(side) for side in (node.left, node.right)):
            yield from (("sign", node, other) for other in _with_other(node, ast.Add | ast.Sub))
            yield from (("mask", node, other) for other in _with_other(node, ast.BitAnd | ast.BitOr))
            if isinstance(node.op, _SWAPPED):
                yield "operand", node, ast.BinOp(node.right, node.op, node.left)
            if isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
                yield "term", node, node.left
        case ast.UnaryOp(ast.USub(), operand) if not isinstance(operand, ast.Constant):
            yield "sign", node, operand
        case ast.UnaryOp(ast.Not(), operand):
            yield "mask", node, operand
        case ast.BoolOp():
            yield "mask", node, ast.BoolOp(_OTHER[type(node.op)](), node.values)
        case ast.IfExp():
            yield "mask", node, ast.IfExp(node.test, node.orelse, node.body)
        case ast.Compare(left, [ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE() as op], [right]) if not _is_limit(node):
            yield "bound", node, ast.Compare(left, [_OTHER[type(op)]()], [right])
            yield from (("bound", side, _plus(side)) for side in (left, right) if _is_number(side))
        case ast.Slice(lower, upper):
            yield from (("bound", side, _plus(side)) for side in (lower, upper) if side is not None and _is_number(side))
        case ast.Call(func, [condition, a, b], []) if ast.unparse(func).endswith(("where", "select")):
            yield "mask", node, ast.Call(func, [condition, b, a], [])
        case ast.Subscript(ast.Name("n_results") | ast.Attribute(attr="n_results"), _, ast.Load()):
            yield "n_results", node, _plus(node)
    if isinstance(node, ast.Call):
        if ast.unparse(node.func).endswith(".n_results"):
            yield "n_results", node, _plus(node)
        for keyword in node.keywords:
            if keyword.arg in _AXES and (_is_number(keyword.value) or isinstance(keyword.value, ast.Name | ast.BinOp)):
                yield "axis", keyword.value, _plus(keyword.value)


def _with_other(node: ast.BinOp, ops: object) -> Iterator[ast.BinOp]:
    if isinstance(node.op, ops):
        yield ast.BinOp(node.left, _OTHER[type(node.op)](), node.right)


def _plus(node: ast.expr) -> ast.expr:
    """One more; of a negative number one less, since axes count from the end."""
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    return ast.BinOp(node, ast.Sub() if negative else ast.Add(), ast.Constant(1))


def _is_number(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant) and type(inner.value) is int


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _is_limit(node: ast.expr) -> bool:
    return any(_LIMIT.match(n.id) for n in ast.walk(node) if isinstance(n, ast.Name))
