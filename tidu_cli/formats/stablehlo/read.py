"""Modules of StableHLO as documents: those that tidu wrote as they were, others operation by operation."""

from __future__ import annotations

import re

from tidu_cli.errors import DocumentError, LimitError, TiduError
from tidu_cli.formats.messages import one_line
from tidu_cli.formats.stablehlo.child import parsed
from tidu_cli.formats.stablehlo.reading.importer import import_module
from tidu_cli.graph.graph import Document

_LINE = re.compile(r"\d+:\d+: ")


def read_stablehlo(data: bytes, kind: str, where: str) -> Document:
    """The document of a module, text, bytecode or a file of jax.export, as `child.kind_of` tells.

    Raises DocumentError, one line that begins with `where` and the line in it, and names the operation; LimitError.
    """
    try:
        return import_module(parsed(data, kind))
    except TiduError as error:
        raise (type(error) if isinstance(error, LimitError) else DocumentError)(_placed(where, str(error))) from None


def _placed(where: str, message: str) -> str:
    return one_line(f"{where}:{message}" if _LINE.match(message) else f"{where}: {message}")
