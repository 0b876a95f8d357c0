"""What `tidu check` says of a module that claims to be a document: whether that is what it runs."""

from __future__ import annotations

from tidu_cli.adapters.stablehlo.child import N_FIRST, kind_of
from tidu_cli.adapters.stablehlo.read import opened, read_stablehlo
from tidu_cli.checking.against import VERIFIED, Agreement, against_graph
from tidu_cli.errors import TiduError
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Document
from tidu_cli.port_data import Imported, Remarks
from tidu_cli.transforms.materialize import materialize


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
