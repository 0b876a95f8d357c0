"""A module of StableHLO as plain data: what a child process has read from a file, without any of MLIR's objects.

The data is what msgpack can carry, so that it comes through a pipe as it is. Values of a function have numbers: the arguments of
its block first, then those of operations in order, with the blocks of regions numbered where their operation stands.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tidu_cli.errors import DocumentError, LimitError
from tidu_cli.frozen import Frozen, field
from tidu_cli.limits import ENDLESS, limits, more_than, written_out


class Operation(Frozen):
    """An operation, such as stablehlo.add.

    `operands` are numbers of values and `results` the types of those it makes, the first of which has the number `first`.
    Types of arrays are our own texts, such as f64[3]; others as MLIR writes them. `place` is where it stands: model.mlir's line,
    or what the program that wrote the file says.
    """

    name: str
    operands: Sequence[int]
    first: int
    results: Sequence[str]
    attributes: Mapping[str, Any]
    regions: Sequence[Block]
    place: str


class Block(Frozen):
    """Operations in order. `arguments` are types of values, the first of number `first`; `results` numbers of what it returns."""

    first: int
    arguments: Sequence[str]
    operations: Sequence[Operation]
    results: Sequence[int]


class Function(Frozen):
    """A function; attributes are those of the arguments and results, in order."""

    name: str
    public: bool
    argument_attributes: Sequence[Mapping[str, Any]]
    result_attributes: Sequence[Mapping[str, Any]]
    results: Sequence[str]
    body: Block

    def operations(self) -> Iterator[Operation]:
        """All operations, those of regions after the one that they are of."""
        todo = list(reversed(self.body.operations))
        while todo:
            yield (operation := todo.pop())
            todo += [inner for block in reversed(operation.regions) for inner in reversed(block.operations)]


class Module(Frozen):
    """A module. `names` are those that a file of jax.export has for arguments, where it is one.

    `labels` are what the program that it was made of calls the arguments of public functions, where they tell.
    """

    name: str
    attributes: Mapping[str, Any]
    functions: Mapping[str, Function]
    names: Sequence[str] = ()
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Module:
        """From what `parsing.as_plain` gives."""
        functions = [_function(*f) for f in plain["functions"]]
        return cls(
            plain["name"], plain["attributes"], {f.name: f for f in functions}, plain.get("names", ()), plain.get("labels", {})
        )

    def operations(self) -> Iterator[Operation]:
        """All operations of all functions."""
        for function in self.functions.values():
            yield from function.operations()


def _function(name: str, public: bool, arguments: Any, of_results: Any, results: list[str], body: Sequence[Any]) -> Function:
    return Function(name, public, arguments, of_results, results, _block(body))


def _block(plain: Sequence[Any]) -> Block:
    first, arguments, operations, results = plain
    return Block(first, arguments, [_operation(*o) for o in operations], results)


def _operation(
    name: str, operands: list[int], first: int, results: list[str], attributes: dict[str, Any], regions: list[Any], place: str
) -> Operation:
    return Operation(name, operands, first, results, attributes, [_block(b) for b in regions], place)


CALLEES = {"func.call": "callee", "stablehlo.composite": "decomposition"}
"""By the operations that call a function, the attribute that names it."""


def require_written_out(module: Module, main: Function) -> None:
    """Raises LimitError if a function stands for more operations than the limit allows beyond those that are written.

    Linear in the module. Functions that call themselves, or that are not there, are for the importer to refuse.
    """
    bodies = {name: list(function.operations()) for name, function in module.functions.items()}
    callees = {name: [str(o.attributes.get(CALLEES[o.name])) for o in body if o.name in CALLEES] for name, body in bodies.items()}
    size = written_out(main.name, {name: len(body) for name, body in bodies.items()}, callees)
    allowed = limits().expansion
    if size > sum(map(len, bodies.values())) + allowed:
        told = f"{size:,} operations" if size < ENDLESS else "more operations than can be counted"
        raise LimitError(
            f"@{main.name}: its functions, written out where they are called, stand for {told}, {more_than('expansion', allowed)}"
        )


# The child process that parses modules: where MLIR ends it, a file is refused, and this process goes on.


N_FIRST = 1 << 16
"""As many bytes tell what a file is."""

SECONDS = 600
"""How long the child may take."""

_TEXT = re.compile(rb"(?:\s|//[^\n]*\n)*(?:module\b|func\.func\b|\"?builtin\.module\b|#[\w.]+\s*=|![\w.]+\s*=)")


def kind_of(first: bytes) -> str | None:
    """What a file is by its first bytes: text or bytecode of MLIR, a file of jax.export, or None of these."""
    if first.startswith(b"ML\xefR"):
        return "bytecode"
    if _TEXT.match(first):
        return "text"
    # A flatbuffer: where its root is, and in it the table of which fields there are. It has the bytecode somewhere.
    root = int.from_bytes(first[:4], "little")
    if 4 <= root < 256 and b"ML\xefR" in first:
        return "export"
    return None


def parsed(data: bytes, kind: str) -> Module:
    """The module in some bytes. Raises DocumentError, with the line or the place that is wrong where MLIR says it."""
    import msgpack

    command = [sys.executable, "-m", "tidu_cli.adapters.stablehlo.parsing", kind]
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise DocumentError(f"is a module that takes longer than {SECONDS} seconds to parse") from None
    if done.returncode < 0 or done.returncode == 3221225477:
        raise DocumentError("is a damaged module, at which the parser of MLIR ended (it was a process of its own)")
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise DocumentError(f"is a module that MLIR's parser failed at: {words}")
    plain: dict[str, Any] = msgpack.unpackb(done.stdout, strict_map_key=False)
    if "missing" in plain:
        what = "files of jax.export need flatbuffers" if plain["missing"] == "flatbuffers" else "modules of StableHLO need jaxlib"
        raise DocumentError(f"{what}: pip install 'tidu[jax]'")
    if "error" in plain:
        raise DocumentError(plain["error"])
    return Module.from_plain(plain)
