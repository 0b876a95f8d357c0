"""Documents as files of StableHLO: text, or a portable artifact, which later and earlier versions of programs read, too."""

from __future__ import annotations

import re
from typing import Any

import msgpack

from tidu_cli.adapters.stablehlo.module import Module
from tidu_cli.adapters.stablehlo.own import checksum, claims
from tidu_cli.adapters.stablehlo.parsing import as_plain
from tidu_cli.adapters.stablehlo.writing.functions import package
from tidu_cli.adapters.stablehlo.writing.module import module_text
from tidu_cli.adapters.stablehlo.writing.values import UnwrittenError
from tidu_cli.errors import ArgumentError, Remedy
from tidu_cli.formats.msgpack import pieces
from tidu_cli.formats.nodes.listed import GraphWriter
from tidu_cli.formats.write import bindings, heading
from tidu_cli.graph.graph import Document
from tidu_cli.graph.large import no_collection

FEW_NODES = 100
"""Documents of no more nodes are written into modules so that people can read them."""


def stablehlo_text(document: Document) -> bytes:
    """The text of a document's module, the same for the same document. Raises UnwrittenError, which names graph and node."""
    package()
    text = _text(document)
    with _context():
        module = _parsed(text)
        _claim(module, document)
        return f"{module.operation.get_asm(assume_verified=True)}".encode()


def is_written(document: Document, module: Module) -> bool:
    """Whether a module is what is written of a document, as text or as an artifact: the same but for names, places and claims.

    Raises UnwrittenError for a document that is not written, and DocumentError without JAX.
    """
    package()
    text, digest = _text(document), checksum(module, "")
    with _context() as context, no_collection():
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
    with _context() as context:
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


def _context() -> Any:
    package()
    from jax.interpreters.mlir import make_ir_context

    return make_ir_context()


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
