"""A module of StableHLO as plain data: what a child process has read from a file, without any of MLIR's objects.

The data is what msgpack can carry, so that it comes through a pipe as it is. Values of a function have numbers: the arguments of
its block first, then those of operations in order, with the blocks of regions numbered where their operation stands.

A module that tidu wrote has its document as JSON in `tidu.document`, where large constants are those of the module, and in
`tidu.checksum` what everything else in it comes to, whose text or bytes may be in any form. A module that somebody has changed is
read as any other. Who means to deceive can write another checksum: whether a module runs its document, `files.is_written` tells.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgpack

from tidu_cli.errors import DocumentError, LimitError
from tidu_cli.frozen import Frozen, field
from tidu_cli.graph.types import parse_type
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
        functions = [
            Function(name, public, arguments, of_results, results, _block(body))
            for name, public, arguments, of_results, results, body in plain["functions"]
        ]
        return cls(
            plain["name"], plain["attributes"], {f.name: f for f in functions}, plain.get("names", ()), plain.get("labels", {})
        )

    def operations(self) -> Iterator[Operation]:
        """All operations of all functions."""
        for function in self.functions.values():
            yield from function.operations()


def _block(plain: Sequence[Any]) -> Block:
    first, arguments, operations, results = plain
    read = [
        Operation(name, operands, start, types, attributes, [_block(b) for b in regions], place)
        for name, operands, start, types, attributes, regions, place in operations
    ]
    return Block(first, arguments, read, results)


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


DOCUMENT, CHECKSUM = "tidu.document", "tidu.checksum"
"""The attributes of a module that make a document of it."""

FEW_BYTES = 32
"""Constants of no more bytes stand in the document as they are."""

_BYTES, _CONSTANT = "tidu.bytes", "tidu.constant"
"""What stands in JSON for bytes: themselves in base64, or the number of an operation of the module that makes this constant."""

_MALFORMED = (KeyError, ValueError, TypeError, IndexError, AttributeError, RecursionError)
"""What reading claims that nobody checked may raise."""


def claims(plain: Mapping[str, Any], module: Module) -> dict[str, str]:
    """The attributes that make a document of a module, which has neither yet. `plain` is the data of the document's msgpack."""
    large = [(n, value) for n, value in _constants(module) if parse_type(value["type"]).nbytes > FEW_BYTES]
    numbers = {hashlib.sha256(_data(value)).digest(): n for n, value in large}

    def encoded(data: bytes) -> dict[str, Any]:
        number = None if len(data) <= FEW_BYTES else numbers.get(hashlib.sha256(data).digest())
        return {_BYTES: base64.b64encode(data).decode()} if number is None else {_CONSTANT: number}

    document = json.dumps(_encoded(plain, encoded), ensure_ascii=False, separators=(",", ":"))
    return {DOCUMENT: document, CHECKSUM: checksum(module, document)}


def claims_document(module: Module) -> bool:
    """Whether a module says which document it was written of."""
    return DOCUMENT in module.attributes


def claimed(module: Module) -> Any:
    """The plain data of the document that a module was written of; None if it was not, or has been changed."""
    document, digest = module.attributes.get(DOCUMENT), module.attributes.get(CHECKSUM)
    if not isinstance(document, str) or digest != checksum(module, document):
        return None
    constants = dict(_constants(module))
    try:
        return json.loads(document, object_hook=lambda fields: _decoded(fields, constants))
    except _MALFORMED:
        return None


def checksum(module: Module, document: str) -> str:
    """A digest of a document and of a module, without the names of values and the places in the text."""
    sha, packer = hashlib.sha256(), msgpack.Packer(use_bin_type=True)
    attributes = {name: value for name, value in module.attributes.items() if name not in (DOCUMENT, CHECKSUM)}
    for part in (document, module.name, _sorted(attributes), len(module.functions)):
        sha.update(packer.pack(part))
    for f in module.functions.values():
        ports = [_sorted(a) for attributes in (f.argument_attributes, f.result_attributes) for a in attributes]
        sha.update(packer.pack([f.name, f.public, ports, list(f.results)]))
        for part in _parts(f.body):
            sha.update(packer.pack(part))
    return f"sha256:{sha.hexdigest()}"


def _parts(block: Block) -> Iterator[list[Any]]:
    """What a block is, piece by piece."""
    yield [block.first, list(block.arguments), len(block.operations), list(block.results)]
    for op in block.operations:
        yield [op.name, list(op.operands), op.first, list(op.results), _sorted(op.attributes), len(op.regions)]
        for inner in op.regions:
            yield from _parts(inner)


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [[name, _sorted(value[name])] for name in sorted(value)]
    return [_sorted(part) for part in value] if isinstance(value, list) else value


def _encoded(value: Any, encoded: Callable[[bytes], object]) -> Any:
    if isinstance(value, bytes):
        return encoded(value)
    if isinstance(value, dict):
        return {name: _encoded(part, encoded) for name, part in value.items()}
    return [_encoded(part, encoded) for part in value] if isinstance(value, list) else value


def _decoded(fields: dict[str, Any], constants: Mapping[int, Mapping[str, Any]]) -> Any:
    if len(fields) != 1:
        return fields
    if _BYTES in fields:
        return base64.b64decode(fields[_BYTES])
    return _data(constants[fields[_CONSTANT]]) if _CONSTANT in fields else fields


def _data(value: Mapping[str, Any]) -> bytes:
    """The bytes of an array, of which a module may have but the one element that is repeated."""
    data: bytes = value["data"] if "data" in value else value["splat"] * parse_type(value["type"]).size
    return data


def _constants(module: Module) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The arrays that operations of a module make, by the operations' numbers."""
    for number, op in enumerate(module.operations()):
        if op.name == "stablehlo.constant":
            yield number, op.attributes["value"]
