"""NumPy source behind the port of formats. It goes out alone: `tidu build FILE.py:FUNCTION` reads functions of NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from tidu_cli.adapters.source_code import WrittenOnly
from tidu_cli.errors import DocumentError
from tidu_cli.graph.graph import Case, Document
from tidu_cli.port_data import FromPlain, Option, Written
from tidu_cli.ports import Readable
from tidu_cli.rules.vocabulary import PrimitiveSet

_MARK = b'"""Written by tidu'


class _Python(WrittenOnly):
    """A function of NumPy arrays, as a person would write it."""

    name, title, subject = "py", "Python", "files of Python"
    suffixes = (".py",)
    writing: tuple[Option, ...] = ()

    def sniff(self, source: Readable) -> bool:
        """Whether tidu wrote it."""
        return source.head(len(_MARK)) == _MARK

    def read(self, source: Readable, where: str, options: Mapping[str, Any], from_plain: FromPlain | None) -> NoReturn:
        """Raises DocumentError, which says what to do instead."""
        raise DocumentError(f"{where}: is Python; tidu build FILE.py:FUNCTION makes a graph of a function in a file")

    def write(self, document: Document, beside: str | None, options: Mapping[str, Any]) -> Written:
        """The source. Raises DocumentError for what NumPy source cannot be written of, before the first piece."""
        from tidu_cli.adapters.python_source.module import Module

        return Written(("".join(Module(document).source()).encode(),))

    def takes(self, case: Case, primitives: PrimitiveSet) -> str:
        """What it is written as. Raises DocumentError where it is not."""
        from tidu_cli.adapters.python_source.module import written_as

        return written_as(case, primitives)


PYTHON = _Python()
