"""Reports: what the checks found on one subject, a document or a primitive, as lines for people and as data for programs."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidu_cli.checking.closure import Closure, document_closure, primitive_closure
from tidu_cli.checking.examples import example_cases, one_node_document
from tidu_cli.checking.static import Finding, findings
from tidu_cli.errors import TiduError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.primitives.contract import Primitive, PrimitiveSet
from tidu_cli.transforms.linearize import linearize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidu_cli.checking.numeric import Verdict

PARTS = ("static", "closure", "numeric")
"""The parts of `tidu check`, in the order in which they run."""


@dataclass
class Report:
    """What was found; a part that was not asked for is None."""

    static: list[Finding] | None = None
    closure: Closure | None = None
    numeric: list[Verdict] | None = None
    failures: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """A line per finding and part; none for a static part that found nothing."""
        for finding in self.static or ():
            yield f"static: {'error' if finding.serious else 'note'}: {finding.text}"
        if self.closure is not None:
            yield from (f"closure: error: {missing}" for missing in self.closure.missing)
            if not self.closure.missing:
                yield f"closure: every rule is there for the {self.closure.reached} kinds of nodes that derivatives reach"
        if self.numeric is not None:
            said = ", ".join(f"{v.law} {_figure(v.error)}{'' if v.ok else f' (above {v.tolerance:.0e})'}" for v in self.numeric)
            yield f"numeric: {said or 'nothing to differentiate'}"

    def to_data(self) -> dict[str, Any]:
        """The JSON form."""
        data: dict[str, Any] = {"ok": not self.failures}
        if self.static is not None:
            data["static"] = [{"serious": f.serious, "text": f.text} for f in self.static]
        if self.closure is not None:
            data["closure"] = {"reached": self.closure.reached, "missing": self.closure.missing}
        if self.numeric is not None:
            data["numeric"] = {v.law: {"error": v.error, "tolerance": v.tolerance, "ok": v.ok} for v in self.numeric}
        return data


def check_document(
    document: Document,
    primitives: PrimitiveSet,
    parts: Container[str],
    *,
    given: Mapping[Key, NDArray[Any]] | None = None,
    seed: int = 0,
) -> Report:
    """Run parts of the checks on a document. `given` are inputs at which to try derivatives; the others are drawn."""
    report = Report()
    if "static" in parts:
        report.static = list(findings(document, primitives))
        report.failures += [f.text for f in report.static if f.serious]
    if "closure" in parts:
        report.closure = document_closure(document, primitives)
        report.failures += report.closure.missing
    if "numeric" in parts:
        from tidu_cli.checking.numeric import check_numerically  # it needs NumPy, the other parts do not

        _add_numeric(report, check_numerically(document, primitives, given=dict(given or {}), seed=seed))
    return report


def check_primitive(primitive: Primitive, primitives: PrimitiveSet, parts: Container[str], *, dtypes: Container[str]) -> Report:
    """Run parts of the checks on a primitive's examples; derivatives are tried in those of its dtypes that are in `dtypes`."""
    report = Report()
    if "static" in parts:
        report.static = [
            found for document in _derivatives(primitive, primitives) for found in findings(document, primitives) if found.serious
        ]
        report.failures += [f.text for f in report.static]
    if "closure" in parts:
        report.closure = primitive_closure(primitive, primitives)
        report.failures += report.closure.missing
    if "numeric" in parts:
        from tidu_cli.checking.numeric import check_primitive_numerically

        _add_numeric(report, check_primitive_numerically(primitive, primitives, dtypes))
    return report


def _add_numeric(report: Report, verdicts: list[Verdict]) -> None:
    report.numeric = verdicts
    for v in verdicts:
        if not v.ok:
            report.failures.append(f"numeric: {v.law} has relative error {_figure(v.error)}, above {v.tolerance:.0e}")


def _derivatives(primitive: Primitive, primitives: PrimitiveSet) -> Iterator[Document]:
    """The JVPs of a primitive's examples, as documents. What has no rule is for closure to say."""
    for _, case in example_cases(primitives, primitive):
        document = one_node_document(case)
        inputs = document.head.inputs
        wrt = [i.key for k, i in enumerate(inputs) if i.type.inexact and k not in primitive.inert]
        if wrt and any(o.type.inexact for o in document.head.outputs):
            try:
                yield linearize(document, wrt, primitives=primitives)
            except TiduError:
                continue


def _figure(error: float | None) -> str:
    return "no verdict" if error is None else f"{error:.0e}" if error else "0"
