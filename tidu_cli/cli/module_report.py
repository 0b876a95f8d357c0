"""What `tidu check` says of a module of StableHLO that claims to be a document: whether that is what it runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidu_cli.cli.options import is_plain, known_primitives, shown
from tidu_cli.errors import TiduError
from tidu_cli.formats.onnx.choices import Imported
from tidu_cli.graph.graph import Document

if TYPE_CHECKING:
    from tidu_cli.checking.against import Agreement

VERIFIED = "verified: the file runs exactly what its document says"
"""For models of ONNX, too: the document, written again, gives the same file."""


def document_and_claims(data: bytes, path: str, seed: int) -> tuple[Document, str, list[str]]:
    """A module's document, what is known of its claim to be that, "" where it claims nothing, and what is wrong with it.

    Raises TiduError for a module that is not read.
    """
    imported = _read(data, path, plain=is_plain())
    if imported.claim != "unverified":
        return imported.document, "; ".join(imported.notes) and f"not followed: {'; '.join(imported.notes)}", []
    try:
        if _is_written(data, path, imported.document):
            return imported.document, VERIFIED, []
        agreements = _compared(imported.document, _read(data, path, plain=True).document, seed)
    except TiduError as error:
        return imported.document, f"not verified: {error}", []
    wrong = [f"claims: output '{a.output}' of the document {a.text} against what the module runs" for a in agreements if not a.ok]
    if wrong:
        return imported.document, "wrong: the module does not run what its document says; --plain reads what it runs", wrong
    text = "not verified: the installed JAX writes the document as another module, whose values at random inputs are the same"
    return imported.document, text, []


def _read(data: bytes, path: str, *, plain: bool) -> Imported:
    from tidu_cli.formats.read import parse_imported

    return parse_imported(data, shown(path), known_primitives(), plain=plain)[0]


def _is_written(data: bytes, path: str, document: Document) -> bool:
    from tidu_cli.formats.files import Source
    from tidu_cli.formats.read import module_kind
    from tidu_cli.formats.stablehlo.read import opened
    from tidu_cli.formats.stablehlo.writing.files import is_written

    return is_written(document, opened(data, str(module_kind(Source(data))), shown(path)))


def _compared(claimed: Document, plain: Document, seed: int) -> list[Agreement]:
    """How the values of all graphs differ from those of the module's one. Raises TiduError where that cannot be told."""
    from tidu_cli.checking.against import against_graph
    from tidu_cli.transforms.materialize import materialize

    parts = [
        materialize(replace(claimed, graphs=claimed.graphs[:n], bindings=tuple(b for b in claimed.bindings if b.graph < n)))
        for n in range(1, len(claimed.graphs) + 1)
    ]
    return against_graph([part.head for part in parts], [i.key for i in claimed.free_inputs], plain.head, seed)
