"""Modules of StableHLO as documents: those that tidu wrote as they were, others operation by operation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tidu_cli.adapters.stablehlo.module import N_FIRST, Module, kind_of, parsed
from tidu_cli.adapters.stablehlo.own import claimed, claims_document
from tidu_cli.adapters.stablehlo.reading.importer import import_module
from tidu_cli.adapters.stablehlo.reading.library import lost_rules
from tidu_cli.checking.against import VERIFIED, Agreement, against_graph
from tidu_cli.errors import DocumentError, LimitError, Remedy, TiduError
from tidu_cli.formats.files import one_line
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Document
from tidu_cli.port_data import FromPlain, Imported, Remarks
from tidu_cli.transforms.materialize import materialize

_LINE = re.compile(r"\d+:\d+: ")
_NO_LINE = "0:0: "  # MLIR's, of bytecode


CHANGED = "it has been changed since tidu wrote it, so it is read by what it runs, without roles and passes"


def read_stablehlo(data: bytes, kind: str, where: str, from_plain: FromPlain | None = None) -> Imported:
    """The document of a module, text, bytecode or a file of jax.export, as `child.kind_of` tells.

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


def opened(data: bytes, kind: str, where: str) -> Module:
    """The module of a file. Raises as `read_stablehlo` does."""
    with _errors_of(where):
        return parsed(data, kind)


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
        from tidu_cli.adapters.stablehlo.writing.files import is_written

        if is_written(imported.document, opened(data, kind, where)):
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
