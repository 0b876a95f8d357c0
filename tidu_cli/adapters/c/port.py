"""C behind the port of formats. It goes out alone: nothing reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from tidu_cli.adapters.source_code import WrittenOnly
from tidu_cli.arguments import flag, one_of
from tidu_cli.errors import DocumentError
from tidu_cli.graph.graph import Case, Document
from tidu_cli.port_data import FromPlain, Option, Written
from tidu_cli.ports import Readable
from tidu_cli.rules.vocabulary import PrimitiveSet

_MARK = b"/* Written by tidu"


def _linked(name: str, help: str) -> Option:
    return Option(f"--{name}", name, help, "", str, flag, is_flag=True, of_result=True)


class _C(WrittenOnly):
    """A function in C99, with a header beside it."""

    name, title, subject = "c", "C", "files of C"
    suffixes = (".c",)
    writing = (
        Option(
            "--real",
            "real",
            "The type of all floats in C. [default: double for f64, float for f32]",
            "double|float",
            str,
            one_of("double", "float"),
            choices=("double", "float"),
            of_result=True,
        ),
        _linked("blas", "Large products in C by cblas, which the program is linked with."),
        _linked("lapack", "Large factors in C by LAPACK, which the program is linked with, and eigh and svd, which C lacks."),
    )

    def sniff(self, source: Readable) -> bool:
        """Whether tidu wrote it."""
        return source.head(len(_MARK)) == _MARK

    def read(self, source: Readable, where: str, options: Mapping[str, Any], from_plain: FromPlain | None) -> NoReturn:
        """Raises DocumentError, which says what to do instead."""
        raise DocumentError(f"{where}: is C, which is written and not read; keep the document it was written from")

    def write(self, document: Document, beside: str | None, options: Mapping[str, Any]) -> Written:
        """The source, and the header beside it. Raises DocumentError for what C cannot be written of, before the first piece."""
        from tidu_cli.adapters.c.module import Module
        from tidu_cli.graph.large import no_collection

        with no_collection():
            libraries = {name: bool(options.get(name)) for name in ("blas", "lapack")}
            module = Module(document, options.get("real"), **libraries)
            source = ("".join(module.source()).encode(),)
        if beside is None:
            return Written(source)
        header = beside.removesuffix(".data").rpartition(".c")[0] + ".h"
        return Written(source, (module.header(header).encode(),), header)

    def takes(self, case: Case, primitives: PrimitiveSet) -> str:
        """What it is written as. Raises DocumentError where it is not."""
        from tidu_cli.adapters.c.module import written_as

        return written_as(case, primitives)


C = _C()
