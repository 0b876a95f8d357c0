"""Modules of StableHLO as documents: those that tidu wrote as they were, others operation by operation."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tidu_cli.errors import DocumentError, LimitError, TiduError
from tidu_cli.formats.messages import one_line
from tidu_cli.formats.stablehlo.child import parsed
from tidu_cli.formats.stablehlo.module import Module
from tidu_cli.formats.stablehlo.own import claimed
from tidu_cli.formats.stablehlo.reading.importer import import_module
from tidu_cli.graph.graph import Document

_LINE = re.compile(r"\d+:\d+: ")
_NO_LINE = "0:0: "  # MLIR's, of bytecode


FromPlain = Callable[[Any], Document]
"""Reads a document from the plain data that msgpack would have. Raises TiduError."""


CHANGED = "it has been changed since tidu wrote it, so it is read as it computes, without roles and passes"


def read_stablehlo(data: bytes, kind: str, where: str, from_plain: FromPlain | None = None) -> tuple[Document, tuple[str, ...]]:
    """The document of a module, text, bytecode or a file of jax.export, as `child.kind_of` tells; and what users should know.

    With `from_plain` a module that tidu wrote is the document that it was. Raises DocumentError, one line that begins with `where`
    and the line in it, and names the operation; LimitError.
    """
    try:
        module = parsed(data, kind)
        own = _own(module, from_plain) if from_plain is not None else None
        notes = (CHANGED,) if own is None and from_plain is not None and "tidu.document" in module.attributes else ()
        return own or import_module(module), notes
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
