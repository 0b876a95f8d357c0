"""Files of StableHLO as documents, and documents as files.

Modules that tidu wrote are read as the documents that they were, others operation by operation. What is written is text, or a
portable artifact, which later and earlier versions of programs read, too. `remarks` compares a module with the document that it
claims to be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgpack

from tidu_cli.adapters.stablehlo.module import N_FIRST, Module, checksum, claimed, claims, claims_document, kind_of, parsed
from tidu_cli.adapters.stablehlo.parsing import as_plain
from tidu_cli.adapters.stablehlo.reading.equivalents import lost_rules
from tidu_cli.adapters.stablehlo.reading.importer import import_module
from tidu_cli.adapters.stablehlo.text import UnwrittenError, package
from tidu_cli.adapters.stablehlo.writer import module_text
from tidu_cli.checking.numeric.trials import VERIFIED, Agreement, against_graph
from tidu_cli.errors import ArgumentError, DocumentError, LimitError, Remedy, TiduError
from tidu_cli.formats.files import one_line
from tidu_cli.formats.msgpack import pieces
from tidu_cli.formats.nodes.listed import GraphWriter
from tidu_cli.formats.write import bindings, heading
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Document
from tidu_cli.graph.large import no_collection
from tidu_cli.port_data import FromPlain, Imported, Remarks
from tidu_cli.transforms.materialize import materialize

FEW_NODES = 100
"""Documents of no more nodes are written into modules so that people can read them."""


def stablehlo_text(document: Document) -> bytes:
    """The text of a document's module, the same for the same document. Raises UnwrittenError, which names graph and node."""
    jax = package()
    text = _text(document)
    with jax.interpreters.mlir.make_ir_context():
        module = _parsed(text)
        _claim(module, document)
        return f"{module.operation.get_asm(assume_verified=True)}".encode()


def is_written(document: Document, module: Module) -> bool:
    """Whether a module is what is written of a document, as text or as an artifact: the same but for names, places and claims.

    Raises UnwrittenError for a document that is not written, and DocumentError without JAX.
    """
    jax = package()
    text, digest = _text(document), checksum(module, "")
    with jax.interpreters.mlir.make_ir_context() as context, no_collection():
        from jaxlib.mlir.dialects import stablehlo

        written = _parsed(text)
        if _checksum(written) == digest:
            return True
        artifact = stablehlo.deserialize_portable_artifact(context, _serialized(written, _version(None)))
        return _checksum(artifact) == digest


def _checksum(module: Any) -> str:
    return checksum(Module.from_plain(as_plain(module, places=False)), "")


def stablehlo_artifact(document: Document, version: str | None = None) -> bytes:
    """The bytes of a portable artifact, which programs read that have this version of StableHLO or a later one. Raises likewise.

    The default is a version that is twelve weeks old. Raises ArgumentError for versions that are not written.
    """
    version = _version(version)
    text = _text(document)
    with package().interpreters.mlir.make_ir_context() as context:
        from jaxlib.mlir.dialects import stablehlo

        module = _parsed(text)
        # What is read of it differs from what is written: operations of CHLO are others by then.
        read = stablehlo.deserialize_portable_artifact(context, _serialized(module, version))
        _claim(read, document)
        data: bytes = stablehlo.serialize_portable_artifact(read, version)
        return data


def _text(document: Document) -> str:
    try:
        return module_text(document)
    except RecursionError:  # of JAX, which lowers graphs within graphs by functions within functions
        what = "graphs within graphs nest deeper than JAX writes modules of; write it with "
        raise UnwrittenError(what, Remedy("format", "msgpack")) from None


def _version(version: str | None) -> str:
    """The version that is asked for, or the default."""
    package()
    from jaxlib.mlir.dialects import stablehlo

    if version is None:
        weeks = stablehlo.StablehloCompatibilityRequirement.WEEK_12
        return str(stablehlo.get_version_from_compatibility_requirement(weeks))
    oldest, newest = stablehlo.get_minimum_version(), stablehlo.get_current_version()
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9}){2}", version) or not _numbers(oldest) <= _numbers(version) <= _numbers(newest):
        raise ArgumentError(f"versions of StableHLO from {oldest} to {newest} are written here, such as 1.0.0, and not {version!r}")
    return version


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _parsed(text: str) -> Any:
    from jaxlib.mlir import ir

    try:
        return ir.Module.parse(text)  # which verifies it, too
    except ir.MLIRError as error:
        raise UnwrittenError(f"MLIR refuses what is written, which should not be: {' '.join(str(error).split())}") from None


def _claim(module: Any, document: Document) -> None:
    """Give a module the attributes that make a document of it."""
    from jaxlib.mlir import ir

    with no_collection():
        attributes = claims(_plain(document), Module.from_plain(as_plain(module, places=False)))
    for name, value in attributes.items():
        module.operation.attributes[name] = ir.StringAttr.get(value)


def _plain(document: Document) -> Any:
    """The data of a document, arrays as bytes."""
    few = sum(graph.n_nodes for graph in document.graphs) <= FEW_NODES
    writers = [GraphWriter(document, graph, binary=True, types=False, listed=few) for graph in document.graphs]
    data = b"".join(pieces(heading(document), writers, bindings(document), iter))
    return msgpack.unpackb(data, strict_map_key=False)


def _serialized(module: Any, version: str) -> bytes:
    from jaxlib import _jax

    try:
        data: bytes = _jax.mlir.serialize_portable_artifact(module, version, False)
    except Exception as error:
        reason = " ".join(str(error).split())
        later = Remedy("target_version", python="target_version")
        raise UnwrittenError(f": StableHLO {version} has no place for it: {reason}; choose a later ", later) from None
    return data


_LINE = re.compile(r"\d+:\d+: ")
_NO_LINE = "0:0: "  # MLIR's, of bytecode

CHANGED = "it has been changed since tidu wrote it, so it is read by what it runs, without roles and passes"


def read_stablehlo(data: bytes, kind: str, where: str, from_plain: FromPlain | None = None) -> Imported:
    """The document of a module, text, bytecode or a file of jax.export, as `module.kind_of` tells.

    With `from_plain` a module that tidu wrote is the document that it was, by its own word. Raises DocumentError, one line that
    begins with `where` and the line in it, and names the operation; LimitError.
    """
    with _errors_of(where):
        module = parsed(data, kind)
        if not claims_document(module):
            return Imported(import_module(module), {}, (note,) if (note := lost_rules(module)) else ())
        if from_plain is None:
            return Imported(import_module(module), {})
        if own := _own(module, from_plain):
            way = f"tidu check compares them, and {Remedy('plain', True, python='load(file, plain=True)')} reads what it runs"
            note = f"it is read as the document that it claims to be, which was not compared with what it runs; {way}"
            return Imported(own, {}, (note,), "unverified")
        return Imported(import_module(module), {}, (CHANGED,), "changed")


@contextmanager
def _errors_of(where: str) -> Iterator[None]:
    try:
        yield
    except TiduError as error:
        raise (type(error) if isinstance(error, LimitError) else DocumentError)(_placed(where, str(error))) from None


def _own(module: Module, from_plain: FromPlain) -> Document | None:
    plain = claimed(module)
    try:
        return None if plain is None else from_plain(plain)
    except TiduError:
        return None


def _placed(where: str, message: str) -> str:
    message = message.removeprefix(_NO_LINE)
    return one_line(f"{where}:{message}" if _LINE.match(message) else f"{where}: {message}")


# What `tidu check` says of a module that claims to be a document: whether that is what it runs.


def remarks(data: bytes, where: str, imported: Imported, seed: int) -> Remarks:
    """What is known of a module's claim, and what is wrong with it. Raises TiduError for a module that is not read."""
    if imported.claim != "unverified":
        return Remarks({"claims": f"not followed: {'; '.join(imported.notes)}"} if imported.claim else {})
    kind = str(kind_of(data[:N_FIRST]))
    try:
        with _errors_of(where):
            module = parsed(data, kind)
        if is_written(imported.document, module):
            return Remarks({"claims": VERIFIED})
        agreements = _compared(imported.document, read_stablehlo(data, kind, where).document, seed)
    except TiduError as error:
        return Remarks({"claims": f"not verified: {error}"})
    wrong = [f"claims: output '{a.output}' of the document {a.text} against what the module runs" for a in agreements if not a.ok]
    if wrong:
        return Remarks({"claims": "wrong: the module does not run what its document says; --plain reads what it runs"}, wrong)
    text = "not verified: the installed JAX writes the document as another module, whose values at random inputs are the same"
    return Remarks({"claims": text})


def _compared(claimed: Document, plain: Document, seed: int) -> list[Agreement]:
    """How the values of all graphs differ from those of the module's one. Raises TiduError where that cannot be told."""
    parts = [
        materialize(replace(claimed, graphs=claimed.graphs[:n], bindings=tuple(b for b in claimed.bindings if b.graph < n)))
        for n in range(1, len(claimed.graphs) + 1)
    ]
    return against_graph([part.head for part in parts], [i.key for i in claimed.free_inputs], plain.head, seed)
