"""What formats of source code have in common: they are written, and not read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidu_cli.errors import DocumentError, TiduError
from tidu_cli.graph.graph import Document, Graph
from tidu_cli.port_data import Asked, Imported, Option, Remarks
from tidu_cli.ports import Readable


class UnwrittenError(DocumentError):
    """Something that the language is not written of."""


class WrittenOnly:
    """The part of a format that is about reading."""

    binary = False
    reading: tuple[Option, ...] = ()
    runtimes: tuple[str, ...] = ()

    def double(self, options: Mapping[str, Any]) -> None:
        """It is not read."""

    def remarks(self, source: Readable, where: str, imported: Imported, options: Mapping[str, Any], asked: Asked) -> Remarks:
        """None, as it is not read."""
        return Remarks()

    def outline(self, data: bytes) -> dict[str, Any]:
        """Nothing: it is not read."""
        return {"graphs": []}


def alone(document: Document) -> Graph:
    """The document as one graph. Raises UnwrittenError."""
    if len(document.graphs) == 1 and not document.bindings and not len(document.head.external):
        return document.head
    from tidu_cli.transforms.materialize import materialize

    try:
        return materialize(document).head
    except TiduError as error:
        raise UnwrittenError(f"graph '{document.head.name}' cannot stand alone: {error}") from None
