"""Reports: what the checks found on one subject, a document or a primitive, as lines for people and as data for programs.

And what a document is, in numbers: its graphs, the graphs within their nodes, and what evaluating it takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidu_cli.checking.closure import Closure, cases_closure, document_closure, examples_closure
from tidu_cli.checking.custom import Use, case_of, judged, trial_uses, unused, uses_in
from tidu_cli.checking.custom import findings as definition_findings
from tidu_cli.checking.numeric.trials import Agreement, at_sizes, example_cases, one_node_document
from tidu_cli.checking.static import Finding, findings
from tidu_cli.custom.definitions import KINDS
from tidu_cli.errors import TiduError
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import named_graphs
from tidu_cli.graph.graph import Document, Externals, Graph, Input, Output
from tidu_cli.graph.identity import digest_text, digests
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import spelled
from tidu_cli.graph.open_sizes import open_names
from tidu_cli.graph.passes import kind_of
from tidu_cli.graph.sizes.names import name_to_file
from tidu_cli.graph.sizes.open import number_of
from tidu_cli.graph.types import RecordType
from tidu_cli.lax.vocabulary import used_records
from tidu_cli.port_data import Remarks
from tidu_cli.rules.contract import Primitive
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.memory import evaluation, flops
from tidu_cli.transforms.linearize import linearize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidu_cli.checking.numeric.laws import Verdict


PARTS = ("static", "closure", "numeric")
"""The parts of `tidu check`, in the order in which they run."""

_SHOWN = 6
"""How many elements of an input messages give."""


@dataclass
class Report:
    """What was found; a part that was not asked for is None. `own` are the verdicts on custom operations, by op and types.

    `inert` says of ops in which operands they have no derivative, and why. `facts` are what a model of another format holds, and
    `against` is how its outputs compare with those of `runtime`.
    """

    static: list[Finding] | None = None
    closure: Closure | None = None
    numeric: list[Verdict] | None = None
    untried: list[str] = field(default_factory=list)
    own: dict[str, list[Verdict]] | None = None
    inert: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    against: list[Agreement] | None = None
    runtime: str = ""

    def lines(self) -> Iterator[str]:
        """A line per finding and part; none for a static part that found nothing."""
        yield from (f"{name}: {text}" for name, text in self.facts.items())
        for finding in self.static or ():
            yield f"static: {'error' if finding.serious else 'note'}: {finding.text}"
        if self.closure is not None:
            yield from (f"closure: error: {missing}" for missing in self.closure.missing)
            if not self.closure.missing:
                yield f"closure: every rule is there for the {self.closure.reached} kinds of nodes that derivatives reach"
            yield from (f"closure: note: {op} has {text}" for op, text in self.inert.items())
        if self.numeric is not None:
            yield from (f"numeric: {text}" for text in _said_by_sizes(self.numeric))
            yield from (f"numeric: note: {text}" for text in dict.fromkeys(text for v in self.numeric for text in v.why))
            yield from (f"numeric: note: {text}" for text in self.untried)
        for op, verdicts in (self.own or {}).items():
            yield f"numeric: op {op}: {_said(verdicts)}"
        if self.against is not None:
            said = ", ".join(f"{a.output} {_figure(a.error)}{'' if a.ok else f' (above {a.tolerance:.0e})'}" for a in self.against)
            yield f"{self.runtime}: {said or 'no outputs'}"

    def to_data(self) -> dict[str, Any]:
        """The JSON form."""
        data: dict[str, Any] = {"ok": not self.failures}
        if self.static is not None:
            data["static"] = [{"serious": f.serious, "text": f.text} for f in self.static]
        if self.closure is not None:
            data["closure"] = {"reached": self.closure.reached, "missing": self.closure.missing} | (
                {"inert": self.inert} if self.inert else {}
            )
        if self.numeric is not None:
            data["numeric"] = _verdict_data(self.numeric)
        if self.untried:
            data["untried"] = self.untried
        if self.own:
            data["ops"] = {op: _verdict_data(verdicts) for op, verdicts in self.own.items()}
        if self.facts:
            data["model"] = self.facts
        if self.against is not None:
            data["against"] = {
                str(a.output): {"error": spelled(a.error), "tolerance": a.tolerance, "ok": a.ok} for a in self.against
            }
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
    # The static part goes through custom operations where it looks for their transposes, the others everywhere.
    primitives.require_written_out([g for g in document.graphs if g.linear is not None or "closure" in parts or "numeric" in parts])
    uses = uses_in(document, primitives) if primitives.definitions else []
    if "static" in parts:
        _add_static(report, [*findings(document, primitives), *unused(document, primitives)], uses, primitives)
    if "closure" in parts:
        report.closure = document_closure(document, primitives)
        report.inert = _inert(sorted({document.cases[code].op for graph in document.graphs for code in graph.code}), primitives)
        report.failures += report.closure.missing
    if "numeric" in parts:
        from tidu_cli.checking.kinks import untried_branches
        from tidu_cli.checking.numeric.exact_laws import linear_verdicts  # it needs NumPy, the other parts do not
        from tidu_cli.checking.numeric.laws import check_numerically

        report.untried = list(dict.fromkeys(untried_branches(document, given or {})))
        _add_custom(report, uses, primitives, seed)
        try:
            for place, sized in at_sizes(document, given or {}):
                verdicts = check_numerically(sized, primitives, given=dict(given or {}), seed=seed)
                verdicts += linear_verdicts(sized, primitives, given=given, seed=seed)
                _add_numeric(report, [replace(v, law=f"{v.law}{place}") for v in verdicts])
        except TiduError:
            if not report.failures:
                raise
            return report  # a custom operation is to blame, and has been
    return report


def add_remarks(report: Report, remarks: Remarks) -> None:
    """Add what the format of a file says of it."""
    report.facts |= remarks.facts
    report.failures += remarks.failures
    if remarks.runtime:
        report.runtime, report.against = remarks.runtime, list(remarks.agreements)
        report.failures += [
            f"output '{a.output}' {a.text} against {remarks.runtime}, above {a.tolerance:.0e}" for a in report.against if not a.ok
        ]


def check_library(primitives: PrimitiveSet, parts: Container[str], *, seed: int = 0) -> Report:
    """Run parts of the checks on the custom operations of a set, each at small types that it takes."""
    report = Report()
    uses, misfits = trial_uses(primitives)
    if "static" in parts:
        _add_static(report, misfits, uses, primitives)
    if "closure" in parts:
        report.closure = cases_closure([case_of(use, primitives) for use in uses], primitives)
        report.failures += report.closure.missing
    if "numeric" in parts:
        _add_custom(report, uses, primitives, seed)
    return report


def check_primitive(primitive: Primitive, primitives: PrimitiveSet, parts: Container[str], *, dtypes: Container[str]) -> Report:
    """Run parts of the checks on a primitive's examples; derivatives are tried in those of its dtypes that are in `dtypes`."""
    report = Report()
    if "static" in parts:
        all_findings = (finding for document in _derivatives(primitive, primitives) for finding in findings(document, primitives))
        counts = _wrong_counts(primitive, primitives)
        _add_static(report, [*counts, *(finding for finding in all_findings if finding.serious)], (), primitives)
    if "closure" in parts:
        report.closure = examples_closure([primitive], primitives)
        report.inert = _inert([primitive.name], primitives)
        report.failures += report.closure.missing
    if "numeric" in parts:
        from tidu_cli.checking.numeric.exact_laws import kernel_verdicts
        from tidu_cli.checking.numeric.laws import check_primitive_numerically

        derivatives = check_primitive_numerically(primitive, primitives, dtypes)
        _add_numeric(report, [*derivatives, *kernel_verdicts(primitive, primitives, dtypes)])
    return report


def _inert(ops: Iterable[str], primitives: PrimitiveSet) -> dict[str, str]:
    return {op: text for op in ops if (text := primitives[op].without_derivative)}


def _add_static(report: Report, general: Iterable[Finding], uses: Iterable[Use], primitives: PrimitiveSet) -> None:
    report.static = [*general, *(finding for use in uses for finding in definition_findings(use, primitives))]
    report.failures += [f.text for f in report.static if f.serious]


def _add_custom(report: Report, uses: Iterable[Use], primitives: PrimitiveSet, seed: int) -> None:
    report.own = {}
    for use in uses:
        try:
            verdicts = report.own[str(use)] = judged(use, primitives, seed)
        except TiduError as error:
            report.failures.append(f"op {use}: {error}")
            continue
        for v in verdicts:
            if not v.ok:
                report.failures.append(f"op {use}: {_blame(use)}: {_excess(v)}{_where(v)}")


def _blame(use: Use) -> str:
    kind = next((kind for kind in KINDS[1:] if kind in use.definition.graphs), None)
    return f"its {kind} does not fit its forward" if kind else "the derivative through its forward"


def _excess(v: Verdict) -> str:
    return f"{v.law} has relative error {_figure(v.error)}, above {v.tolerance:.0e}"


def _where(v: Verdict) -> str:
    by = f", in the derivative by {', '.join(map(str, v.by))}" if v.by else ""
    return by + (f", at {', '.join(f'{key} = {_values(x)}' for key, x in v.at.items())}" if v.at else "")


def _values(x: NDArray[Any]) -> str:
    some = x.ravel()[:_SHOWN]
    numbers = list(map(str, some)) if x.dtype.kind == "M" else [f"{z:.4g}" for z in some.tolist()]
    return f"[{', '.join(numbers)}{', ...' if x.size > _SHOWN else ''}]" if x.ndim else numbers[0]


def _said_by_sizes(verdicts: list[Verdict]) -> Iterator[str]:
    """A line, or one for each choice of open sizes, which is what laws are said to be tried at."""
    places: dict[str, list[Verdict]] = {}
    for v in verdicts:
        law, _, place = v.law.partition(" at ")
        places.setdefault(place, []).append(replace(v, law=law) if place else v)
    for place, tried in (places or {"": []}).items():
        yield f"at {place}: {_said(tried)}" if place else _said(tried)


def _said(verdicts: list[Verdict]) -> str:
    said = ", ".join(f"{v.law} {_figure(v.error)}{'' if v.ok else f' (above {v.tolerance:.0e})'}" for v in verdicts)
    return said or "nothing to differentiate"


def _verdict_data(verdicts: list[Verdict]) -> dict[str, Any]:
    return {
        v.law: {"error": None if v.error is None else spelled(v.error), "tolerance": v.tolerance, "ok": v.ok}
        | ({"why": list(v.why)} if v.why else {})
        for v in verdicts
    }


def _add_numeric(report: Report, verdicts: list[Verdict]) -> None:
    report.numeric = [*(report.numeric or ()), *verdicts]
    for v in verdicts:
        if not v.ok:
            report.failures.append(f"numeric: {_excess(v)}{''.join(f'; {text}' for text in v.why)}")


def _wrong_counts(primitive: Primitive, primitives: PrimitiveSet) -> Iterator[Finding]:
    """Examples whose number of results is not that of their types: readers trust it where operand types are hidden."""
    for _, case in example_cases(primitives, primitive):
        n = primitive.domain.n_results(case.attrs, len(case.operands))
        if n != len(case.results):
            operands = ", ".join(map(str, case.operands))
            yield Finding(True, f"n_results is {n}, but the types of {case.op}({operands}) give {len(case.results)}")


def _derivatives(primitive: Primitive, primitives: PrimitiveSet) -> Iterator[Document]:
    """The JVPs of a primitive's examples, as documents. What has no rule is for closure to say."""
    for _, case in example_cases(primitives, primitive):
        document = one_node_document(case)
        inputs = document.head.inputs
        wrt = [i.key for k, i in enumerate(inputs) if i.type.inexact and k not in primitive.rules.inert]
        if wrt and any(o.type.inexact for o in document.head.outputs):
            try:
                yield linearize(document, wrt, primitives=primitives)
            except TiduError:
                continue


def _figure(error: float | None) -> str:
    return "no verdict" if error is None else f"{error:.0e}" if error else "0"


def summary_of(document: Document, *, with_digests: bool = False) -> dict[str, Any]:
    """What there is to say of a document, as plain data; with the digests of all values."""
    cost = evaluation(document)
    summary: dict[str, Any] = {
        "next_pass": document.next_pass(),
        "passes": {str(number): document.passes.get(number) for number in sorted(document.used_passes())},
        "bindings": [str(b.key) for b in document.bindings],
        "detached": [d.digest for d in document.detached],
        "sizes": {text: name_to_file(name) for text, name in sorted(open_names(document).items())},
        "types": {record.name: _record_summary(record) for record in used_records(document)},
        "graphs": [{**_graph_summary(graph), "depth": depth} for graph, depth in zip(document.graphs, cost.depths, strict=True)],
        "evaluation": {
            "nodes": cost.nodes,
            "depth": cost.depth,
            "flops": cost.flops.known,
            "nodes_of_unknown_flops": cost.flops.unknown,
            "peak_bytes": cost.peak,
        },
    }
    if with_digests:
        for graph, values in zip(summary["graphs"], digests(document), strict=True):
            graph["digests"] = list(map(digest_text, values))
    return summary


def _record_summary(record: RecordType) -> dict[str, Any]:
    views = {view.name: {name: str(type_) for name, type_ in view.properties} for view in record.views}
    fields = {"fields": {name: str(type_) for name, type_ in record.fields}, "bytes": record.nbytes}
    return fields | ({"views": views} if views else {})


def _graph_summary(graph: Graph) -> dict[str, Any]:

    ops: Counter[str] = Counter()
    for code, n in Counter(graph.code).items():
        ops[graph.cases[code].op] += n
    operations = flops(graph)
    sources = Counter(graph.external.graph)
    return {
        "name": graph.name,
        "kind": kind_of(graph),
        "linear": graph.linear,
        "inputs": {str(i.key): str(i.type) for i in graph.inputs},
        "outputs": {str(o.key): str(o.type) + (" (zero)" if o.value is None else "") for o in graph.outputs},
        "input_bytes": _bytes(graph.inputs),
        "output_bytes": _bytes(graph.outputs),
        "nodes": graph.n_nodes,
        "externals": len(graph.external),
        "reads": {"detached" if g == Externals.DETACHED else str(g): n for g, n in sorted(sources.items())},
        "flops": operations.known,
        "nodes_of_unknown_flops": operations.unknown,
        "ops": dict(sorted(ops.items(), key=lambda item: (-item[1], item[0]))),
        "within": list(_within(graph)),
    }


def _bytes(ports: Sequence[Input] | Sequence[Output]) -> int | None:
    """The bytes that values take together; None where sizes are open."""
    return number_of(lambda: sum(port.type.nbytes for port in ports))


def _within(graph: Graph) -> Iterator[dict[str, Any]]:
    """The graphs within nodes: each where it comes first, though many nodes may have it, and in how many."""

    counts = Counter(graph.code)
    for code in (code for code in counts if named_graphs(graph.cases[code].attrs)):
        node = f"node {graph.code.index(code)} ({graph.cases[code].op})"
        for name, closed in named_graphs(graph.cases[code].attrs):
            (depth,) = evaluation(closed.document).depths
            yield {"place": f"{node}, {name}", "nodes_with_it": counts[code], **_graph_summary(closed.graph), "depth": depth}
