"""StableHLO behind the port of formats: modules as text, and as portable artifacts. JAX is imported where they are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidu_cli.graph.graph import Case, Document
from tidu_cli.options import CHECKS
from tidu_cli.port_data import Asked, FromPlain, Imported, Option, Remarks, Written
from tidu_cli.ports import Readable
from tidu_cli.rules.vocabulary import PrimitiveSet


class _StableHLO:
    """Modules of some of the kinds that `module.kind_of` tells."""

    subject = "modules of StableHLO"
    reading: tuple[Option, ...] = ()
    runtimes: tuple[str, ...] = ()

    def __init__(self, name: str, title: str, kinds: tuple[str, ...], writing: tuple[Option, ...]) -> None:
        self.name, self.title, self.suffixes = name, title, (f".{name}",)
        self.binary = name == "mlirbc"
        self.writing = writing
        self._kinds = kinds

    def sniff(self, source: Readable) -> bool:
        """Whether it is of these kinds."""
        return _kind(source) in self._kinds

    def read(self, source: Readable, where: str, options: Mapping[str, Any], from_plain: FromPlain | None) -> Imported:
        """As `read_stablehlo` does."""
        from tidu_cli.adapters.stablehlo.files import read_stablehlo

        kind = _kind(source)
        return read_stablehlo(source.read(), str(kind), where, from_plain)

    def write(self, document: Document, beside: str | None, options: Mapping[str, Any]) -> Written:
        """As `stablehlo_text` and `stablehlo_artifact` do."""
        from tidu_cli.adapters.stablehlo.files import stablehlo_artifact, stablehlo_text

        if not self.binary:
            return Written((stablehlo_text(document),))
        return Written((stablehlo_artifact(document, options.get("target_version")),))

    def double(self, options: Mapping[str, Any]) -> None:
        """Modules are tried as they are."""

    def remarks(self, source: Readable, where: str, imported: Imported, options: Mapping[str, Any], asked: Asked) -> Remarks:
        """Whether a module runs the document that it claims to be."""
        from tidu_cli.adapters.stablehlo.files import remarks

        return remarks(source.read(), where, imported, asked.seed)

    def takes(self, case: Case, primitives: PrimitiveSet) -> str:
        """As `functions.takes` does: JAX writes the operations."""
        from tidu_cli.adapters.jax.lowering.functions import takes

        return takes(case, primitives, precise=False)

    def outline(self, data: bytes) -> dict[str, Any]:
        """Nothing: only a process of its own parses modules, which takes longer than one waits for a TAB."""
        return {"graphs": []}


def _kind(source: Readable) -> str | None:
    from tidu_cli.adapters.stablehlo.module import N_FIRST, kind_of

    return kind_of(source.head(N_FIRST))


TEXT = _StableHLO("mlir", "StableHLO", ("text",), ())
ARTIFACT = _StableHLO(
    "mlirbc",
    "StableHLO",
    ("bytecode", "export"),
    (
        Option(
            "--target-version",
            "target_version",
            "The version of StableHLO that programs read which get the file (mlirbc), such as 1.0.0. [default: twelve weeks old]",
            "VERSION",
            str,
            CHECKS["target_version"],
            of_result=True,
        ),
    ),
)
