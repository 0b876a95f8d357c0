"""Files of compiled programs: an envelope of msgpack around two documents and a plan, told apart from documents by how it begins.

What a step does is a node of the document `cases`; the other, `interface`, has the inputs and outputs. The plan is for the version
of tidu that made it, and for no other. docs/programs.md describes the envelope.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgpack

from tidu_cli import __version__
from tidu_cli.errors import DocumentError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.source import Source
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Document
from tidu_cli.lax.builtin import BUILTIN
from tidu_cli.rules.vocabulary import PrimitiveSet

VERSION = 1
"""The version of the envelope."""

_FIELD = "tidu_program"
_FIELDS = (_FIELD, "made_by", "sha256", "content")
_BEGINNING: bytes = msgpack.packb({_FIELD: 0, **dict.fromkeys(_FIELDS[1:], 0)})[: 2 + len(_FIELD)]


def is_program(source: Source) -> bool:
    """Whether this is a program, whole or damaged, and not a document. Nothing of it has been read then."""
    return source.head(len(_BEGINNING)) == _BEGINNING


def format_program(cases: Document, interface: Document, plan: Mapping[str, object]) -> bytes:
    """A file of a program: the same program, the same bytes."""
    documents = {"cases": format_document(cases, "msgpack"), "interface": format_document(interface, "msgpack")}
    content: bytes = msgpack.packb({**documents, "plan": plan})
    values = (VERSION, __version__, _sha256(content), content)
    packed: bytes = msgpack.packb(dict(zip(_FIELDS, values, strict=True)))
    return packed


def parse_program(data: bytes, where: str, primitives: PrimitiveSet = BUILTIN) -> tuple[Document, Document, dict[str, Any]]:
    """Read a program: its cases, its interface and its plan. Raises DocumentError, one line that begins with `where`."""
    envelope = _unpacked(data, where)
    if envelope.get(_FIELD) != VERSION or envelope.get("made_by") != __version__:
        maker = envelope.get("made_by")
        by = f"tidu {maker}" if isinstance(maker, str) and maker.isprintable() else "another tidu"
        raise DocumentError(f"{where}: a program made by {by}, and this is tidu {__version__}; make it anew with tidu compile")
    content = envelope.get("content")
    if not isinstance(content, bytes) or envelope.get("sha256") != _sha256(content):
        raise damaged(where)
    inside = _unpacked(content, where)
    cases, interface, plan = inside.get("cases"), inside.get("interface"), inside.get("plan")
    if not isinstance(cases, bytes) or not isinstance(interface, bytes) or not isinstance(plan, dict):
        raise damaged(where)
    return parse_document(cases, where, primitives)[0], parse_document(interface, where, primitives)[0], plan


def damaged(where: str) -> DocumentError:
    """The error of a program whose bytes are not those that were written."""
    return DocumentError(f"{where}: the program is damaged; make it anew with tidu compile")


def _sha256(content: bytes) -> bytes:
    import hashlib  # which asking whether these are the bytes of a program need not wait for

    return hashlib.sha256(content).digest()


def _unpacked(data: bytes, where: str) -> dict[str, Any]:
    try:
        found = msgpack.unpackb(data, raw=False)
    except (ValueError, msgpack.UnpackException):
        raise damaged(where) from None
    if not isinstance(found, dict):
        raise damaged(where)
    return found
